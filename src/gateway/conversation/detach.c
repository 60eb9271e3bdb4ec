/* Calls that run whether or not their client waits: how one begins, or is taken over from its
 * carrier, how it becomes a task, what the server requires and answers, how it ends, and what
 * becomes of it when its client gives it up or ends its session. */
#include "detach_internal.h"

#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "call/call.h"
#include "call/call_span.h"
#include "call/client_profile.h"
#include "call/deferred_response.h"
#include "decision/drift_check.h"
#include "decision/task_binding.h"
#include "inbox/inbox.h"
#include "inbox/repeated_calls.h"
#include "inbox/task_summary.h"
#include "question.h"
#include "relay.h"
#include "rounds.h"
#include "server/own.h"
#include "state/quota.h"
#include "task_create.h"
#include "task_inputs.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/identity/identity.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/legacy_text.h"

/* How long a call that cannot become a task now stays as it is before the next try. */
#define AGAIN_MS 1000
/* The first look reads the call's session. It is needed when the client leaves, and before the
 * limit of silence of those who cannot wait as long. Later ones see that a question is answered. */
#define LOOK_MS 1000
/* Until the server has taken the DELETE of a session. */
#define ENDING_MS 10000
/* The message of progress meanwhile. */
#define WAITS_FOR "Waiting for the tool to answer"

static const struct detached_callbacks *callbacks_of(const struct detached_call *detached)
{
    return detached->base.worker->gateway->detached_callbacks;
}

/* A modern server, which may have to get the call again. */
static bool may_require_input(const struct detached_call *detached)
{
    return !detached->base.up.protocol->has_sessions;
}

/* ---- the end of its session ---- */

/* The server would end the session's promoted calls with it, so it is notified after the last of
 * them. */

static void enter_session(const struct detached_call *detached)
{
    const struct invocation *base = &detached->base;
    if (base->session[0])
        quota_take(base->worker->gateway->promoted_in, str_from(base->audience.key), INT64_MAX,
                   INT64_MAX);
}

static void end_at_server(const struct detached_call *detached)
{
    struct sending sending = invocation_sending(&detached->base);
    sending.method = "DELETE";
    sending.silence_ms = sending.total_ms = ENDING_MS;
    log_info("A session ends after the last of its promoted calls",
             LOG_TEXT("source", detached->base.source->id));
    exchange_notify(detached->base.worker, &sending);
}

static void leave_session(const struct detached_call *detached)
{
    struct gateway *gateway = detached->base.worker->gateway;
    struct str key = str_from(detached->base.audience.key);
    if (!detached->base.session[0])
        return;
    quota_give_back(gateway->promoted_in, key);
    if (!quota_has(gateway->promoted_in, key) && quota_has(gateway->ended_sessions, key)) {
        quota_give_back(gateway->ended_sessions, key);
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

/* The client may have had a newer token at the end than when it called. Its DELETE goes up with
 * that; the call itself has its headers already, unless its server may get it again. */
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
        if (end->authorization.length > 0 && !may_require_input(detached))
            headers_set(&detached->base.headers, STR("authorization"), end->authorization);
    }
}

static const struct broadcast_kind end_of_session_kind = {
    .bytes = sizeof(struct session_end), .texts = 2, .deliver = session_end_deliver};

void detached_calls_end_session(const struct call *call, struct str key)
{
    OWNED_HEADERS(headers, true);
    if (call->exchange)
        headers_from_call(&headers, call);
    const struct session_end end = {key, headers_find(&headers, "authorization")};
    broadcast_send(call->worker->gateway, &end_of_session_kind, &end);
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
    OWNED_BUFFER(name);
    write_request_name(&name, str_from(detached->key), buffer_str(&detached->base.request_id));
    quota_take(detached->base.worker->gateway->detached, buffer_str(&name), INT64_MAX, INT64_MAX);
    list_append(&detached->base.worker->detached, &detached->node);
}

static void unregister_request(struct detached_call *detached)
{
    OWNED_BUFFER(name);
    write_request_name(&name, str_from(detached->key), buffer_str(&detached->base.request_id));
    quota_give_back(detached->base.worker->gateway->detached, buffer_str(&name));
    list_remove(&detached->node);
}

/* ---- room for it ---- */

/* Clients with neither session nor token share one count. */
static bool detached_task_reserve(const struct call *call, char key[CLIENT_KEY_BYTES])
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

