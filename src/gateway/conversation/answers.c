/* Answers to questions, in each way that they come, until their arrival at the server is known. */
#include "question.h"

#include <stdlib.h>
#include <string.h>

#include "answer_gate.h"
#include "call/client_profile.h"
#include "question_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"

/* An answer that has closed its question, which is not settled before the answer's fate is known.
 */
struct delivery {
    struct gateway_worker *worker;
    struct kept_question *kept;
    struct buffer result, error;       /* of the response; one is empty */
    struct question_receiver receiver; /* all zeros: nobody waits for the fate of the answer */
};

static bool is_awaited(const struct delivery *delivery)
{
    return delivery->receiver.delivered != NULL;
}

static struct delivery *delivery_create(struct gateway_worker *worker, struct kept_question *kept,
                                        const struct question_receiver *receiver)
{
    struct delivery *delivery = memory_alloc(sizeof *delivery);
    *delivery = (struct delivery){.worker = worker, .kept = kept};
    if (receiver)
        delivery->receiver = *receiver;
    return delivery;
}

static void answer_delivery_destroy(struct delivery *delivery)
{
    buffer_finish(&delivery->result);
    buffer_finish(&delivery->error);
    free(delivery);
}

static void conclude_delivery(struct delivery *delivery, const struct question_delivery *outcome)
{
    delivery->receiver.delivered(delivery->receiver.context, outcome);
    answer_delivery_destroy(delivery);
}

static void on_reply(void *context, const struct exchange_reply *reply)
{
    struct delivery *delivery = context;
    struct kept_question *kept = delivery->kept;
    struct question_delivery outcome = {.status = reply->status, .result = reply->result};
    ASSERT(!kept->is_settled && kept->question.state != QUESTION_OPEN);
    outcome.has_arrived =
        reply->result == UPSTREAM_DONE && reply->status >= 200 && reply->status < 300;
    if (outcome.has_arrived) {
        question_settle(delivery->worker, kept);
    } else {
        log_warn("An answer has not reached upstream", LOG_TEXT("source", kept->question.source),
                 LOG_TEXT("question", kept->question.id), LOG_NUMBER("status", reply->status),
                 LOG_TEXT("detail", reply->detail));
        outcome.is_open = question_reopen(delivery->worker, kept);
    }
    conclude_delivery(delivery, &outcome);
}

/* The worker ends, and the question with it. */
static void on_dropped(void *context)
{
    struct delivery *delivery = context;
    if (is_awaited(delivery))
        delivery->receiver.dropped(delivery->receiver.context);
    answer_delivery_destroy(delivery);
}

static void on_taken(void *context)
{
    conclude_delivery(context, &(struct question_delivery){.has_arrived = true});
}

/* The answer is taken here, and delivered later, as the receiver expects. */
static void tell_taken(struct delivery *delivery)
{
    if (is_awaited(delivery))
        loop_post(delivery->worker->loop, on_taken, delivery);
    else
        answer_delivery_destroy(delivery);
}

static void send(struct delivery *delivery)
{
    static const struct exchange_events events = {.reply = on_reply, .dropped = on_dropped};
    const struct server_response response = {buffer_str(&delivery->result),
                                             buffer_str(&delivery->error)};
    bool waits = is_awaited(delivery) && !delivery->kept->take_answer;
    question_respond(delivery->worker, delivery->kept, &response, waits ? &events : NULL, delivery);
    if (waits)
        return;
    question_settle(delivery->worker, delivery->kept);
    tell_taken(delivery);
}

/* ---- inside an approved call ---- */

static void refuse(const struct delivery *delivery)
{
    struct server_response response = {.result = STR("{\"action\":\"decline\"}")};
    if (delivery->kept->question.kind != QUESTION_ELICITATION)
        response = (struct server_response){
            .error = STR("{\"code\":-1,\"message\":\"The answer was refused\"}")};
    question_respond(delivery->worker, delivery->kept, &response, NULL, NULL);
}

static void on_verdict(void *context, enum answer_verdict verdict)
{
    struct delivery *delivery = context;
    struct question_delivery outcome = {.result = UPSTREAM_SILENT};
    if (verdict == ANSWER_PASSES) {
        send(delivery);
    } else if (is_awaited(delivery)) { /* it could not be stored: the client may answer again */
        outcome.is_open = question_reopen(delivery->worker, delivery->kept);
        conclude_delivery(delivery, &outcome);
    } else {
        if (verdict == ANSWER_REFUSED)
            refuse(delivery);
        question_settle(delivery->worker, delivery->kept);
        answer_delivery_destroy(delivery);
    }
}

