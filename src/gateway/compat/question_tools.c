/* get_elicitations, respond_to_elicitation, cancel_elicitation_request; the same of sampling. */
#include "answer.h"
#include "inbox/inbox.h"
#include "input/input_request.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "tools.h"

#define DEFAULT_REASON STR("User cancelled")

/* ---- listing ---- */

static void answer_list(struct call *call, enum input_kind kind, const char *member,
                        struct str words)
{
    char key[CLIENT_KEY_BYTES];
    struct buffer list = {0}, structured = {0};
    client_key_of_call(call, key);
    size_t count = input_write_list(call->worker->gateway, str_from(key), kind, &list);
    buffer_append_format(&structured, "{\"%s\":", member);
    buffer_append(&structured, buffer_str(&list));
    buffer_append_char(&structured, '}');
    compat_answer(call, &(struct compat_result){.text = count > 0 ? STR_EMPTY : words,
                                                .json = count > 0 ? buffer_str(&list) : STR_EMPTY,
                                                .structured = buffer_str(&structured)});
    buffer_finish(&structured);
    buffer_finish(&list);
}

void pseudo_tool_get_elicitations(struct call *call, struct str arguments)
{
    answer_list(call, INPUT_ELICITATION, "elicitations", STR("No pending elicitation requests"));
}

void pseudo_tool_get_sampling_requests(struct call *call, struct str arguments)
{
    answer_list(call, INPUT_SAMPLING, "sampling_requests", STR("No pending sampling requests"));
}

/* ---- answering ---- */

/* What is done, in words and as {requestId, outcome}. */
static void answer_done(struct call *call, const char *what, struct str id, const char *outcome)
{
    struct buffer text = {0}, structured = {0};
    buffer_append_format(&text, "%s '%.*s': %s", what, STR_ARGS(id), outcome);
    buffer_append_text(&structured, "{\"requestId\":");
    buffer_append_json_string(&structured, id);
    buffer_append_format(&structured, ",\"outcome\":\"%s\"}", outcome);
    compat_answer(call, &(struct compat_result){.text = buffer_str(&text),
                                                .structured = buffer_str(&structured)});
    buffer_finish(&structured);
    buffer_finish(&text);
}

static void answer_problem(struct call *call, const char *what, struct str id,
                           enum input_verdict verdict, const struct error *error)
{
    struct buffer text = {0};
    if (verdict == INPUT_NOT_OPEN)
        buffer_append_format(&text, "%s '%.*s' not found or already completed", what, STR_ARGS(id));
    else
        buffer_append_format(&text, "Failed to respond: %s", error->message);
    compat_answer_text(call, buffer_str(&text), true);
    buffer_finish(&text);
}

/* The action of an elicitation by its own word for the end (reference §10.5). */
static const char *outcome_of(struct str action)
{
    if (json_string_equals(action, STR("accept")))
        return "accepted";
    return json_string_equals(action, STR("decline")) ? "declined" : "cancelled";
}

static void respond_to_elicitation(struct call *call, struct str arguments, struct str action)
{
    char key[CLIENT_KEY_BYTES];
    struct error error = {""};
    struct buffer id = {0};
    struct str content = json_member(arguments, "content");
    if (json_type(content) == JSON_NULL)
        content = STR_EMPTY;
    client_key_of_call(call, key);
    compat_argument_text(arguments, "request_id", &id);
    enum input_verdict verdict = input_answer_elicitation(call->worker, str_from(key),
                                                          buffer_str(&id), action, content, &error);
    if (verdict == INPUT_ANSWERED)
        answer_done(call, "Elicitation request", buffer_str(&id), outcome_of(action));
    else
        answer_problem(call, "Elicitation request", buffer_str(&id), verdict, &error);
    buffer_finish(&id);
}

void pseudo_tool_respond_to_elicitation(struct call *call, struct str arguments)
{
    respond_to_elicitation(call, arguments, json_member(arguments, "action"));
}

/* To the server it is a form that was closed without a choice. */
void pseudo_tool_cancel_elicitation_request(struct call *call, struct str arguments)
{
    respond_to_elicitation(call, arguments, STR("\"cancel\""));
}

static void respond_to_sampling(struct call *call, struct str arguments, struct str result,
                                struct str reason)
{
    char key[CLIENT_KEY_BYTES];
    struct error error = {""};
    struct buffer id = {0};
    client_key_of_call(call, key);
    compat_argument_text(arguments, "request_id", &id);
    enum input_verdict verdict =
        input_answer_sampling(call->worker, str_from(key), buffer_str(&id), result, reason);
    if (verdict == INPUT_ANSWERED)
        answer_done(call, "Sampling request", buffer_str(&id),
                    result.length > 0 ? "completed" : "rejected");
    else
        answer_problem(
            call, result.length > 0 ? "Failed to respond: Sampling request" : "Sampling request",
            buffer_str(&id), verdict, &error);
    buffer_finish(&id);
}

void pseudo_tool_respond_to_sampling(struct call *call, struct str arguments)
{
    struct buffer result = {0};
    struct str stop_reason = json_member(arguments, "stop_reason");
    buffer_append_text(&result, "{\"role\":");
    buffer_append(&result, json_member(arguments, "role"));
    buffer_append_text(&result, ",\"content\":{\"type\":\"text\",\"text\":");
    buffer_append(&result, json_member(arguments, "content"));
    buffer_append_text(&result, "},\"model\":");
    buffer_append(&result, json_member(arguments, "model"));
    if (json_type(stop_reason) == JSON_STRING) {
        json_add_key(&result, "stopReason");
        buffer_append(&result, stop_reason);
    }
    buffer_append_char(&result, '}');
    respond_to_sampling(call, arguments, buffer_str(&result), STR_EMPTY);
    buffer_finish(&result);
}

void pseudo_tool_cancel_sampling_request(struct call *call, struct str arguments)
{
    struct buffer reason = {0};
    bool is_given = compat_argument_text(arguments, "reason", &reason);
    respond_to_sampling(call, arguments, STR_EMPTY,
                        is_given ? buffer_str(&reason) : DEFAULT_REASON);
    buffer_finish(&reason);
}