static void detached_call_end(struct detached_call *detached)
{
    struct invocation *base = &detached->base;
    if (conversation_where(base) == CONVERSATION_ENDED)
        return;
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

static void notify_server(struct detached_call *detached, enum task_state reason)
{
    struct server_link *up = &detached->base.up;
    up->protocol->cancel(up, task_state_name(reason));
}

/* ---- the same call made again joins it ---- */

static struct repeated_call join_of(const struct detached_call *detached, char key[])
{
    ASSERT(detached->base.task && detached->repeated[0]);
    client_key_of_task_owner(detached->base.task, key);
    return (struct repeated_call){str_from(key), detached->repeated, detached->base.task->id};
}

static void detached_task_remember(const struct detached_call *detached)
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
    notify_server(detached, TASK_CANCELLED);
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
    OWNED_BUFFER(name);
    inbox_key_of_call(call, key);
    if (!key[0] || id.length == 0)
        return false;
    write_request_name(&name, str_from(key), id);
    int64_t count = quota_count(call->worker->gateway->detached, buffer_str(&name));
    /* Without sessions, clients that share a token may use the same id for calls of their own. */
    return call->session[0] ? count > 0 : count == 1;
}

/* ---- the server requires input ---- */

/* Keeps what the server has got of the call. */
static void keep_request(struct detached_call *detached, struct call *call)
{
    struct catalog_tool tool;
    OWNED_BUFFER(id);
    call_find_tool(call, call_tool(call), &tool);
    detached->wraps_output = tool.wraps_output;
    client_request_write_call(call, &detached->base.headers, &detached->body, &id);
    detached->identity = call->identity ? identity_ref(call->identity) : NULL;
}

/* Before there is a task. `requests`: a JSON object, or empty: none. */
static void keep_asked(struct detached_call *detached, struct str requests)
{
    ASSERT(detached->asked.length == 0);
    buffer_append(&detached->asked, requests);
}

/* The task is stored: asks what was required meanwhile. */
static void ask_kept(struct detached_call *detached)
{
    OWNED_BUFFER(asked);
    if (detached->base.up.state != LINK_ASKED)
        return;
    asked = detached->asked;
    buffer_init(&detached->asked);
    task_inputs_take_round(&detached->base, buffer_str(&asked), true);
}

static void take_question(struct detached_call *detached, struct str requests)
{
    if (conversation_where(&detached->base) == CONVERSATION_RUNNING)
        task_inputs_take_round(&detached->base, requests, true);
    else /* nobody knows the task yet */
        keep_asked(detached, requests);
}

static void write_refusal(struct buffer *result)
{
    buffer_append_text(result, "{\"content\":[{\"type\":\"text\",\"text\":\"The server requires "
                               "input, for which the client of a slow call that is no task cannot "
                               "be asked\"}],\"isError\":true}");
}

/* There is no task: that input was required becomes the outcome. */
static void refuse_rounds(struct detached_call *detached)
{
    OWNED_BUFFER(result);
    if (detached->base.up.state != LINK_ASKED)
        return;
    detached->base.up.protocol->release(&detached->base.up);
    write_refusal(&result);
    outcome_of_result(&detached->base.outcome, buffer_str(&result));
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
    return !server_link_is_pending(&detached->base.up);
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
        ask_kept(detached);
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
    refuse_rounds(detached);
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

static bool detached_task_create(struct detached_call *detached, const struct call *call)
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
    ASSERT(detached->call && !detached->base.task);
    if (detached_task_reserve(detached->call, detached->key))
        detached_task_create(detached, detached->call);
    else
        try_detaching_again(detached);
}

static void try_detaching_again(struct detached_call *detached)
{
    ASSERT(detached->call); /* else nobody would get the answer */
    loop_timer_start_with(&detached->base.timer, on_patience_ended, detached, AGAIN_MS);
}

/* ---- the server's answer ---- */

/* The store may still be taking the call's task. Then the answer is kept, and on_task_stored()
 * stores it. */
