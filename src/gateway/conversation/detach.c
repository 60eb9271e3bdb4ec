/* Calls that run whether or not their client waits: how one begins, how it becomes a task, what the
 * server answers, how it ends, and what becomes of it when its client gives it up or ends its
 * session. */
#include "detach_internal.h"

#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "call/call_span.h"
#include "call/client_profile.h"
#include "call/deferred_response.h"
#include "call/token_clock.h"
#include "decision/task_binding.h"
#include "inbox/inbox.h"
#include "inbox/repeated_calls.h"
#include "inbox/task_summary.h"
#include "invocation_rounds.h"
#include "rounds.h"
#include "state/quota.h"
#include "task_create.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

/* Until the server has taken the DELETE of a session. */
#define ENDING_MS 10000

static const struct detached_callbacks *callbacks_of(const struct detached_call *detached)
{
    return detached->base.worker->gateway->detached_callbacks;
}

/* ---- the end of its session ---- */

/* The server would end the session's promoted calls with it, so it is notified after the last of
 * them. */

static bool key_of_session(const struct detached_call *detached, char key[CLIENT_KEY_BYTES])
{
    client_key_of_session(detached->base.source, detached->base.session, key);
    return detached->base.session[0];
}

static void enter_session(const struct detached_call *detached)
{
    char key[CLIENT_KEY_BYTES];
    if (key_of_session(detached, key))
        quota_take(detached->base.worker->gateway->promoted_in, str_from(key), INT64_MAX,
                   INT64_MAX);
}

/* The client may have had a newer token at its end than when it called. */
static void end_at_server(const struct detached_call *detached)
{
    struct sending sending = invocation_sending(&detached->base);
    struct headers headers;
    headers_init(&headers, false);
    headers_add_all(&headers, sending.headers);
    if (detached->end_authorization)
        headers_set(&headers, STR("authorization"), str_from(detached->end_authorization));
    sending.headers = &headers;
    sending.method = "DELETE";
    sending.silence_ms = sending.total_ms = ENDING_MS;
    log_info("A session ends after the last of its promoted calls",
             LOG_TEXT("source", detached->base.source->id));
    exchange_notify(detached->base.worker, &sending);
    headers_finish(&headers);
}

static void leave_session(const struct detached_call *detached)
{
    struct gateway *gateway = detached->base.worker->gateway;
    char key[CLIENT_KEY_BYTES];
    if (!key_of_session(detached, key))
        return;
    quota_give_back(gateway->promoted_in, str_from(key));
    if (!quota_has(gateway->promoted_in, str_from(key)) &&
        quota_has(gateway->ended_sessions, str_from(key))) {
        quota_give_back(gateway->ended_sessions, str_from(key));
        end_at_server(detached);
    }
}

/* The mark comes before the look, so that a last call that ends meanwhile finds it. The
 * calls must not end either where the session is ended again. */
bool detached_calls_hold_session(const struct call *call)
{
    struct gateway *gateway = call->worker->gateway;
    char key[CLIENT_KEY_BYTES];
    if (!call->session[0])
        return false;
    client_key_of_session(call->source, call->session, key);
    if (call_is_stranger(call))
        return quota_has(gateway->ended_sessions, str_from(key));
    bool is_first = quota_take(gateway->ended_sessions, str_from(key), 1, INT64_MAX);
    bool holds = quota_has(gateway->promoted_in, str_from(key));
    if (is_first && !holds)
        quota_give_back(gateway->ended_sessions, str_from(key));
    return holds;
}

/* ---- the calls learn of it ---- */

struct session_end {
    struct str key, authorization; /* the last empty: the client has none */
};

static void session_end_own(void *message)
{
    struct session_end *end = message;
    end->key = broadcast_copy(end->key);
    end->authorization = broadcast_copy(end->authorization);
}

static void session_end_finish(void *message)
{
    struct session_end *end = message;
    broadcast_release(end->key);
    broadcast_release(end->authorization);
}

