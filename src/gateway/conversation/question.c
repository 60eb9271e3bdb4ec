/* A question begins with a request of the server, and ends with what it belongs to. In between it
 * is in the table, on the loop that took it: closed, perhaps open again, and freed. */
#include "question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer_gate.h"
#include "call/broadcast.h"
#include "call/client_profile.h"
#include "inbox/inbox.h"
#include "question_internal.h"
#include "replicas/replicas.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/elicitation.h"
#include "taskgate/mcp/question.h"

/* A form is checked and shown on a loop, so it is smaller. A conversation is only passed on. */
#define ELICITATION_BYTES ((size_t)64 * 1024)
#define SAMPLING_BYTES ((size_t)1024 * 1024)

static const char *const methods[QUESTION_KIND_COUNT] = {MCP_ELICIT, MCP_SAMPLE, MCP_LIST_ROOTS};

bool question_read_kind(struct str request, enum question_kind *kind)
{
    struct str method = json_member(request, "method");
    for (size_t i = 0; i < QUESTION_KIND_COUNT; i++) {
        *kind = (enum question_kind)i;
        if (json_string_equals(method, str_from(methods[i])))
            return true;
    }
    return false;
}

/* ---- the client that can answer ---- */

bool question_has_tools(const struct call *call, enum question_kind kind)
{
    /* A tool that answers, and those of which one shows what is to be answered. */
    static const struct {
        enum config_pseudo_tool answers, shows[3];
    } needed[] = {
        [QUESTION_ELICITATION] = {PSEUDO_TOOL_RESPOND_TO_ELICITATION,
                                  {PSEUDO_TOOL_GET_ELICITATIONS, PSEUDO_TOOL_GET_TASK,
                                   PSEUDO_TOOL_GET_TASK_RESULT}},
        [QUESTION_SAMPLING] = {PSEUDO_TOOL_RESPOND_TO_SAMPLING,
                               {PSEUDO_TOOL_GET_SAMPLING_REQUESTS,
                                PSEUDO_TOOL_GET_SAMPLING_REQUESTS,
                                PSEUDO_TOOL_GET_SAMPLING_REQUESTS}},
    };
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    bool is_shown = false;
    ASSERT_NUMBERS(kind, <, QUESTION_ROOTS);
    for (size_t i = 0; i < 3; i++)
        is_shown = is_shown || config_pseudo_offers(pseudo, needed[kind].shows[i]);
    return client_is_shown_tools(call) && is_shown &&
           config_pseudo_offers(pseudo, needed[kind].answers);
}

bool question_declares_roots(const struct call *call)
{
    return json_type(json_path(buffer_str(&call->declared), "capabilities", "roots")) ==
           JSON_OBJECT;
}

void question_audience(const struct call *call, struct question_audience *audience)
{
    const struct session_facts *facts = &call->facts;
    bool can_any = false;
    client_key_of_call(call, audience->key);
    memcpy(audience->owner, call->owner, sizeof audience->owner);
    audience->can[QUESTION_ELICITATION] = facts->client.declares_elicitation;
    audience->can[QUESTION_SAMPLING] = facts->client.declares_sampling;
    audience->can[QUESTION_ROOTS] = question_declares_roots(call);
    for (size_t i = 0; i < QUESTION_ROOTS; i++) {
        if (!audience->can[i])
            audience->can[i] = call->session[0] && question_has_tools(call, (enum question_kind)i);
        can_any = can_any || audience->can[i];
    }
    audience->is_closed = facts->known && client_knows_tasks(call) && !can_any;
}

/* ---- its names ---- */

const char *question_end_name(enum question_state state)
{
    ASSERT_NUMBERS(state, <=, QUESTION_REJECTED);
    static const char *const names[] = {
        [QUESTION_OPEN] = "",
        [QUESTION_ANSWERED_ON_STREAM] = "answered by the client's response",
        [QUESTION_ANSWERED_IN_TASK] = "answered in tasks/get",
        [QUESTION_ANSWERED_BY_TOOL] = "answered by a tool",
        [QUESTION_EXPIRED] = "not answered in time",
        [QUESTION_WITHDRAWN] = "withdrawn by the server",
        [QUESTION_REJECTED] = "the call has ended",
    };
    return names[state];
}