static void write_gated_question(struct buffer *out, const struct question *question)
{
    struct str message = str_from(question->message), params = json_member(message, "params");
    buffer_append_format(out, "{\"%s\":{\"method\":", question->id);
    buffer_append(out, json_member(message, "method"));
    if (params.length > 0) {
        buffer_append_text(out, ",\"params\":");
        buffer_append(out, params);
    }
    buffer_append_text(out, "}}");
}

static void write_gated_answer(struct buffer *out, const struct delivery *delivery)
{
    buffer_append_format(out, "{\"%s\":", delivery->kept->question.id);
    if (delivery->result.length > 0) {
        buffer_append(out, buffer_str(&delivery->result));
    } else {
        buffer_append_text(out, "{\"error\":");
        buffer_append(out, buffer_str(&delivery->error));
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, '}');
}

/* While people look at it the client is not kept waiting. */
static void pass_gate(struct delivery *delivery)
{
    struct gateway_worker *worker = delivery->worker;
    struct kept_question *kept = delivery->kept;
    const struct question_receiver receiver = delivery->receiver;
    OWNED_BUFFER(question);
    OWNED_BUFFER(answer);
    ASSERT(kept->task && !kept->is_settled);
    write_gated_question(&question, &kept->question);
    write_gated_answer(&answer, delivery);
    const struct answer_gate_answers answers = {
        .task = kept->task, .questions = buffer_str(&question), .answers = buffer_str(&answer)};
    if (answer_gate_pass(worker, &answers, on_verdict, on_dropped, delivery) == ANSWER_WAITS) {
        delivery->receiver = (struct question_receiver){.delivered = NULL};
        tell_taken(delivery_create(worker, kept, &receiver));
    }
}

/* Sends the answer that has closed the question. With a receiver it is settled once upstream has
 * the answer, and open again when the answer has not arrived; without one it is settled at once. */
static void deliver_answer(struct gateway_worker *worker, struct kept_question *kept,
                           const struct server_response *response,
                           const struct question_receiver *receiver)
{
    struct delivery *delivery = delivery_create(worker, kept, receiver);
    buffer_append(&delivery->result, response->result);
    buffer_append(&delivery->error, response->error);
    if (!kept->take_answer && answer_gate_applies(kept->task))
        pass_gate(delivery);
    else
        send(delivery);
}

/* ---- what is asked ---- */

/* Whether `content` answers the form. The check reads a copy, because the question may go
 * meanwhile. */
static bool check_content(struct gateway *gateway, struct str key,
                          const struct question_match *match, struct str content,
                          struct error *error)
{
    OWNED_BUFFER(params);
    struct question_walk walk = question_walk(gateway->questions, key, match);
    const struct question *question;
    while ((question = question_walk_next(&walk))) {
        if (params.length == 0 && question->state == QUESTION_OPEN)
            buffer_append(&params, json_member(str_from(question->message), "params"));
    }
    struct str asked = buffer_str(&params);
    return asked.length == 0 || elicitation_is_url(asked) ||
           elicitation_check_content(json_member(asked, "requestedSchema"), content, error);
}

/* ---- an elicitation ---- */

struct elicitation_answer {
    enum elicitation_action action;
    struct str content; /* JSON text; empty unless accepted, and then of a form only */
    enum question_state way;
    const struct question_receiver *receiver; /* or NULL */
};

static void write_result(struct buffer *out, const struct elicitation_answer *answer, bool is_url)
{
    buffer_append_format(out, "{\"action\":\"%s\"", elicitation_action_name(answer->action));
    if (answer->action == ELICITATION_ACCEPT && !is_url) {
        buffer_append_text(out, ",\"content\":");
        buffer_append(out, answer->content.length > 0 ? answer->content : STR("{}"));
    }
    buffer_append_char(out, '}');
}

static void digest_answer(const struct elicitation_answer *answer, char digest[])
{
    OWNED_BUFFER(text);
    write_result(&text, answer, false);
    digest_sha256_hex(buffer_str(&text), digest);
}