static void session_end_deliver(struct gateway_worker *worker, const void *message)
{
    const struct session_end *end = message;
    LIST_FOR_EACH_SAFE (node, next, &worker->detached) {
        struct detached_call *detached = LIST_ENTRY(node, struct detached_call, node);
        struct question_audience *audience = &detached->base.audience;
        if (!str_equal(str_from(audience->key), end->key))
            continue;
        if (owner_is_session(audience->owner))
            memset(audience->can, 0, sizeof audience->can);
        free(detached->end_authorization);
        detached->end_authorization =
            end->authorization.length > 0 ? memory_copy_str(end->authorization) : NULL;
    }
}

static const struct broadcast_kind end_of_session_kind = {.bytes = sizeof(struct session_end),
                                                          .own = session_end_own,
                                                          .finish = session_end_finish,
                                                          .deliver = session_end_deliver};

void detached_calls_end_session(const struct call *call, struct str key)
{
    struct headers headers;
    headers_init(&headers, true);
    if (call->exchange)
        headers_from_call(&headers, call);
    const struct session_end end = {key, headers_find(&headers, "authorization")};
    broadcast_send(call->worker->gateway, &end_of_session_kind, &end);
    headers_finish(&headers);
}

/* ---- its client's request ---- */

/* Names one client's request. A key has no space. */
static void write_request_name(struct buffer *out, struct str key, struct str request_id)
{
    buffer_append(out, key);
    buffer_append_char(out, ' ');
    buffer_append(out, request_id);
}

static void register_request(struct detached_call *detached)
{
    struct buffer name;
    buffer_init(&name);
    write_request_name(&name, str_from(detached->key), buffer_str(&detached->base.request_id));
    quota_take(detached->base.worker->gateway->detached, buffer_str(&name), INT64_MAX, INT64_MAX);
    list_append(&detached->base.worker->detached, &detached->node);
    buffer_finish(&name);
}

static void unregister_request(struct detached_call *detached)
{
    struct buffer name;
    buffer_init(&name);
    write_request_name(&name, str_from(detached->key), buffer_str(&detached->base.request_id));
    quota_give_back(detached->base.worker->gateway->detached, buffer_str(&name));
    list_remove(&detached->node);
    buffer_finish(&name);
}

/* ---- room for it ---- */

/* Clients with neither session nor token share one count. */
bool detached_task_reserve(const struct call *call, char key[CLIENT_KEY_BYTES])
{
    struct gateway *gateway = call->worker->gateway;
    const struct config *config = call->snapshot->config;
    inbox_key_of_call(call, key);
    return !atomic_load(&gateway->shutting_down) &&
           quota_take(gateway->promoted, str_from(key), config->pseudo.max_tasks_per_session,
                      config->limits.pending_total);
}

static void release_room(struct detached_call *detached)
{
    struct gateway *gateway = detached->base.worker->gateway;
    if (!detached->base.task)
        return;
    map_remove(detached->base.worker->detached_tasks, str_from(detached->base.id));
    task_room_give_back(gateway, detached->base.id);
    quota_give_back(gateway->promoted, str_from(detached->key));
    leave_session(detached);
    atomic_fetch_sub(&gateway->in_flight, 1);
}

/* ---- its end ---- */

/* Its client is asked nothing any more. */
static void end_rounds(struct detached_call *detached)
{
    struct invocation *base = &detached->base;
    if (!base->task || !base->up.has_asked)
        return;
    question_end_task(base->worker, base->task);
    rounds_forget(base->worker->gateway->questions, str_from(base->id));
}

void detached_call_end(struct detached_call *detached)
{
    struct invocation *base = &detached->base;
    if (conversation_where(base) == CONVERSATION_ENDED)
        return;
    exchange_abandon(base->exchange);
    base->exchange = NULL;
    end_rounds(detached);
    base->up.protocol->release(&base->up);
    loop_timer_stop(&base->timer);
    conversation_move(base, CONVERSATION_ENDED);
    question_end_call(base->worker, str_from(base->audience.key), detached->number);
    unregister_request(detached);
    release_room(detached);
    invocation_unref(base);
}