static void detached_call_take_reply(struct detached_call *detached, struct str result,
                                     const struct exchange_reply *reply)
{
    /* One last event, before the outcome is stored. */
    ASSERT(conversation_where(&detached->base) == CONVERSATION_RUNNING ||
           conversation_where(&detached->base) == CONVERSATION_DETACHING);
    if (!detached->base.task) {
        callbacks_of(detached)->answered(detached, result, reply);
        detached_call_end(detached);
        return;
    }
    if (result.length > 0)
        outcome_of_result(&detached->base.outcome, result);
    else
        invocation_take_reply(&detached->base, reply);
    log_info("Promoted call ended", LOG_TEXT("task", detached->base.id),
             LOG_TEXT("state", task_state_name(detached->base.outcome.change.to)));
    if (conversation_where(&detached->base) == CONVERSATION_RUNNING)
        store_detached(detached);
}

static void detached_call_take_message(struct detached_call *detached, struct str message)
{
    struct question_origin origin = invocation_origin(&detached->base);
    origin.key = detached->key;
    origin.task = detached->call ? NULL : detached->base.task;
    origin.call = detached->number;
    if (detached->call && json_member(message, "id").length == 0)
        callbacks_of(detached)->message(detached, message);
    notices_take(&origin, message);
}

/* ---- what the server says ---- */

static void pass_notice(struct detached_call *detached, struct str message)
{
    OWNED_BUFFER(translated);
    mcp_write_bare_notification(&translated, message);
    detached_call_take_message(detached, buffer_str(&translated));
}

/* `result` is empty where nobody can give what the server requires. */
static void take_result(struct detached_call *detached, struct str result,
                        const struct exchange_reply *reply)
{
    OWNED_BUFFER(written);
    if (result.length > 0)
        legacy_text_write_call_result(&written, result, detached->wraps_output);
    else
        write_refusal(&written);
    detached_call_take_reply(detached, buffer_str(&written), reply);
}

static void take_event_of_detached(void *context, const struct event *event)
{
    struct detached_call *detached = detached_call_from(context);
    bool is_lost = event->kind == EVENT_LOST && event->lost > LOST_REPLY;
    bool is_task = detached->base.task != NULL;
    if (event->kind == EVENT_MESSAGE)
        detached_call_take_message(detached, event->text);
    else if (event->kind == EVENT_NOTICE)
        pass_notice(detached, event->text);
    else if (event->kind == EVENT_AGAIN)
        task_inputs_send(&detached->base, STR_EMPTY);
    else if (event->kind == EVENT_ROUND && is_task)
        take_question(detached, event->text);
    else if (is_lost && is_task)
        task_inputs_lost(&detached->base, event->lost);
    else if (event->kind == EVENT_ROUND || is_lost)
        take_result(detached, STR_EMPTY, event->reply);
    else if (event->kind == EVENT_RESULT && may_require_input(detached))
        take_result(detached, event->is_complete ? event->text : STR_EMPTY, event->reply);
    else
        detached_call_take_reply(detached, json_member(event->reply->message, "result"),
                                 event->reply);
}

/* ---- the next round ---- */

/* Each round is a request of its own, which the rules in force judge. */
static bool rounds_are_forwarded(const struct invocation *invocation)
{
    struct snapshot *now = snapshot_current();
    const struct drift_check drift = {
        .identity = detached_call_from(invocation->up.context)->identity,
        .catalog = invocation->worker->gateway->catalog,
        .snapshot = now,
        .source = config_source_find(now->config, str_from(invocation->task->source)),
        .task = invocation->task};
    bool is_forwarded = now->number == invocation->snapshot->number || drift_check_forwards(&drift);
    snapshot_unref(now);
    return is_forwarded;
}

/* The call with a new id for each round; else as its client sent it. */
static void write_detached(struct server_link *link, struct headers *headers, struct buffer *body,
                           struct buffer *id)
{
    const struct detached_call *detached = detached_call_from(link->context);
    headers_add_all(headers, &detached->base.headers);
    if (may_require_input(detached)) {
        server_write_id(id);
        json_write_with_member(body, buffer_str(&detached->body), "id", buffer_str(id));
        return;
    }
    buffer_append(id, buffer_str(&detached->base.request_id));
    if (!link->exchange) /* else it has gone out */
        buffer_append(body, detached->call->envelope.body);
}

static struct sending sending_of_detached(struct server_link *link, struct task_trace *trace)
{
    const struct detached_call *detached = detached_call_from(link->context);
    struct sending sending = invocation_sending(&detached->base);
    sending.most_bytes = (size_t)sending.snapshot->config->limits.result_bytes;
    if (detached->call && !may_require_input(detached))
        sending.trace.parent = call_span_parent(detached->call);
    return sending;
}