void question_write_sent_id(const struct question *question, struct buffer *out)
{
    const struct kept_question *kept = question->owner;
    if (question->sent_as_it_came)
        buffer_append_text(out, question->upstream_id);
    else
        replicas_write_question_id(kept->worker->gateway->replicas, question->id, out);
}

/* ---- offering ---- */

static const struct question_events *events_of(const struct gateway_worker *worker)
{
    return worker->gateway->question_events;
}

static bool is_open_in_task(struct gateway *gateway, const struct task *task)
{
    char key[QUESTION_KEY_BYTES];
    const struct question_match match = {.task = str_from(task->id)};
    const struct question *question;
    bool is_open = false;
    client_key_or_id_of_task(task, key);
    struct question_walk walk = question_walk(gateway->questions, str_from(key), &match);
    while ((question = question_walk_next(&walk)))
        is_open = is_open || question->state == QUESTION_OPEN;
    return is_open;
}

static void offer_task(struct gateway_worker *worker, struct task *task, struct str none)
{
    if (is_open_in_task(worker->gateway, task))
        events_of(worker)->offer(worker, task);
}

void question_offer(struct gateway *gateway, struct task *task)
{
    broadcast_task(gateway, task, STR_EMPTY, offer_task);
}

/* The task looks different now, and may have something to ask. */
static void deliver_question_change(struct gateway_worker *worker, struct task *task,
                                    struct str none)
{
    events_of(worker)->changed(worker, task);
    events_of(worker)->status(worker, task);
    offer_task(worker, task, none);
}

/* Clients that see its task are notified on all workers. Nothing happens without a task. */
static void announce_change(struct gateway *gateway, const struct kept_question *kept)
{
    if (kept->task)
        broadcast_task(gateway, kept->task, STR_EMPTY, deliver_question_change);
}

/* Its execution alone is notified, on the loop of the question. Nothing happens without a task. */
static void note_question_change(const struct kept_question *kept)
{
    if (kept->task)
        events_of(kept->worker)->changed(kept->worker, kept->task);
}

/* ---- withdrawing ---- */

/* A stream shows a request that is closed now. */
struct withdrawal {
    struct task *task; /* or NULL */
    uint64_t claimant; /* the stream's number */
    struct str message;
};

static void own_withdrawal(void *message)
{
    struct withdrawal *withdrawal = message;
    if (withdrawal->task)
        task_ref(withdrawal->task);
    withdrawal->message = broadcast_copy(withdrawal->message);
}

static void finish_withdrawal(void *message)
{
    struct withdrawal *withdrawal = message;
    task_unref(withdrawal->task);
    broadcast_release(withdrawal->message);
}

static void deliver_withdrawal(struct gateway_worker *worker, const void *message)
{
    const struct withdrawal *withdrawal = message;
    events_of(worker)->send(worker, withdrawal->task, withdrawal->claimant, withdrawal->message);
}

static const struct broadcast_kind withdrawal_kind = {.bytes = sizeof(struct withdrawal),
                                                      .own = own_withdrawal,
                                                      .finish = finish_withdrawal,
                                                      .deliver = deliver_withdrawal};

/* It is closed, so a stream that has claimed it takes it back: the client may show a form for it.
 */
static void withdraw_question(struct gateway_worker *worker, const struct kept_question *kept)
{
    const struct question *question = &kept->question;
    ASSERT(question->state != QUESTION_OPEN);
    if (question->claimant == 0 || question->state == QUESTION_ANSWERED_ON_STREAM)
        return;
    OWNED_BUFFER(id);
    OWNED_BUFFER(message);
    OWNED_BUFFER(related);
    question_write_sent_id(question, &id);
    jsonrpc_write_cancelled(&message, buffer_str(&id), question_end_name(question->state));
    if (question->task[0])
        dialect_write_related_message(&related, buffer_str(&message), STR_EMPTY,
                                      str_from(question->task));
    else
        buffer_append(&related, buffer_str(&message));
    const struct withdrawal withdrawal = {kept->task, question->claimant, buffer_str(&related)};
    broadcast_send(worker->gateway, &withdrawal_kind, &withdrawal);
}