static void store_detached(struct detached_call *detached)
{
    ASSERT(detached->base.task);
    if (conversation_move(&detached->base, CONVERSATION_STORING))
        invocation_store(&detached->base);
    else
        detached_call_end(detached);
}

static void notify_server(const struct detached_call *detached, const char *reason)
{
    struct sending sending = invocation_sending(&detached->base);
    struct buffer body;
    if (!detached->base.exchange)
        return; /* a modern server sees its stream closed */
    buffer_init(&body);
    invocation_write_cancelled(&detached->base, reason, &body);
    sending.body = buffer_str(&body);
    exchange_notify(detached->base.worker, &sending);
    buffer_finish(&body);
}

/* ---- the same call made again joins it ---- */

static struct repeated_call join_of(const struct detached_call *detached, char key[])
{
    ASSERT(detached->base.task && detached->repeated[0]);
    client_key_of_task_owner(detached->base.task, key);
    return (struct repeated_call){str_from(key), detached->repeated, detached->base.task->id};
}

void detached_task_remember(const struct detached_call *detached)
{
    char key[CLIENT_KEY_BYTES];
    const struct repeated_call join = join_of(detached, key);
    inbox_touch(detached->base.worker->gateway, join.key);
    repeated_call_leave(detached->base.worker->gateway, &join);
}

static void forget_join(const struct detached_call *detached)
{
    char key[CLIENT_KEY_BYTES];
    const struct repeated_call join = join_of(detached, key);
    if (repeated_call_forget(detached->base.worker->gateway, &join))
        callbacks_of(detached)->forgotten(detached->base.worker, &join);
}

static void let_join(const struct detached_call *detached)
{
    char key[CLIENT_KEY_BYTES];
    const struct repeated_call join = join_of(detached, key);
    detached_task_remember(detached);
    callbacks_of(detached)->joinable(detached->base.worker, &join);
}

/* ---- its client gives it up ---- */

/* The server is notified, and a task that the call has become ends. Once a pending answer has named
 * the task, it is the task that the client may cancel, not the request. */

static void on_task_cancelled(void *context, const struct store_reply *reply)
{
    struct detached_call *detached = detached_call_from(context);
    if (reply->status == STORE_OK)
        forget_join(detached);
    invocation_unref(&detached->base); /* the message's own reference */
}

static void cancel_task_of(struct detached_call *detached)
{
    const struct task *task = detached->base.task;
    ASSERT(task);
    const struct task_change change = {.to = TASK_CANCELLED, .unless_promised = true};
    const struct store_actor actor = {"client", task->owner};
    invocation_ref(&detached->base);
    store_task_change(
        detached->base.worker->gateway->store, str_from(task->id), &change, &actor,
        (struct store_call){detached->base.worker->loop, on_task_cancelled, detached});
}

static void give_up_request(struct detached_call *detached)
{
    struct call *call = detached->call;
    if (call)
        call_part_remove(&detached->part);
    detached->call = NULL;
    notify_server(detached, task_state_name(TASK_CANCELLED));
    detached_call_end(detached);
    if (call)
        call_answer_nothing(call);
}

/* The server is notified once the task's end is stored, or the task is refused. */
static void cancel_request(struct detached_call *detached)
{
    detached->is_given_up = conversation_where(&detached->base) == CONVERSATION_DETACHING;
    if (detached->base.task)
        cancel_task_of(detached);
    else
        give_up_request(detached);
}

void detached_calls_cancel(struct gateway_worker *worker, struct str key, struct str request_id)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->detached) {
        struct detached_call *detached = LIST_ENTRY(node, struct detached_call, node);
        if (str_equal(str_from(detached->key), key) &&
            str_equal(buffer_str(&detached->base.request_id), request_id))
            cancel_request(detached);
    }
}