/* A repeated answer, as after a lost connection, is not a second one. */
static bool is_repeated_answer(const struct elicitation_answer *answer,
                               const struct question_closing *closing)
{
    return closing->was == answer->way && answer->way == QUESTION_ANSWERED_IN_TASK &&
           strcmp(closing->was_answer, closing->answer) == 0;
}

static enum question_verdict answer_elicitation(struct gateway_worker *worker, struct str key,
                                                const struct question_match *match,
                                                const struct elicitation_answer *answer,
                                                struct error *error)
{
    char digest[DIGEST_HEX_BYTES];
    struct question_closing closing = {.state = answer->way, .answer = digest};
    if (answer->action == ELICITATION_ACCEPT &&
        !check_content(worker->gateway, key, match, answer->content, error))
        return QUESTION_UNFIT;
    digest_answer(answer, digest);
    struct kept_question *kept = question_close(worker->gateway, key, match, &closing);
    if (!kept && is_repeated_answer(answer, &closing))
        return QUESTION_ANSWERED;
    if (!kept) {
        if (closing.was == QUESTION_OPEN)
            error_set(error, "there is no such elicitation");
        else
            error_set(error, "the elicitation is no longer open: %s",
                      question_end_name(closing.was));
        return QUESTION_NOT_OPEN;
    }
    OWNED_BUFFER(result);
    write_result(&result, answer,
                 elicitation_is_url(json_member(str_from(kept->question.message), "params")));
    deliver_answer(worker, kept, &(struct server_response){.result = buffer_str(&result)},
                   answer->receiver);
    return QUESTION_ANSWERED;
}

/* ---- in tasks/get ---- */

bool question_answer_in_task(struct gateway_worker *worker, const struct task *task,
                             struct str response, struct error *error)
{
    char key[QUESTION_KEY_BYTES];
    struct elicitation_answer answer = {.content = json_member(response, "content"),
                                        .way = QUESTION_ANSWERED_IN_TASK};
    if (json_type(response) != JSON_OBJECT)
        return error_set(error, "elicitation-response must be an object");
    if (!elicitation_action_parse(json_member(response, "action"), &answer.action))
        return error_set(error, "elicitation-response.action must be accept, decline or cancel");
    char *id = json_string_text(json_member(response, "elicitationId"), NULL);
    if (!id || !id[0]) {
        free(id);
        return error_set(error, "elicitation-response.elicitationId must be a string");
    }
    const struct question_match match = {
        .has_kind = true,
        .kind = QUESTION_ELICITATION,
        .id = str_from(id),
        .task = str_from(task->id),
    };
    client_key_or_id_of_task(task, key);
    enum question_verdict verdict =
        answer_elicitation(worker, str_from(key), &match, &answer, error);
    free(id);
    return verdict == QUESTION_ANSWERED;
}

/* ---- by the tools ---- */

enum question_verdict question_answer_elicitation(const struct question_tool_answer *by,
                                                  struct str action, struct str content,
                                                  struct error *error)
{
    struct elicitation_answer answer = {
        .content = content, .way = QUESTION_ANSWERED_BY_TOOL, .receiver = &by->receiver};
    const struct question_match match = {
        .has_kind = true, .kind = QUESTION_ELICITATION, .id = by->id};
    if (!elicitation_action_parse(action, &answer.action)) {
        error_set(error, "action must be accept, decline or cancel");
        return QUESTION_UNFIT;
    }
    if (by->key.length == 0 || by->id.length == 0)
        return QUESTION_NOT_OPEN;
    return answer_elicitation(by->worker, by->key, &match, &answer, error);
}

enum question_verdict question_answer_sampling(const struct question_tool_answer *by,
                                               struct str result, struct str reason)
{
    const struct question_match match = {.has_kind = true, .kind = QUESTION_SAMPLING, .id = by->id};
    struct question_closing closing = {.state = QUESTION_ANSWERED_BY_TOOL};
    OWNED_BUFFER(error);
    if (by->key.length == 0 || by->id.length == 0)
        return QUESTION_NOT_OPEN;
    struct kept_question *kept = question_close(by->worker->gateway, by->key, &match, &closing);
    if (!kept)
        return QUESTION_NOT_OPEN;
    if (result.length == 0)
        question_write_error(&error, -1, reason); /* the protocol's example of a person's no */
    const struct server_response response = {result, buffer_str(&error)};
    deliver_answer(by->worker, kept, &response, &by->receiver);
    return QUESTION_ANSWERED;
}