/* ---- to clients that know no tasks ---- */

static void add_inbox_event(const struct kept_question *kept, enum inbox_event type,
                            struct str params)
{
    const struct question *question = &kept->question;
    OWNED_BUFFER(data);
    if (question->kind == QUESTION_ROOTS)
        return; /* no tool answers it */
    buffer_append_format(&data, "{\"requestId\":\"%s\"", question->id);
    if (params.length > 0) {
        buffer_append_text(&data, ",\"params\":");
        buffer_append(&data, params);
    }
    buffer_append_char(&data, '}');
    inbox_add_session_event(kept->worker->gateway, str_from(question->key), type,
                            str_from(question->source), buffer_str(&data));
}

/* A new question: clients that may answer it are notified. On any worker, as the next four. */
static void announce_question(const struct kept_question *kept)
{
    bool is_elicitation = kept->question.kind == QUESTION_ELICITATION;
    add_inbox_event(kept, is_elicitation ? INBOX_ELICITATION_REQUEST : INBOX_SAMPLING_REQUEST,
                    json_member(str_from(kept->question.message), "params"));
    if (!kept->task) {
        broadcast_client(kept->worker->gateway, str_from(kept->question.key),
                         events_of(kept->worker)->offer_client);
        return;
    }
    note_question_change(kept);
    announce_change(kept->worker->gateway, kept);
}

/* It has expired: notifies a client without tasks. */
static void announce_expiry(const struct kept_question *kept)
{
    bool is_elicitation = kept->question.kind == QUESTION_ELICITATION;
    add_inbox_event(kept, is_elicitation ? INBOX_ELICITATION_EXPIRED : INBOX_SAMPLING_EXPIRED,
                    STR_EMPTY);
}

/* ---- to the server ---- */

void question_write_error(struct buffer *error, int code, struct str message)
{
    buffer_append_format(error, "{\"code\":%d,\"message\":", code);
    buffer_append_json_string(error, message);
    buffer_append_char(error, '}');
}

void question_respond(struct gateway_worker *worker, const struct kept_question *kept,
                      const struct server_response *response, const struct exchange_events *events,
                      void *context)
{
    struct str id = str_from(kept->question.upstream_id);
    ASSERT(!kept->is_settled && id.length > 0);
    if (kept->take_answer) {
        const struct question_asked asked = {kept->worker, kept->task, kept->question.call,
                                             kept->question.kind, id};
        kept->take_answer(worker, &asked, response);
        return;
    }
    const struct sending sending = {
        .source = kept->source, .snapshot = kept->snapshot, .headers = &kept->headers};
    server_respond(worker, &sending, id, response, events, context);
}

static void respond_result(struct gateway_worker *worker, const struct kept_question *kept,
                           struct str result)
{
    question_respond(worker, kept, &(struct server_response){.result = result}, NULL, NULL);
}

static void respond_error(struct gateway_worker *worker, const struct kept_question *kept, int code,
                          struct str message)
{
    OWNED_BUFFER(error);
    question_write_error(&error, code, message);
    question_respond(worker, kept, &(struct server_response){.error = buffer_str(&error)}, NULL,
                     NULL);
}

/* The time that a closed question is remembered, so that a late answer learns that it is late. */
#define CLOSED_KEPT_MS 60000
/* A question that is open again stays so for at least this long. */
#define REOPENED_LEAST_MS 1000

static void on_time(void *context);

/* ---- making ---- */

/* The server may ask the client to run the request as a task, but cannot poll such a task through
 * the gateway. So the client is asked for the answer itself, which the protocol allows as well. */
static char *copy_without_task(struct str message)
{
    struct str params = json_member(message, "params");
    OWNED_BUFFER(plain);
    OWNED_BUFFER(whole);
    if (json_member(params, "task").length == 0)
        return memory_copy_str(message);
    json_write_without_member(&plain, params, "task");
    json_write_with_member(&whole, message, "params", buffer_str(&plain));
    return buffer_take(&whole, NULL);
}