bool detached_call_takes_cancel(const struct call *call)
{
    struct str id = json_member(call->envelope.params, "requestId");
    char key[CLIENT_KEY_BYTES];
    struct buffer name;
    inbox_key_of_call(call, key);
    if (!key[0] || id.length == 0)
        return false;
    buffer_init(&name);
    write_request_name(&name, str_from(key), id);
    int64_t count = quota_count(call->worker->gateway->detached, buffer_str(&name));
    buffer_finish(&name);
    /* Without sessions, clients that share a token may use the same id for calls of their own. */
    return call->session[0] ? count > 0 : count == 1;
}

static void try_detaching_again(struct detached_call *detached);

/* ---- telling its client ---- */

static void on_listed(void *context, const struct store_reply *reply)
{
    struct detached_call *detached = detached_call_from(context);
    if (detached->call)
        callbacks_of(detached)->became_task(detached, reply);
    invocation_unref(&detached->base); /* the list's */
}

/* The answer names the other tasks of its client at this server, too. */
static void list_working(struct detached_call *detached)
{
    const struct task *task = detached->base.task;
    const struct store_task_query query = {
        .owner = str_from(strcmp(task->owner, OWNER_ANONYMOUS) == 0 ? "" : task->owner),
        .session = str_from(task->session),
        .source = str_from(task->source),
        .states = TASK_SUMMARY_WORKING,
        .limit = TASK_SUMMARY_MOST_LISTED,
    };
    struct store_reply nothing = {.status = STORE_OK};
    if (query.owner.length == 0 && query.session.length == 0) {
        callbacks_of(detached)->became_task(detached, &nothing);
    } else {
        invocation_ref(&detached->base);
        store_task_list(detached->base.worker->gateway->store, &query,
                        (struct store_call){detached->base.worker->loop, on_listed, detached});
    }
}

static void on_promised(void *context, const struct store_reply *reply)
{
    struct detached_call *detached = detached_call_from(context);
    (void)reply; /* the task is as it was, and its client is to find it all the same */
    if (detached->call)
        list_working(detached);
    invocation_unref(&detached->base); /* the promise's */
}

/* The answer names the task, and it is kept that it does. */
static void promise_task(struct detached_call *detached)
{
    ASSERT(detached->base.task && detached->call);
    invocation_ref(&detached->base);
    store_task_promise(detached->base.worker->gateway->store, str_from(detached->base.id),
                       (struct store_call){detached->base.worker->loop, on_promised, detached});
}

/* ---- storing it ---- */

static bool has_answer(const struct detached_call *detached)
{
    return !detached->base.exchange && !server_link_is_pending(&detached->base.up);
}

static void on_task_stored(struct detached_call *detached)
{
    ASSERT(detached->base.task);
    bool has_ended = conversation_where(&detached->base) == CONVERSATION_ENDED;
    task_binding_announce(detached->base.task);
    let_join(detached);
    if (!has_ended && !has_answer(detached) &&
        !conversation_move(&detached->base, CONVERSATION_RUNNING))
        detached_call_end(detached);
    if (detached->call)
        promise_task(detached);
    if (!has_ended && has_answer(detached))
        store_detached(detached);
    else if (conversation_where(&detached->base) == CONVERSATION_RUNNING)
        detached_rounds_begin(detached);
}

static void undo_task(struct detached_call *detached)
{
    ASSERT(detached->base.task);
    release_room(detached);
    invocation_set_task(&detached->base, NULL);
}

/* The call stays what it was: its client waits for the answer, if it has not given it up. */
static void on_task_refused(struct detached_call *detached, enum store_status status)
{
    log_warn("A slow call could not be made a task: its client waits on",
             LOG_NUMBER("store_status", status));
    if (detached->is_given_up) {
        give_up_request(detached);
        return;
    }
    detached_rounds_refuse(detached);
    if (has_answer(detached) && detached->call)
        callbacks_of(detached)->ended(detached);
    if (!detached->call) {
        detached_call_end(detached);
        return;
    }
    undo_task(detached);
    if (!conversation_move(&detached->base, CONVERSATION_RUNNING))
        detached_call_end(detached);
    else if (status != STORE_FAILED)
        try_detaching_again(detached); /* there may be room later */
}

