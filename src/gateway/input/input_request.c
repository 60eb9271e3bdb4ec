/* The life of a question: taken, told, closed by whoever comes first. */
#include "input_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inbox/inbox.h"
#include "input_internal.h"
#include "mcp_client/rpc_call.h"
#include "relay/notification_stream.h"
#include "request/worker.h"
#include "run/execution.h"
#include "run/result_wait.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"
#include "taskgate/mcp/sampling.h"

/* A form is checked and shown on a loop; a conversation is only passed on. */
#define ELICITATION_BYTES ((size_t)64 * 1024)
#define SAMPLING_BYTES ((size_t)1024 * 1024)
/* So long a closed one is remembered, so that whoever answers late is told. */
#define CLOSED_KEPT_MS 60000

static const char *const methods[QUESTION_KIND_COUNT] = {"elicitation/create",
                                                         "sampling/createMessage"};

bool questions_are_asked_by(struct str method, enum question_kind *kind)
{
    for (size_t i = 0; i < QUESTION_KIND_COUNT; i++) {
        if (str_equal(method, str_from(methods[i]))) {
            *kind = (enum question_kind)i;
            return true;
        }
    }
    return false;
}

uint64_t questions_number(void)
{
    static atomic_uint_fast64_t last;
    return atomic_fetch_add(&last, 1) + 1;
}

/* ---- whose they are ---- */

bool questions_have_tools(const struct call *call, enum question_kind kind)
{
    static const enum config_pseudo_tool needed[QUESTION_KIND_COUNT][2] = {
        [QUESTION_ELICITATION] = {PSEUDO_TOOL_GET_ELICITATIONS, PSEUDO_TOOL_RESPOND_TO_ELICITATION},
        [QUESTION_SAMPLING] = {PSEUDO_TOOL_GET_SAMPLING_REQUESTS, PSEUDO_TOOL_RESPOND_TO_SAMPLING},
    };
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    return client_is_shown_tools(call) && config_pseudo_offers(pseudo, needed[kind][0]) &&
           config_pseudo_offers(pseudo, needed[kind][1]);
}

void questions_audience(const struct call *call, struct question_audience *audience)
{
    const struct session_facts *facts = &call->facts;
    bool can_any = false;
    client_key_of_call(call, audience->key);
    audience->can[QUESTION_ELICITATION] = facts->declares_elicitation;
    audience->can[QUESTION_SAMPLING] = facts->declares_sampling;
    for (size_t i = 0; i < QUESTION_KIND_COUNT; i++) {
        if (!audience->can[i])
            audience->can[i] =
                audience->key[0] && questions_have_tools(call, (enum question_kind)i);
        can_any = can_any || audience->can[i];
    }
    audience->is_closed = facts->known && facts->declares_tasks && !can_any;
}

/* ---- responses to upstream ---- */

static void respond(struct gateway_worker *worker, const struct question_origin *origin,
                    struct str id, const struct question_response *response)
{
    struct buffer body;
    buffer_init(&body);
    if (response->result.length > 0) {
        jsonrpc_write_result(&body, id, response->result);
    } else if (response->error.length > 0) {
        jsonrpc_write_error_text(&body, id, response->error);
    } else {
        struct buffer error;
        buffer_init(&error);
        buffer_append_format(&error, "{\"code\":%d,\"message\":", response->error_code);
        buffer_append_json_string(&error, response->error_message);
        buffer_append_char(&error, '}');
        jsonrpc_write_error_text(&body, id, buffer_str(&error));
        buffer_finish(&error);
    }
    const struct ask_options options = {.source = origin->source,
                                        .snapshot = origin->snapshot,
                                        .headers = origin->headers,
                                        .body = buffer_str(&body)};
    ask_tell(worker, &options);
    buffer_finish(&body);
}

void question_respond(struct gateway_worker *worker, const struct kept_question *kept,
                      const struct question_response *response)
{
    const struct question_origin origin = {
        .snapshot = kept->snapshot, .source = kept->source, .headers = &kept->headers};
    respond(worker, &origin, str_from(kept->question.upstream_id), response);
}

/* Upstream must not hang: a person who is not there declines, a model that is not there is an
 * error, and so is everything where the capability was never offered. */