/* A call with a number has a client of its own, whose questions are not the task's. */
static struct task *task_asking(const struct question_origin *origin)
{
    return origin->call ? NULL : origin->task;
}

/* An open question of the worker of the origin, in no table yet. */
static struct kept_question *kept_question_create(const struct question_origin *origin,
                                                  enum question_kind kind, struct str message)
{
    struct kept_question *kept = memory_alloc(sizeof *kept);
    MAGIC_SET(kept, KEPT_QUESTION_MAGIC);
    struct question *question = &kept->question;
    const char *owner = origin->audience->owner;
    struct task *task = task_asking(origin);
    ASSERT(origin->headers || origin->take_answer);
    ASSERT_NUMBERS(kind, <, QUESTION_KIND_COUNT);
    if (!*owner && task) /* there is no client */
        owner = task->owner;
    kept->worker = origin->worker;
    kept->snapshot = snapshot_ref(origin->snapshot);
    kept->source = origin->source;
    kept->task = task ? task_ref(task) : NULL;
    snprintf(kept->owner, sizeof kept->owner, "%s", owner);
    kept->take_answer = origin->take_answer;
    headers_init(&kept->headers, true);
    if (origin->headers)
        headers_add_all(&kept->headers, origin->headers);
    loop_timer_init(&kept->timer, origin->worker->loop, on_time, kept);
    list_init(&question->node);
    random_ulid(question->id);
    question->owner = kept;
    question->kind = kind;
    if (task)
        client_key_or_id_of_task(task, question->key);
    else
        memcpy(question->key, origin->audience->key, sizeof question->key);
    snprintf(question->session, sizeof question->session, "%s", origin->session);
    question->source = memory_copy_text(origin->source->id);
    question->task = memory_copy_text(task ? task->id : "");
    question->upstream_id = memory_copy_str(json_member(message, "id"));
    question->message = copy_without_task(message);
    question->call = origin->call;
    question->is_on_stream = origin->is_on_stream;
    question->ends_with_session = origin->is_on_stream || owner_is_session(owner);
    question->asked_ms = clock_now_ms();
    return kept;
}

/* ---- freeing ---- */

/* It is in no table, or the worker ends. */
static void kept_question_destroy(struct kept_question *kept)
{
    loop_timer_stop(&kept->timer);
    headers_finish(&kept->headers);
    snapshot_unref(kept->snapshot);
    task_unref(kept->task);
    free(kept->question.source);
    free(kept->question.task);
    free(kept->question.upstream_id);
    free(kept->question.message);
    MAGIC_CLEAR(kept);
    free(kept);
}

static void forget(struct kept_question *kept)
{
    ASSERT(kept->is_settled && kept->question.state != QUESTION_OPEN);
    question_table_remove(kept->worker->gateway->questions, &kept->question);
    kept_question_destroy(kept);
}