static void on_task_created(void *context, const struct store_reply *reply)
{
    struct detached_call *detached = detached_call_from(context);
    if (reply->status == STORE_OK)
        on_task_stored(detached);
    else if (conversation_where(&detached->base) != CONVERSATION_ENDED)
        on_task_refused(detached, reply->status);
    invocation_unref(&detached->base); /* the message's own reference */
}

bool detached_task_create(struct detached_call *detached, const struct call *call)
{
    ASSERT(!detached->base.task);
    struct invocation *base = &detached->base;
    struct gateway *gateway = base->worker->gateway;
    struct task *task = task_binding_create_promoted(call);
    invocation_set_task(base, task);
    repeated_call_digest_left(&call->envelope, detached->repeated);
    loop_timer_stop(&base->timer);
    inbox_touch(gateway, str_from(detached->key));
    map_put(base->worker->detached_tasks, str_from(base->id), detached);
    enter_session(detached);
    atomic_fetch_add(&gateway->in_flight, 1);
    bool may_store = conversation_move(base, CONVERSATION_DETACHING);
    if (may_store) {
        invocation_ref(base);
        const struct store_limits pending = task_room_take(call, task->id);
        store_task_create(gateway->store, task, &pending,
                          (struct store_call){base->worker->loop, on_task_created, detached});
    } else {
        task_unref(task);
        undo_task(detached);
    }
    return may_store;
}

static void on_patience_ended(void *context)
{
    struct detached_call *detached = detached_call_from(context);
    if (detached_task_reserve(detached->call, detached->key))
        detached_task_create(detached, detached->call);
    else
        try_detaching_again(detached);
}

static void try_detaching_again(struct detached_call *detached)
{
    ASSERT(detached->call); /* else nobody would get the answer */
    loop_timer_start_with(&detached->base.timer, on_patience_ended, detached,
                          DETACHED_CALL_AGAIN_MS);
}

/* ---- the server's answer ---- */

/* The store may still be taking the call's task. Then the answer is kept, and on_task_stored()
 * stores it. */
void detached_call_take_reply(struct detached_call *detached, const struct exchange_reply *reply)
{
    if (!detached->base.task) {
        callbacks_of(detached)->answered(detached, reply);
        detached_call_end(detached);
        return;
    }
    invocation_take_reply(&detached->base, reply);
    log_info("Promoted call ended", LOG_TEXT("task", detached->base.id),
             LOG_TEXT("state", task_state_name(detached->base.outcome.change.to)));
    if (conversation_where(&detached->base) == CONVERSATION_RUNNING)
        store_detached(detached);
}

void detached_call_take_message(struct detached_call *detached, struct str message)
{
    struct notice_origin origin = invocation_origin(&detached->base);
    origin.key = detached->key;
    origin.task = detached->call ? NULL : detached->base.task;
    origin.call = detached->number;
    if (detached->call && json_member(message, "id").length == 0)
        callbacks_of(detached)->message(detached, message);
    notices_take(&origin, message);
}

static void on_detached_reply(void *context, const struct exchange_reply *reply)
{
    struct detached_call *detached = detached_call_from(context);
    detached->base.exchange = NULL;
    detached_call_take_reply(detached, reply);
}

static void on_detached_message(void *context, struct str message)
{
    detached_call_take_message(detached_call_from(context), message);
}

const struct exchange_events detached_call_events = {.reply = on_detached_reply,
                                                     .server_message = on_detached_message};

/* ---- the beginning ---- */

/* The client has gone. A call by execute_tool goes on as a task, which the client finds in its
 * list. */
static void on_waiting_client_left(struct call *call, void *object)
{
    struct detached_call *detached = object;
    detached->call = NULL;
    if (detached->base.task)
        return;
    loop_timer_stop(&detached->base.timer);
    if (detached->is_executed && detached->key[0] && detached_task_reserve(call, detached->key) &&
        detached_task_create(detached, call))
        detached_task_remember(detached);
    else
        detached_call_end(detached);
}