static void decline(const struct question_origin *origin, enum question_kind kind, struct str id)
{
    struct question_response response = {.error_code = -32601,
                                         .error_message = STR("Method not found")};
    if (kind == QUESTION_ELICITATION && !origin->audience->is_closed)
        response.result = STR("{\"action\":\"decline\"}");
    else if (kind == QUESTION_SAMPLING)
        response.error_message = STR("Method not found: nobody can sample for this client");
    log_info("A question of upstream's is declined: nobody can answer it",
             LOG_TEXT("source", origin->source->id), LOG_TEXT("method", methods[kind]));
    respond(origin->worker, origin, id, &response);
}

/* ---- freeing ---- */

static void destroy(struct kept_question *kept)
{
    loop_timer_stop(&kept->timer);
    headers_finish(&kept->headers);
    snapshot_unref(kept->snapshot);
    task_unref(kept->task);
    free(kept->question.source);
    free(kept->question.task);
    free(kept->question.upstream_id);
    free(kept->question.message);
    free(kept);
}

static void forget(struct kept_question *kept)
{
    question_table_remove(kept->worker->gateway->questions, &kept->question);
    destroy(kept);
}

static bool is_of_worker(const void *worker, const struct question *question)
{
    const struct kept_question *kept = question->owner;
    return kept->worker == worker;
}

void questions_drop(struct gateway_worker *worker)
{
    struct question *question;
    while ((question = question_table_take(worker->gateway->questions, is_of_worker, worker)))
        destroy(question->owner);
}

/* ---- telling ---- */

void questions_offer(struct gateway_worker *worker, struct task *task, struct str none)
{
    if (!questions_are_open(worker->gateway, task))
        return;
    waiting_offer(worker, task);
    stream_offer(worker, task);
}

void questions_offer_client(struct gateway_worker *worker, struct task *none, struct str key)
{
    stream_offer_client(worker, key);
}

/* On every worker: the task looks different now, and may have something to ask. */
static void tell_worker(struct gateway_worker *worker, struct task *task, struct str none)
{
    execution_questions_changed(worker, task);
    stream_tell_status(worker, task);
    questions_offer(worker, task, none);
}

/* On every worker: the stream numbered by the first word has a request that is answered now. */
static void withdraw_from_worker(struct gateway_worker *worker, struct task *task,
                                 struct str message)
{
    struct str number, text;
    uint64_t claimant;
    str_cut(message, ' ', &number, &text);
    if (!str_to_u64(number, &claimant))
        return;
    if (!task || !waiting_send(worker, task, claimant, text))
        stream_send(worker, claimant, text);
}

/* The client may be showing a form for what is answered already. */
static void withdraw(struct gateway_worker *worker, struct kept_question *kept)
{
    const struct question *question = &kept->question;
    if (question->claimant == 0 || question->state == QUESTION_ANSWERED_ON_STREAM)
        return;
    struct buffer message, related, text;
    buffer_init(&message);
    buffer_init(&related);
    buffer_init(&text);
    buffer_append_text(&message, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                 "\"params\":{\"requestId\":");
    question_write_sent_id(question, &message);
    buffer_append_format(&message, ",\"reason\":\"%s\"}}", question_end_name(question->state));
    if (question->task[0])
        dialect_write_related_message(&related, buffer_str(&message), STR_EMPTY,
                                      str_from(question->task));
    else
        buffer_append(&related, buffer_str(&message));
    buffer_append_format(&text, "%llu ", (unsigned long long)question->claimant);
    buffer_append(&text, buffer_str(&related));
    workers_broadcast(worker->gateway, withdraw_from_worker, kept->task, buffer_str(&text));
    buffer_finish(&text);
    buffer_finish(&related);
    buffer_finish(&message);
}

/* ---- closing ---- */

struct kept_question *question_close(struct gateway *gateway, struct str key,
                                     const struct question_match *match,
                                     struct question_closing *closing)
{
    closing->now_ms = clock_now_ms();
    struct question *question = question_table_close(gateway->questions, key, match, closing);
    return question ? question->owner : NULL;
}

/* On its own loop. Who has seen the request, in a task or on a stream, may answer late. */
static void on_settled(void *context)
{
    struct kept_question *kept = context;
    kept->is_settled = true;
    if (kept->task)
        execution_questions_changed(kept->worker, kept->task);
    if (kept->task || kept->question.claimant != 0)
        loop_timer_start(&kept->timer, CLOSED_KEPT_MS);
    else
        forget(kept);
}

void question_settle(struct gateway_worker *worker, struct kept_question *kept)
{
    log_info("A question of upstream's is closed", LOG_TEXT("source", kept->question.source),
             LOG_TEXT("question", kept->question.id),
             LOG_TEXT("outcome", question_end_name(kept->question.state)));
    withdraw(worker, kept);
    if (kept->task && kept->question.state != QUESTION_REJECTED)
        workers_broadcast(worker->gateway, tell_worker, kept->task, STR_EMPTY);
    loop_post(kept->worker->loop, on_settled, kept);
}