void question_drop(struct gateway_worker *worker)
{
    struct question_walk walk = question_walk_all(worker->gateway->questions);
    const struct question *question;
    while ((question = question_walk_next(&walk))) {
        struct kept_question *kept = question->owner;
        if (!kept || kept->worker != worker)
            continue;
        question_walk_remove(&walk);
        kept_question_destroy(kept);
    }
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

/* On its own loop. A client that has seen the request, in a task or on a stream, may answer
 * late. */
static void on_question_settled(void *context)
{
    struct kept_question *kept = kept_question_from(context);
    ASSERT(!kept->is_settled);
    kept->is_settled = true;
    note_question_change(kept);
    if (kept->task || kept->question.claimant != 0)
        loop_timer_start(&kept->timer, CLOSED_KEPT_MS);
    else
        forget(kept);
}

void question_settle(struct gateway_worker *worker, struct kept_question *kept)
{
    ASSERT(kept->question.state != QUESTION_OPEN);
    log_info("A question of upstream's is closed", LOG_TEXT("source", kept->question.source),
             LOG_TEXT("question", kept->question.id),
             LOG_TEXT("outcome", question_end_name(kept->question.state)));
    withdraw_question(worker, kept);
    if (kept->question.state != QUESTION_REJECTED)
        announce_change(worker->gateway, kept);
    loop_post(kept->worker->loop, on_question_settled, kept);
}

/* On its own loop. The wait for an answer continues. */
static void on_reopened(void *context)
{
    struct kept_question *kept = kept_question_from(context);
    int64_t timeout_ms = kept->snapshot->config->pseudo.elicitation_timeout_ms;
    ASSERT(!kept->is_settled);
    int64_t left_ms = kept->question.asked_ms + timeout_ms - clock_now_ms();
    loop_timer_start(&kept->timer, left_ms > REOPENED_LEAST_MS ? left_ms : REOPENED_LEAST_MS);
    announce_change(kept->worker->gateway, kept);
}

bool question_reopen(struct gateway_worker *worker, struct kept_question *kept)
{
    /* Posted first: after the reopening another thread may close it, and its loop free it. */
    loop_post(kept->worker->loop, on_reopened, kept);
    if (question_table_reopen(worker->gateway->questions, &kept->question))
        return true;
    question_settle(worker, kept);
    return false;
}

/* ---- its clock ---- */

static void expire(struct kept_question *kept)
{
    struct question_closing closing = {.state = QUESTION_EXPIRED};
    const struct question_match self = {.id = str_from(kept->question.id)};
    struct str key = str_from(kept->question.key);
    int64_t timeout_ms = kept->snapshot->config->pseudo.elicitation_timeout_ms;
    if (question_close(kept->worker->gateway, key, &self, &closing) != kept)
        return; /* another thread has closed it, and settles it */
    OWNED_BUFFER(text);
    static const char *const names[QUESTION_KIND_COUNT] = {"Elicitation", "Sampling", "Roots"};
    buffer_append_format(&text, "%s request timed out after %lldms", names[kept->question.kind],
                         (long long)timeout_ms);
    respond_error(kept->worker, kept, -32001, buffer_str(&text));
    announce_expiry(kept);
    question_settle(kept->worker, kept);
}

static void on_time(void *context)
{
    struct kept_question *kept = kept_question_from(context);
    if (kept->is_settled)
        forget(kept);
    else
        expire(kept);
}

/* ---- where nobody can answer ---- */

/* The server must not hang. An absent person declines. An absent model is an error, and so is a
 * request for a capability that the client was never said to have. */
static void decline(const struct kept_question *kept, bool is_closed)
{
    enum question_kind kind = kept->question.kind;
    log_info("A question of upstream's is declined: nobody can answer it",
             LOG_TEXT("source", kept->source->id), LOG_TEXT("method", methods[kind]));
    if (kind == QUESTION_ELICITATION && !is_closed)
        respond_result(kept->worker, kept, STR("{\"action\":\"decline\"}"));
    else if (kind == QUESTION_SAMPLING)
        respond_error(kept->worker, kept, -32601,
                      STR("Method not found: nobody can sample for this client"));
    else
        respond_error(kept->worker, kept, -32601, STR("Method not found"));
}

/* ---- taking ---- */

/* Repeated: a stream was opened again, and the first still waits. */
static enum question_added keep(struct kept_question *kept)
{
    enum question_added added =
        question_table_add(kept->worker->gateway->questions, &kept->question);
    if (added == QUESTION_TOO_MANY) {
        respond_error(kept->worker, kept, jsonrpc_error_code(JSONRPC_RATE_LIMITED),
                      STR("Too many requests wait for this client"));
    } else if (added == QUESTION_ADDED) {
        log_info("Upstream asks", LOG_TEXT("source", kept->source->id),
                 LOG_TEXT("method", methods[kept->question.kind]),
                 LOG_TEXT("question", kept->question.id), LOG_TEXT("task", kept->question.task));
        loop_timer_start(&kept->timer, kept->snapshot->config->pseudo.elicitation_timeout_ms);
        announce_question(kept);
    }
    return added;
}

void question_key_of_call(uint64_t call, char key[])
{
    snprintf(key, QUESTION_KEY_BYTES, "call:%llu", (unsigned long long)call);
}

bool question_ask_in_call(const struct question_origin *origin, enum question_kind kind,
                          struct str id, struct buffer *own_id)
{
    OWNED_BUFFER(message);
    ASSERT(origin->call != 0 && origin->take_answer);
    buffer_append_format(&message, "{\"id\":%.*s}", STR_ARGS(id));
    struct kept_question *kept = kept_question_create(origin, kind, buffer_str(&message));
    kept->is_in_call = true;
    random_uuid(kept->question.id);
    question_key_of_call(origin->call, kept->question.key);
    if (question_table_add(origin->worker->gateway->questions, &kept->question) != QUESTION_ADDED) {
        kept_question_destroy(kept);
        return false;
    }
    buffer_append_format(own_id, "tg:%s", kept->question.id);
    return true;
}

static bool is_well_formed(enum question_kind kind, struct str params, struct error *error)
{
    if (kind == QUESTION_ROOTS)
        return true;
    return kind == QUESTION_ELICITATION ? elicitation_check_request(params, error)
                                        : sampling_check_request(params, error);
}

bool question_take(const struct question_origin *origin, struct str message)
{
    struct error error = {""};
    enum question_kind kind = QUESTION_ELICITATION;
    enum question_added added = QUESTION_TOO_MANY;
    bool has_key = task_asking(origin) || origin->audience->key[0];
    question_read_kind(message, &kind);
    struct kept_question *kept = kept_question_create(origin, kind, message);
    size_t most = kind == QUESTION_ELICITATION ? ELICITATION_BYTES : SAMPLING_BYTES;
    if (!origin->audience->can[kind] || !has_key || answer_gate_denies(kept->task))
        decline(kept, origin->audience->is_closed);
    else if (message.length > most)
        respond_error(kept->worker, kept, jsonrpc_error_code(JSONRPC_INVALID_PARAMS),
                      STR("The request is larger than the gateway keeps"));
    else if (!is_well_formed(kind, json_member(message, "params"), &error))
        respond_error(kept->worker, kept, jsonrpc_error_code(JSONRPC_INVALID_PARAMS),
                      str_from(error.message));
    else
        added = keep(kept);
    if (added != QUESTION_ADDED)
        kept_question_destroy(kept);
    return added != QUESTION_TOO_MANY;
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
    question_table_end(worker->gateway->questions, key, match);
}

bool question_take_cancel(const struct question_origin *origin, struct str message)
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
    if (task_asking(origin))
        client_key_or_id_of_task(origin->task, key);
    else
        memcpy(key, origin->audience->key, sizeof key);
    struct kept_question *kept = question_close(gateway, str_from(key), &match, &closing);
    if (kept)
        question_settle(origin->worker, kept);
    else
        question_table_end(gateway->questions, str_from(key), &match);
    return kept || closing.was != QUESTION_OPEN;
}

