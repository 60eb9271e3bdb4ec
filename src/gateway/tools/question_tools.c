/* get_elicitations, respond_to_elicitation, cancel_elicitation_request; the same of sampling. */
#include <stdlib.h>

#include "answer.h"
#include "conversation/question.h"
#include "inbox/inbox.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "tools.h"

#define DEFAULT_REASON STR("User cancelled")

/* ---- listing ---- */

static void question_tools_answer_list(struct call *call, enum question_kind kind,
                                       const char *member, struct str words)
{
    char key[CLIENT_KEY_BYTES];
    OWNED_BUFFER(list);
    client_key_of_call(call, key);
    size_t count = question_write_list(call->worker->gateway, str_from(key), kind, &list);
    pseudo_answer_array(call, member, buffer_str(&list), count, words);
}

void pseudo_tool_get_elicitations(struct call *call, struct str arguments)
{
    question_tools_answer_list(call, QUESTION_ELICITATION, "elicitations",
                               STR("No pending elicitation requests"));
}

void pseudo_tool_get_sampling_requests(struct call *call, struct str arguments)
{
    question_tools_answer_list(call, QUESTION_SAMPLING, "sampling_requests",
                               STR("No pending sampling requests"));
}

/* ---- answering ---- */

/* A call that answers a question, until the server has the answer. */
struct answering {
    struct call *call;
    const char *what,
        *outcome;     /* the question's name, and its end once the server has the answer */
    struct buffer id; /* of the question */
};

static struct answering *answering_begin(struct call *call, const char *what, const char *outcome)
{
    struct answering *answering = memory_alloc(sizeof *answering);
    *answering = (struct answering){.call = call_ref(call), .what = what, .outcome = outcome};
    pseudo_argument_text(call->envelope.arguments.raw, "request_id", &answering->id);
    return answering;
}

static void answering_end(void *context)
{
    struct answering *answering = context;
    call_unref(answering->call);
    buffer_finish(&answering->id);
    free(answering);
}

static void write_failure(struct buffer *text, const struct question_delivery *delivery)
{
    buffer_append_text(text, "the answer has not been delivered: ");
    if (delivery->status > 0)
        buffer_append_format(text, "the server answered HTTP %d", delivery->status);
    else if (delivery->result == UPSTREAM_SILENT)
        buffer_append_text(text, "the server has not confirmed it in time");
    else
        buffer_append_text(text, "the server cannot be reached");
    buffer_append_text(text, delivery->is_open
                                 ? ". The request is still pending: answer it again in a moment"
                                 : ". The request is closed: the call that asked has ended");
}

/* The outcome, in words and as {requestId, outcome}. The words for what was not delivered are
 * fixed: pending again, or rejected with the call that asked. */
static void answer_delivery(const struct answering *answering,
                            const struct question_delivery *delivery)
{
    bool has_arrived = delivery->has_arrived;
    OWNED_BUFFER(text);
    OWNED_BUFFER(structured);
    buffer_append_format(&text, "%s '%.*s': ", answering->what,
                         STR_ARGS(buffer_str(&answering->id)));
    buffer_append_char(&structured, '{');
    json_add_str(&structured, "requestId", buffer_str(&answering->id));
    if (has_arrived) {
        buffer_append_text(&text, answering->outcome);
        json_add_text(&structured, "outcome", answering->outcome);
    } else {
        write_failure(&text, delivery);
        json_add_text(&structured, "outcome", delivery->is_open ? "pending" : "rejected");
        json_add_bool(&structured, "delivered", false);
    }
    buffer_append_char(&structured, '}');
    pseudo_answer(answering->call, &(struct pseudo_result){.text = buffer_str(&text),
                                                           .structured = buffer_str(&structured),
                                                           .is_error = !has_arrived});
}

static void on_delivered(void *context, const struct question_delivery *delivery)
{
    struct answering *answering = context;
    if (answering->call->exchange)
        answer_delivery(answering, delivery);
    answering_end(answering);
}