/* Tells a client that knows no tasks. */
static void tell_event(const struct kept_question *kept, enum pseudo_event type, struct str params)
{
    const struct question *question = &kept->question;
    struct buffer data;
    buffer_init(&data);
    buffer_append_format(&data, "{\"requestId\":\"%s\"", question->id);
    if (params.length > 0) {
        buffer_append_text(&data, ",\"params\":");
        buffer_append(&data, params);
    }
    buffer_append_char(&data, '}');
    pseudo_session_event(kept->worker->gateway, str_from(question->key), type,
                         str_from(question->source), buffer_str(&data));
    buffer_finish(&data);
}

static void expire(struct kept_question *kept)
{
    struct question_closing closing = {.state = QUESTION_EXPIRED};
    const struct question_match self = {.id = str_from(kept->question.id)};
    struct str key = str_from(kept->question.key);
    int64_t timeout_ms = kept->snapshot->config->pseudo.elicitation_timeout_ms;
    if (question_close(kept->worker->gateway, key, &self, &closing) != kept)
        return; /* somebody was faster, and settles it */
    struct buffer text;
    bool is_elicitation = kept->question.kind == QUESTION_ELICITATION;
    buffer_init(&text);
    buffer_append_format(&text, "%s request timed out after %lldms",
                         is_elicitation ? "Elicitation" : "Sampling", (long long)timeout_ms);
    question_respond(
        kept->worker, kept,
        &(struct question_response){.error_code = -32001, .error_message = buffer_str(&text)});
    buffer_finish(&text);
    tell_event(kept, is_elicitation ? PSEUDO_ELICITATION_EXPIRED : PSEUDO_SAMPLING_EXPIRED,
               STR_EMPTY);
    question_settle(kept->worker, kept);
}

static void on_time(void *context)
{
    struct kept_question *kept = context;
    if (kept->is_settled)
        forget(kept);
    else
        expire(kept);
}

/* ---- taking ---- */

/* A client that runs questions as tasks of its own would be asked for them by upstream, and cannot
 * be from here: it is asked for the answer itself, which the protocol has upstream take as well. */
static char *copy_without_task(struct str message)
{
    struct str params = json_member(message, "params");
    struct buffer plain = {0}, whole = {0};
    if (json_member(params, "task").length == 0)
        return memory_copy_str(message);
    json_write_without_member(&plain, params, "task");
    json_write_with_member(&whole, message, "params", buffer_str(&plain));
    buffer_finish(&plain);
    return buffer_take(&whole, NULL);
}

static struct kept_question *keep(const struct question_origin *origin, enum question_kind kind,
                                  struct str message)
{
    struct kept_question *kept = memory_alloc(sizeof *kept);
    struct question *question = &kept->question;
    kept->worker = origin->worker;
    kept->snapshot = snapshot_ref(origin->snapshot);
    kept->source = origin->source;
    kept->task = origin->task ? task_ref(origin->task) : NULL;
    headers_init(&kept->headers, true);
    for (size_t i = 0; i < origin->headers->count; i++)
        headers_add(&kept->headers, origin->headers->items[i].name,
                    origin->headers->items[i].value);
    loop_timer_init(&kept->timer, origin->worker->loop, on_time, kept);
    list_init(&question->node);
    random_ulid(question->id);
    question->owner = kept;
    question->kind = kind;
    if (origin->task)
        client_key_or_id_of_task(origin->task, question->key);
    else
        memcpy(question->key, origin->audience->key, sizeof question->key);
    snprintf(question->session, sizeof question->session, "%s", origin->session);
    question->source = memory_copy_text(origin->source->id);
    question->task = memory_copy_text(origin->task ? origin->task->id : "");
    question->upstream_id = memory_copy_str(json_member(message, "id"));
    question->message = copy_without_task(message);
    question->call = origin->call;
    question->asked_ms = clock_now_ms();
    return kept;
}

static void announce(struct kept_question *kept)
{
    bool is_elicitation = kept->question.kind == QUESTION_ELICITATION;
    tell_event(kept, is_elicitation ? PSEUDO_ELICITATION_REQUEST : PSEUDO_SAMPLING_REQUEST,
               json_member(str_from(kept->question.message), "params"));
    if (!kept->task) {
        workers_broadcast(kept->worker->gateway, questions_offer_client, NULL,
                          str_from(kept->question.key));
        return;
    }
    execution_questions_changed(kept->worker, kept->task);
    workers_broadcast(kept->worker->gateway, tell_worker, kept->task, STR_EMPTY);
}