void question_end_task(struct gateway_worker *worker, const struct task *task)
{
    char key[QUESTION_KEY_BYTES];
    const struct question_match match = {.task = str_from(task->id)};
    client_key_or_id_of_task(task, key);
    close_all(worker, str_from(key), &match, QUESTION_REJECTED);
}

void question_end_call(struct gateway_worker *worker, struct str key, uint64_t call)
{
    const struct question_match match = {.call = call};
    if (call != 0)
        close_all(worker, key, &match, QUESTION_REJECTED);
}

/* A call that goes on without its client must not hang. */
static void cancel(struct gateway_worker *worker, const struct kept_question *kept)
{
    if (kept->question.kind == QUESTION_ELICITATION)
        respond_result(worker, kept, STR("{\"action\":\"cancel\"}"));
    else
        respond_error(worker, kept, -1, STR("The client has ended its session"));
}

void question_end_session(struct gateway_worker *worker, struct str key)
{
    const struct question_match meant = {.ends_with_session = true};
    struct question_closing closing = {.state = QUESTION_REJECTED};
    struct kept_question *kept;
    if (key.length == 0 || question_table_count(worker->gateway->questions) == 0)
        return;
    while ((kept = question_close(worker->gateway, key, &meant, &closing))) {
        if (!kept->question.is_on_stream)
            cancel(worker, kept);
        question_settle(worker, kept);
    }
    question_table_end(worker->gateway->questions, key, &meant);
}