static const struct call_part_kind detached_call_kind =
    CALL_PART_KIND(struct detached_call, on_waiting_client_left);

static void on_detached_stored(struct invocation *invocation)
{
    detached_call_end(detached_call_from(invocation));
}

static void detached_call_destroy(struct invocation *invocation)
{
    struct detached_call *detached = detached_call_from(invocation);
    MAGIC_CLEAR(detached);
    detached_rounds_destroy(detached->rounds);
    free(detached->end_authorization);
    free(detached);
}

static void give_up_rounds(struct invocation *invocation, enum jsonrpc_error error, const char *why)
{
    struct detached_call *detached = detached_call_from(invocation);
    outcome_of_failure(&invocation->outcome, str_from(invocation->task->tool), error, why);
    end_rounds(detached);
    invocation->up.protocol->release(&invocation->up);
    if (conversation_where(invocation) == CONVERSATION_RUNNING)
        store_detached(detached);
}

static const struct invocation_class detached_class = {.kind = CONVERSATION_DETACHED,
                                                       .end = on_detached_stored,
                                                       .destroy = detached_call_destroy,
                                                       .answered = invocation_rounds_answered,
                                                       .give_up = give_up_rounds,
                                                       .is_forwarded =
                                                           detached_rounds_are_forwarded,
                                                       .maker = &detached_maker};

struct detached_call *detached_call_create(struct call *call, int64_t patience_ms)
{
    struct detached_call *detached = memory_alloc(sizeof *detached);
    MAGIC_SET(detached, DETACHED_CALL_MAGIC);
    struct invocation *base = &detached->base;
    invocation_init(base, &detached_class, CONVERSATION_RUNNING, call->worker);
    base->snapshot = snapshot_ref(call->snapshot);
    base->source = call->source;
    question_audience(call, &base->audience);
    memcpy(base->session, call->session, sizeof base->session);
    headers_from_call(&base->headers, call);
    buffer_append(&base->request_id, call->envelope.id);
    detached->call = call;
    detached->patience_ms = patience_ms;
    detached->number = question_take_number(call);
    inbox_key_of_call(call, detached->key);
    register_request(detached);
    call_part_add(call, &detached->part, &detached_call_kind);
    return detached;
}

struct sending detached_call_sending(const struct detached_call *detached)
{
    struct sending sending = invocation_sending(&detached->base);
    sending.id = buffer_str(&detached->base.request_id);
    sending.most_bytes = (size_t)sending.snapshot->config->limits.result_bytes;
    return sending;
}

void detached_call_run(struct call *call, int64_t patience_ms)
{
    struct detached_call *detached = detached_call_create(call, patience_ms);
    struct sending sending = detached_call_sending(detached);
    detached->is_executed = true;
    sending.body = call->envelope.body;
    sending.trace.parent = call_span_parent(call);
    deferred_response_begin(call, DETACHED_CALL_WAITS_FOR, STR_EMPTY);
    deferred_response_await_upstream(call);
    deferred_response_open_late(call);
    detached->base.exchange =
        exchange_send(call->worker, &sending, &detached_call_events, detached);
    loop_timer_start_with(&detached->base.timer, on_patience_ended, detached,
                          token_clock_bound_ms(call, patience_ms));
}

/* ---- the task has changed ---- */

void detached_call_note_task(struct gateway_worker *worker, struct task *task)
{
    struct detached_call *detached = map_get(worker->detached_tasks, str_from(task->id));
    if (!detached || !task_state_is_terminal(task->state))
        return;
    bool was_stopped = task->state == TASK_CANCELLED || task->state == TASK_EXPIRED;
    if (was_stopped)
        notify_server(detached, task_state_name(task->state));
    detached_call_end(detached);
}

void detached_calls_drop(struct gateway_worker *worker)
{
    /* Removal moves entries about, so the walk starts again after each. */
    size_t position = 0;
    void *value;
    while (map_next(worker->detached_tasks, &position, NULL, &value)) {
        detached_call_end(value);
        position = 0;
    }
}