static void take(const struct question_origin *origin, enum question_kind kind, struct str message)
{
    struct kept_question *kept = keep(origin, kind, message);
    switch (question_table_add(origin->worker->gateway->questions, &kept->question)) {
    case QUESTION_ADDED:
        log_info("Upstream asks", LOG_TEXT("source", origin->source->id),
                 LOG_TEXT("method", methods[kind]), LOG_TEXT("question", kept->question.id),
                 LOG_TEXT("task", kept->question.task));
        loop_timer_start(&kept->timer, origin->snapshot->config->pseudo.elicitation_timeout_ms);
        announce(kept);
        return;
    case QUESTION_TOO_MANY:
        question_respond(origin->worker, kept,
                         &(struct question_response){
                             .error_code = jsonrpc_error_code(JSONRPC_RATE_LIMITED),
                             .error_message = STR("Too many requests wait for this client")});
        break;
    case QUESTION_REPEATED: /* a stream was opened again: the first still waits */
        break;
    }
    destroy(kept);
}

static bool is_well_formed(enum question_kind kind, struct str params, struct error *error)
{
    return kind == QUESTION_ELICITATION ? elicitation_check_request(params, error)
                                        : sampling_check_request(params, error);
}

static void refuse(const struct question_origin *origin, struct str id, struct str why)
{
    respond(origin->worker, origin, id,
            &(struct question_response){.error_code = jsonrpc_error_code(JSONRPC_INVALID_PARAMS),
                                        .error_message = why});
}

void questions_take(const struct question_origin *origin, struct str message)
{
    struct error error = {""};
    enum question_kind kind = QUESTION_ELICITATION;
    struct str id = json_member(message, "id");
    char *method = json_string_text(json_member(message, "method"), NULL);
    questions_are_asked_by(str_from(method), &kind);
    free(method);
    size_t most = kind == QUESTION_ELICITATION ? ELICITATION_BYTES : SAMPLING_BYTES;
    bool has_key = origin->task || origin->audience->key[0];
    if (!origin->audience->can[kind] || !has_key)
        decline(origin, kind, id);
    else if (message.length > most)
        refuse(origin, id, STR("The request is larger than the gateway keeps"));
    else if (!is_well_formed(kind, json_member(message, "params"), &error))
        refuse(origin, id, str_from(error.message));
    else
        take(origin, kind, message);
}

/* ---- ends ---- */

/* Closes all that match. */
static void close_all(struct gateway_worker *worker, struct str key,
                      const struct question_match *match, enum question_state state)
{
    struct kept_question *kept;
    struct question_closing closing = {.state = state};
    if (question_table_count(worker->gateway->questions) == 0)
        return;
    while ((kept = question_close(worker->gateway, key, match, &closing)))
        question_settle(worker, kept);
}

bool questions_take_cancel(const struct question_origin *origin, struct str message)
{
    char key[QUESTION_KEY_BYTES];
    struct gateway *gateway = origin->worker->gateway;
    const struct question_match match = {
        .upstream_id = json_path(message, "params", "requestId"),
        .session = str_from(origin->session),
    };
    struct question_closing closing = {.state = QUESTION_WITHDRAWN};
    if (match.upstream_id.length == 0 || question_table_count(gateway->questions) == 0)
        return false;
    if (origin->task)
        client_key_or_id_of_task(origin->task, key);
    else
        memcpy(key, origin->audience->key, sizeof key);
    struct kept_question *kept = question_close(gateway, str_from(key), &match, &closing);
    if (kept)
        question_settle(origin->worker, kept);
    return kept || closing.was != QUESTION_OPEN;
}

void questions_end_task(struct gateway_worker *worker, const struct task *task)
{
    char key[QUESTION_KEY_BYTES];
    const struct question_match match = {.task = str_from(task->id)};
    client_key_or_id_of_task(task, key);
    close_all(worker, str_from(key), &match, QUESTION_REJECTED);
}

void questions_end_call(struct gateway_worker *worker, struct str key, uint64_t call)
{
    const struct question_match match = {.call = call};
    if (call != 0)
        close_all(worker, key, &match, QUESTION_REJECTED);
}

void questions_end_key(struct gateway_worker *worker, struct str key)
{
    const struct question_match any = {0};
    if (key.length > 0)
        close_all(worker, key, &any, QUESTION_REJECTED);
}