static const struct link_maker detached_maker = {
    .write = write_detached, .sending = sending_of_detached, .take = take_event_of_detached};

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
    buffer_finish(&detached->body);
    buffer_finish(&detached->asked);
    identity_unref(detached->identity);
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
                                                       .answered = task_inputs_answered,
                                                       .give_up = give_up_rounds,
                                                       .is_forwarded = rounds_are_forwarded,
                                                       .maker = &detached_maker};

static struct detached_call *detached_call_create(struct call *call, int64_t patience_ms)
{
    struct detached_call *detached = memory_alloc(sizeof *detached);
    MAGIC_SET(detached, DETACHED_CALL_MAGIC);
    struct invocation *base = &detached->base;
    invocation_init(base, &detached_class, CONVERSATION_RUNNING, call->worker);
    base->snapshot = snapshot_ref(call->snapshot);
    base->source = call->source;
    question_audience(call, &base->audience);
    memcpy(base->session, call->session, sizeof base->session);
    buffer_append(&base->request_id, call->envelope.id);
    base->up.protocol = server_protocol_of_call(call);
    if (may_require_input(detached))
        keep_request(detached, call);
    else
        headers_from_call(&base->headers, call);
    detached->call = call;
    detached->patience_ms = patience_ms;
    detached->number = question_take_number(call);
    inbox_key_of_call(call, detached->key);
    register_request(detached);
    call_part_add(call, &detached->part, &detached_call_kind);
    return detached;
}

static void defer(struct call *call, bool has_stream)
{
    deferred_response_begin(call, &(struct deferred_options){.what = WAITS_FOR,
                                                             .awaits_upstream = true,
                                                             .has_stream = has_stream});
}

void detached_call_run(struct call *call, int64_t patience_ms)
{
    struct detached_call *detached = detached_call_create(call, patience_ms);
    struct server_link *up = &detached->base.up;
    ASSERT(!may_require_input(detached));
    detached->is_executed = true;
    defer(call, false);
    deferred_response_open_late(call);
    up->protocol->begin(up);
    loop_timer_start_with(&detached->base.timer, on_patience_ended, detached,
                          token_clock_bound_ms(call, patience_ms));
}

/* ---- it is slow ---- */

static bool may_be_task(const struct call *call)
{
    bool has_asked_for_task = call->envelope.task.raw.length > 0;
    return call->envelope.kind == ENVELOPE_REQUEST && !has_asked_for_task && !call->is_given_up &&
           (call->is_executed || client_may_be_promoted(call));
}

/* Its client's wait: of execute_tool, or of any other call. */
static int64_t patience_ms(const struct call *call)
{
    bool hears = call->envelope.progress_token.length > 0 && deferred_response_may_stream(call);
    return call->is_executed ? call->patience_ms : client_wait_ms(call, hears);
}

/* A call that its client would get byte for byte stays what it is, unless the server waits for an
 * answer that the client can give by the tools alone. */
static bool is_to_be_promoted(const struct call *call)
{
    return call->is_executed || call->snapshot->config->pseudo.promote == PROMOTE_WAIT ||
           !call_carrier_of(call)->exchange(call) || question_is_open_without_task(call);
}

/* Its client waits, and ends the call by closing the connection. The server may be silent while a
 * person has its question, and for as long as a call by execute_tool is to wait. */
static void be_patient(struct call *call, int64_t next_ms)
{
    const struct call_carrier *carrier = call_carrier_of(call);
    bool is_open = question_is_open_without_task(call);
    if (!call->is_executed)
        carrier->set_silence(call,
                             is_open ? 0 : call->snapshot->config->times.execution_timeout_ms);
    carrier->repeat_slow(call, is_open && next_ms > LOOK_MS ? LOOK_MS : next_ms);
}

/* The call never becomes a task, so no later look is needed than those for the end of a question.
 */
static void stay(struct call *call)
{
    const struct call_carrier *carrier = call_carrier_of(call);
    bool is_open = question_is_open_without_task(call);
    carrier->set_silence(call, is_open ? 0 : call->snapshot->config->times.sync_forward_timeout_ms);
    if (is_open)
        carrier->repeat_slow(call, LOOK_MS);
}

/* Reserves room for a task. false: there is no room, or what the server sends cannot be taken over
 * now; nothing was changed. */