static struct question_tool_answer tool_answer(struct answering *answering, char key[])
{
    question_find_key(answering->call, buffer_str(&answering->id), key);
    return (struct question_tool_answer){
        .worker = answering->call->worker,
        .key = str_from(key),
        .id = buffer_str(&answering->id),
        .receiver = {on_delivered, answering_end, answering},
    };
}

/* Nothing was sent. `what` as in struct answering, perhaps with words before it. */
static void answer_problem(struct answering *answering, const char *what,
                           enum question_verdict verdict, const struct error *error)
{
    if (verdict == QUESTION_NOT_OPEN)
        pseudo_fail(answering->call, "%s '%.*s' not found or already completed", what,
                    STR_ARGS(buffer_str(&answering->id)));
    else
        pseudo_fail(answering->call, "Failed to respond: %s", error->message);
    answering_end(answering);
}

/* The action of an elicitation by its own word for the end. */
static const char *question_tools_outcome_of(struct str action)
{
    if (json_string_equals(action, STR("accept")))
        return "accepted";
    return json_string_equals(action, STR("decline")) ? "declined" : "cancelled";
}

static void respond_to_elicitation(struct call *call, struct str arguments, struct str action)
{
    char key[QUESTION_KEY_BYTES];
    struct error error = {""};
    struct answering *answering =
        answering_begin(call, "Elicitation request", question_tools_outcome_of(action));
    struct str content = json_member(arguments, "content");
    if (json_type(content) == JSON_NULL)
        content = STR_EMPTY;
    const struct question_tool_answer by = tool_answer(answering, key);
    enum question_verdict verdict = question_answer_elicitation(&by, action, content, &error);
    if (verdict != QUESTION_ANSWERED)
        answer_problem(answering, answering->what, verdict, &error);
}

void pseudo_tool_respond_to_elicitation(struct call *call, struct str arguments)
{
    respond_to_elicitation(call, arguments, json_member(arguments, "action"));
}

/* The server sees a form that was closed without a choice. */
void pseudo_tool_cancel_elicitation_request(struct call *call, struct str arguments)
{
    respond_to_elicitation(call, arguments, STR("\"cancel\""));
}

static void respond_to_sampling(struct call *call, struct str result, struct str reason)
{
    char key[QUESTION_KEY_BYTES];
    const struct error none = {""};
    bool is_answer = result.length > 0;
    struct answering *answering =
        answering_begin(call, "Sampling request", is_answer ? "completed" : "rejected");
    const struct question_tool_answer by = tool_answer(answering, key);
    enum question_verdict verdict = question_answer_sampling(&by, result, reason);
    if (verdict != QUESTION_ANSWERED)
        answer_problem(answering,
                       is_answer ? "Failed to respond: Sampling request" : answering->what, verdict,
                       &none);
}

void pseudo_tool_respond_to_sampling(struct call *call, struct str arguments)
{
    OWNED_BUFFER(result);
    struct str stop_reason = json_member(arguments, "stop_reason");
    buffer_append_char(&result, '{');
    json_add_value(&result, "role", json_member(arguments, "role"));
    buffer_append_text(&result, ",\"content\":{\"type\":\"text\"");
    json_add_value(&result, "text", json_member(arguments, "content"));
    buffer_append_char(&result, '}');
    json_add_value(&result, "model", json_member(arguments, "model"));
    if (json_type(stop_reason) == JSON_STRING)
        json_add_value(&result, "stopReason", stop_reason);
    buffer_append_char(&result, '}');
    respond_to_sampling(call, buffer_str(&result), STR_EMPTY);
}

void pseudo_tool_cancel_sampling_request(struct call *call, struct str arguments)
{
    OWNED_BUFFER(reason);
    bool is_given = pseudo_argument_text(arguments, "reason", &reason);
    respond_to_sampling(call, STR_EMPTY, is_given ? buffer_str(&reason) : DEFAULT_REASON);
}