/* ---- the client's own JSON-RPC response ---- */

/* It has come in another session of the call's owner. */
static bool is_of_owner(const struct call *call, const struct kept_question *kept)
{
    return strcmp(call->owner, OWNER_ANONYMOUS) != 0 && strcmp(call->owner, kept->owner) == 0 &&
           strcmp(call->source->id, kept->question.source) == 0;
}

static bool is_asked_in_session(const struct call *call, const struct question *question)
{
    return strcmp(call->session, question->session) == 0 &&
           strcmp(call->source->id, question->source) == 0;
}

static bool may_answer(const struct call *call, const struct question *question, bool is_response)
{
    const struct kept_question *kept = question->owner;
    char own_key[QUESTION_KEY_BYTES];
    if (!kept) /* a round, which has no request of this id */
        return false;
    if (kept->is_in_call)
        return is_response && is_asked_in_session(call, question);
    if (kept->task)
        return call_owns(call, kept->task);
    client_key_of_call(call, own_key);
    return strcmp(own_key, question->key) == 0 || is_of_owner(call, kept);
}

/* The `key` of the question of this id. false: there is none, or another client's. */
static bool find_key_of_question(const struct call *call, struct str id, bool is_response,
                                 char key[])
{
    struct question_walk walk = question_walk_id(call->worker->gateway->questions, id);
    const struct question *question;
    bool is_found = false;
    while ((question = question_walk_next(&walk))) {
        is_found = may_answer(call, question, is_response);
        memcpy(key, question->key, QUESTION_KEY_BYTES);
    }
    return is_found;
}

void question_find_key(const struct call *call, struct str id, char key[])
{
    if (!find_key_of_question(call, id, false, key))
        client_key_of_call(call, key);
}

/* The question that the response's id names: the server's own id in the client's session, or the
 * gateway's. */
static bool find_question(struct call *call, char **our_id, char key[],
                          struct question_match *match)
{
    struct str id = call->envelope.id;
    *our_id = NULL;
    if (str_starts_with(id, STR("\"tg:"))) {
        char *text = json_string_text(id, NULL);
        *our_id = memory_copy_text(text + 3);
        (*our_id)[strcspn(*our_id, ".")] = '\0'; /* behind it: which replica has asked */
        free(text);
        match->id = str_from(*our_id);
        return find_key_of_question(call, match->id, true, key);
    }
    match->upstream_id = id;
    match->session = str_from(call->session);
    client_key_of_call(call, key);
    return key[0] && call->session[0];
}

static void answer_too_late(struct call *call, enum question_state was)
{
    OWNED_BUFFER(message);
    OWNED_BUFFER(text);
    buffer_append_format(&text, "The request is no longer open: %s", question_end_name(was));
    jsonrpc_write_error(&message, STR_EMPTY, JSONRPC_INVALID_PARAMS, buffer_str(&text), NULL);
    call_answer_status(call, 400, buffer_str(&message));
}

bool question_take_response(struct call *call)
{
    struct gateway_worker *worker = call->worker;
    struct gateway *gateway = worker->gateway;
    char key[QUESTION_KEY_BYTES];
    struct question_match match = {0};
    struct question_closing closing = {.state = QUESTION_ANSWERED_ON_STREAM};
    char *our_id;
    bool is_taken = false;
    if (question_table_count(gateway->questions) == 0)
        return false;
    call_identify(call);
    if (call_is_stranger(call))
        return false;
    if (find_question(call, &our_id, key, &match)) {
        struct kept_question *kept = question_close(gateway, str_from(key), &match, &closing);
        if (kept && (our_id || answer_gate_applies(kept->task))) {
            deliver_answer(worker, kept,
                           &(struct server_response){call->envelope.result, call->envelope.error},
                           NULL);
            call_answer_status(call, 202, STR_EMPTY);
            is_taken = true;
        } else if (!kept && closing.was != QUESTION_OPEN) {
            answer_too_late(call, closing.was);
            is_taken = true;
        }
        if (kept && !is_taken)
            question_settle(worker, kept); /* the call may be gone */
    }
    free(our_id);
    return is_taken;
}