static bool reserve_task(const struct call *call)
{
    char key[CLIENT_KEY_BYTES];
    const struct exchange *exchange = call_carrier_of(call)->exchange(call);
    if (!detached_task_reserve(call, key))
        return false;
    if (!exchange || exchange_may_read_messages(exchange))
        return true;
    quota_give_back(call->worker->gateway->promoted, str_from(key));
    return false;
}

/* What the server sends goes to the detached call from now on. */
static void take_over(struct detached_call *detached, struct call *call)
{
    const struct call_carrier *carrier = call_carrier_of(call);
    struct server_link *up = &detached->base.up;
    ASSERT(up->state == LINK_NEW && !up->exchange);
    if (carrier->hand_over) {
        carrier->hand_over(call, up, &detached->asked);
    } else {
        up->exchange = carrier->exchange(call);
        up->protocol->begin(up);
    }
}

static void promote(struct call *call)
{
    const struct call_carrier *carrier = call_carrier_of(call);
    ASSERT(carrier->is_under_way); /* of a carrier whose calls may become tasks */
    if (!carrier->is_under_way(call)) {
        carrier->repeat_slow(call, AGAIN_MS); /* its client is asked */
        return;
    }
    if (!may_be_task(call)) {
        stay(call);
        return;
    }
    int64_t left_ms = patience_ms(call) - carrier->age_ms(call);
    if (call->is_executed)
        left_ms = token_clock_bound_ms(call, left_ms);
    if (left_ms > 0 || !is_to_be_promoted(call)) {
        be_patient(call, left_ms > 0 ? left_ms : patience_ms(call));
        return;
    }
    if (!reserve_task(call)) {
        carrier->repeat_slow(call, AGAIN_MS);
        return;
    }
    struct detached_call *detached = detached_call_create(call, patience_ms(call));
    detached->is_executed = call->is_executed;
    take_over(detached, call);
    if (!may_require_input(detached)) /* else it is: by the carrier that has handed over a link */
        defer(call, exchange_is_stream(detached->base.up.exchange));
    detached_task_create(detached, call);
}

int64_t detached_call_first_look_ms(const struct call *call)
{
    int64_t wait_ms = patience_ms(call);
    int64_t soon_ms = call->snapshot->config->times.sync_forward_timeout_ms / 2;
    if (soon_ms > LOOK_MS)
        soon_ms = LOOK_MS;
    int64_t first_ms = wait_ms < soon_ms ? wait_ms : soon_ms;
    return call->is_executed && first_ms == 0 ? 1 : first_ms; /* 0 would be never */
}

void detached_call_of_slow(struct call *call)
{
    call_identify(call);
    call_with_facts(call, promote);
}

/* ---- its client has left ---- */

/* Whether the client is known without asking the store. The client has left, so the store would
 * answer too late. A call without a session needs no answer. */
static bool knows_client(struct call *call)
{
    call_identify(call);
    return !call->session[0] || call->facts.known ||
           sessions_get(call->worker->gateway->sessions, str_from(call->source->id),
                        str_from(call->session), &call->facts);
}

bool detached_call_asks_later(struct call *call, enum question_kind kind)
{
    return kind != QUESTION_ROOTS && knows_client(call) && may_be_task(call) &&
           question_has_tools(call, kind);
}

static void promote_left(struct call *call)
{
    struct detached_call *detached = detached_call_create(call, 0);
    call_part_remove(&detached->part);
    detached->call = NULL;
    take_over(detached, call);
    if (detached_task_create(detached, call))
        detached_task_remember(detached);
    else
        detached_call_end(detached);
}

void detached_call_of_left(struct call *call)
{
    char key[CLIENT_KEY_BYTES];
    if (!knows_client(call) || !call_carrier_of(call)->is_under_way(call) || !may_be_task(call))
        return;
    inbox_key_of_call(call, key);
    if (key[0] && reserve_task(call))
        promote_left(call);
}

/* ---- the task has changed ---- */

void detached_call_note_task(struct gateway_worker *worker, struct task *task)
{
    struct detached_call *detached = map_get(worker->detached_tasks, str_from(task->id));
    if (!detached || !task_state_is_terminal(task->state))
        return;
    bool was_stopped = task->state == TASK_CANCELLED || task->state == TASK_EXPIRED;
    if (was_stopped)
        notify_server(detached, task->state);
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
