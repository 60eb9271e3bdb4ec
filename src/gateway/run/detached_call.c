/* Running calls whose client may not wait for the end. */
#include "detached_call_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decision/task_binding.h"
#include "inbox/inbox.h"
#include "inbox/repeated_calls.h"
#include "inbox/task_summary.h"
#include "quota.h"
#include "relay/relay.h"
#include "request/client_profile.h"
#include "request/deferred_response.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#define STORE_RETRY_MS 1000
/* By then the session of a call is read, so that it is known whose call it is if its client goes.
 */
#define FIRST_LOOK_MS 1000
/* How long a call that cannot be promoted now stays as it is before the next try. */
#define AGAIN_MS 1000
/* What progress says meanwhile. */
#define WAITS_FOR "Waiting for the tool to answer"

static const struct store_actor gateway_actor = {"gateway", "taskgate"};

static const struct detached_callbacks *callbacks_of(const struct detached_call *detached)
{
    return detached->worker->gateway->detached_callbacks;
}

static void unref(struct detached_call *detached)
{
    if (--detached->references > 0)
        return;
    headers_finish(&detached->headers);
    buffer_finish(&detached->request_id);
    outcome_finish(&detached->outcome);
    task_unref(detached->task);
    snapshot_unref(detached->snapshot);
    free(detached);
}

/* It is no task (any more), as far as this process counts. */
static void give_up_task(struct detached_call *detached)
{
    struct gateway *gateway = detached->worker->gateway;
    if (!detached->task)
        return;
    map_remove(detached->worker->detached_tasks, str_from(detached->task->id));
    quota_give_back(gateway->promoted, str_from(detached->key));
    atomic_fetch_sub(&gateway->in_flight, 1);
}

/* Nothing more is sent or stored. Who waits for its answer still gets one. */
static void end(struct detached_call *detached)
{
    if (detached->has_ended)
        return;
    detached->has_ended = true;
    rpc_call_cancel(detached->rpc);
    detached->rpc = NULL;
    input_end_call(detached->worker, str_from(detached->audience.key), detached->number);
    loop_timer_stop(&detached->timer);
    detached_call_unregister(detached);
    give_up_task(detached);
    unref(detached);
}

/* ---- the end of the call ---- */

static void store_outcome(struct detached_call *detached);

static void on_outcome_stored(void *context, const struct store_reply *reply)
{
    struct detached_call *detached = context;
    if (reply->status == STORE_FAILED && !detached->has_ended) {
        /* The answer exists only here: it is kept until the disk takes it. */
        log_error("The outcome of a call could not be stored yet",
                  LOG_TEXT("task", detached->task->id));
        loop_timer_start(&detached->timer, STORE_RETRY_MS);
    } else {
        end(detached);
    }
    unref(detached); /* NOLINT(clang-analyzer-unix.Malloc): the message's own reference */
}

static void on_store_retry(void *context)
{
    store_outcome(context);
}

static void store_outcome(struct detached_call *detached)
{
    struct gateway_worker *worker = detached->worker;
    loop_timer_init(&detached->timer, worker->loop, on_store_retry, detached);
    detached->references++;
    store_task_change(worker->gateway->store, str_from(detached->task->id),
                      outcome_change(&detached->outcome), &gateway_actor,
                      (struct store_call){worker->loop, on_outcome_stored, detached});
}

static void take_outcome(struct detached_call *detached, const struct rpc_call_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    if (result.length > 0)
        outcome_of_result(&detached->outcome, result);
    else if (error.length > 0)
        outcome_of_error(&detached->outcome, error);
    else
        outcome_of_no_answer(&detached->outcome, str_from(detached->task->tool), reply);
    detached->has_outcome = true;
    log_info("Promoted call ended", LOG_TEXT("task", detached->task->id),
             LOG_TEXT("state", task_state_name(detached->outcome.change.to)));
}

static void on_reply(void *context, const struct rpc_call_reply *reply)
{
    struct detached_call *detached = context;
    detached->rpc = NULL;
    if (detached->task) {
        take_outcome(detached, reply);
        if (detached->is_stored)
            store_outcome(detached);
    } else {
        callbacks_of(detached)->answered(detached, reply);
        end(detached);
    }
}

static void on_server_message(void *context, struct str message)
{
    struct detached_call *detached = context;
    struct server_message_origin origin = {
        .worker = detached->worker,
        .snapshot = detached->snapshot,
        .source = detached->source,
        .key = detached->key,
        .task = detached->call ? NULL : detached->task,
        .headers = &detached->headers,
        .session = detached->session,
        .audience = &detached->audience,
        .call = detached->number,
        .budget = &detached->budget,
    };
    if (detached->call && json_member(message, "id").length == 0)
        callbacks_of(detached)->message(detached, message);
    server_messages_take(&origin, message);
}

/* ---- it becomes a task ---- */

static void on_listed(void *context, const struct store_reply *reply)
{
    struct detached_call *detached = context;
    if (detached->call)
        callbacks_of(detached)->became_task(detached, reply);
    unref(detached); /* the list's */
}

/* The client is told of its other tasks at this server, too. */
static void list_working(struct detached_call *detached)
{
    const struct task *task = detached->task;
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
        detached->references++;
        store_task_list(detached->worker->gateway->store, &query,
                        (struct store_call){detached->worker->loop, on_listed, detached});
    }
}

static void on_created(void *context, const struct store_reply *reply)
{
    struct detached_call *detached = context;
    if (reply->status == STORE_OK) {
        detached->is_stored = true;
        task_binding_announce(detached->task);
        if (detached->call)
            list_working(detached);
        if (detached->has_outcome && !detached->has_ended)
            store_outcome(detached);
    } else {
        log_warn("A slow call could not be made a task: its client waits on",
                 LOG_NUMBER("store_status", reply->status));
        if (detached->has_outcome && detached->call)
            callbacks_of(detached)->ended(detached);
        if (!detached->has_ended) {
            give_up_task(detached);
            task_unref(detached->task);
            detached->task = NULL;
        }
        if (!detached->call)
            end(detached);
        else if (!detached->has_ended && reply->status != STORE_FAILED)
            loop_timer_start(&detached->timer, AGAIN_MS); /* a limit: there may be room later */
    }
    unref(detached); /* NOLINT(clang-analyzer-unix.Malloc): the message's own reference */
}

/* Whoever has neither session nor token shares one count with the others of its kind. */
static bool reserve(const struct call *call, char key[CLIENT_KEY_BYTES])
{
    struct gateway *gateway = call->worker->gateway;
    const struct config *config = call->snapshot->config;
    inbox_key_of_call(call, key);
    return !atomic_load(&gateway->shutting_down) &&
           quota_take(gateway->promoted, str_from(key), config->pseudo.max_tasks_per_session,
                      config->limits.pending_total);
}

/* Room for it has been reserved. */
static void promote(struct detached_call *detached, const struct call *call)
{
    struct gateway *gateway = detached->worker->gateway;
    const struct config_limits *limits = &detached->snapshot->config->limits;
    const struct store_limits pending = {limits->pending_per_principal, limits->pending_total,
                                         limits->store_bytes};
    struct task *task = task_binding_create_promoted(call);
    detached->task = task_ref(task);
    loop_timer_stop(&detached->timer);
    inbox_touch(gateway, str_from(detached->key));
    map_put(detached->worker->detached_tasks, str_from(task->id), detached);
    atomic_fetch_add(&gateway->in_flight, 1);
    detached->references++;
    store_task_create(gateway->store, task, &pending,
                      (struct store_call){detached->worker->loop, on_created, detached});
}

/* The same call made again joins the task. */
static void remember(const struct detached_call *detached, const struct call *call)
{
    char digest[DIGEST_HEX_BYTES];
    repeated_call_digest_left(call_tool(call), call->envelope.arguments.raw, digest);
    const struct repeated_call join = {str_from(detached->key), digest, detached->task->id};
    repeated_call_leave(detached->worker->gateway, &join);
}

/* ---- the beginning ---- */

/* The client has gone. What execute_tool has begun goes on: its client finds the task in its
 * list. */
static void on_dropped(struct call *call, void *object)
{
    struct detached_call *detached = object;
    detached->call = NULL;
    if (detached->task)
        return;
    loop_timer_stop(&detached->timer);
    if (detached->is_executed && detached->key[0] && reserve(call, detached->key)) {
        promote(detached, call);
        remember(detached, call);
    } else {
        end(detached);
    }
}

static const struct call_part_kind detached_call_kind =
    CALL_PART_KIND(struct detached_call, on_dropped);

static void on_patience_ended(void *context)
{
    struct detached_call *detached = context;
    if (reserve(detached->call, detached->key))
        promote(detached, detached->call);
    else
        loop_timer_start(&detached->timer, AGAIN_MS);
}

void detached_call_stop_running(struct detached_call *detached)
{
    if (detached->call && !detached->task) {
        detached->is_abandoned = true;
        on_patience_ended(detached);
    }
}

static struct detached_call *create(struct call *call, int64_t patience_ms)
{
    struct detached_call *detached = memory_alloc(sizeof *detached);
    detached->worker = call->worker;
    detached->references = 1;
    detached->snapshot = snapshot_ref(call->snapshot);
    detached->source = call->source;
    detached->call = call;
    detached->patience_ms = patience_ms;
    detached->number = input_take_number(call);
    input_audience(call, &detached->audience);
    memcpy(detached->session, call->session, sizeof detached->session);
    inbox_key_of_call(call, detached->key);
    headers_init(&detached->headers, true);
    headers_from_request(&detached->headers, call->exchange, call->source);
    buffer_append(&detached->request_id, call->envelope.id);
    loop_timer_init(&detached->timer, call->worker->loop, on_patience_ended, detached);
    detached_call_register(detached);
    call_part_add(call, &detached->part, &detached_call_kind);
    return detached;
}

static const struct rpc_call_callbacks callbacks = {.reply = on_reply,
                                                    .server_message = on_server_message};

static struct rpc_call_options options_of(const struct detached_call *detached)
{
    return (struct rpc_call_options){
        .source = detached->source,
        .snapshot = detached->snapshot,
        .headers = &detached->headers,
        .id = buffer_str(&detached->request_id),
        .most_bytes = (size_t)detached->snapshot->config->limits.result_bytes,
    };
}

void detached_call_run(struct call *call, int64_t patience_ms)
{
    struct detached_call *detached = create(call, patience_ms);
    struct rpc_call_options options = options_of(detached);
    detached->is_executed = true;
    options.body = call->body;
    deferred_response_begin(call, WAITS_FOR, STR_EMPTY);
    deferred_response_await_upstream(call);
    deferred_response_open_late(call);
    detached->rpc = rpc_call_start(call->worker, &options, &callbacks, detached);
    loop_timer_start(&detached->timer, patience_ms);
}

static bool may_promote(const struct call *call)
{
    bool has_asked_for_task = call->envelope.task.raw.length > 0;
    return relay_is_under_way(call) && !has_asked_for_task && client_is_shown_tools(call);
}

/* Room for a task is reserved, and the server's side is the promotion's: false, and nothing was
 * changed, when there is no room, or it cannot be taken now. */
static bool take_relayed(struct call *call, struct rpc_call_begun *taken)
{
    char key[CLIENT_KEY_BYTES];
    if (!reserve(call, key))
        return false;
    if (relay_detach(call, taken))
        return true;
    quota_give_back(call->worker->gateway->promoted, str_from(key));
    return false;
}

static void promote_relayed(struct call *call)
{
    struct rpc_call_begun taken;
    if (!may_promote(call))
        return;
    int64_t left_ms = call->snapshot->config->pseudo.wait_ms - relay_age_ms(call);
    if (left_ms > 0) {
        relay_repeat_slow(call, left_ms);
        return;
    }
    if (!take_relayed(call, &taken)) {
        relay_repeat_slow(call, AGAIN_MS);
        return;
    }
    struct detached_call *detached = create(call, call->snapshot->config->pseudo.wait_ms);
    struct rpc_call_options options = options_of(detached);
    if (taken.is_stream)
        deferred_response_take_stream(call, WAITS_FOR);
    else
        deferred_response_begin(call, WAITS_FOR, STR_EMPTY);
    deferred_response_await_upstream(call);
    detached->rpc = rpc_call_adopt(call->worker, &taken, &options, &callbacks, detached);
    promote(detached, call);
}

int64_t detached_call_first_look_ms(const struct call *call)
{
    int64_t wait_ms = call->snapshot->config->pseudo.wait_ms;
    return wait_ms < FIRST_LOOK_MS ? wait_ms : FIRST_LOOK_MS;
}

void detached_call_of_slow(struct call *call)
{
    call_identify(call);
    call_with_facts(call, promote_relayed);
}

/* ---- its client has left ---- */

/* Whether the session is known without asking the store, for which there is no time now. Without a
 * session nothing more is known than before. */
static bool knows_client(struct call *call)
{
    call_identify(call);
    return !call->session[0] || call->facts.known ||
           sessions_get(call->worker->gateway->sessions, str_from(call->source->id),
                        str_from(call->session), &call->facts);
}

static void promote_left(struct call *call, struct rpc_call_begun *taken)
{
    struct detached_call *detached = create(call, 0);
    struct rpc_call_options options = options_of(detached);
    call_part_remove(&detached->part);
    detached->call = NULL;
    detached->rpc = rpc_call_adopt(call->worker, taken, &options, &callbacks, detached);
    promote(detached, call);
    remember(detached, call);
}

void detached_call_of_left(struct call *call)
{
    char key[CLIENT_KEY_BYTES];
    struct rpc_call_begun taken;
    if (!knows_client(call) || !may_promote(call))
        return;
    inbox_key_of_call(call, key);
    if (key[0] && take_relayed(call, &taken))
        promote_left(call, &taken);
}

/* ---- the task has changed ---- */

static void tell_upstream(const struct detached_call *detached, const struct task *task)
{
    struct buffer body;
    struct rpc_call_options options = {
        .source = detached->source, .snapshot = detached->snapshot, .headers = &detached->headers};
    buffer_init(&body);
    buffer_append_format(&body,
                         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                         "\"params\":{\"requestId\":%.*s,\"reason\":\"%s\"}}",
                         STR_ARGS(buffer_str(&detached->request_id)), task_state_name(task->state));
    options.body = buffer_str(&body);
    rpc_call_notify(detached->worker, &options);
    buffer_finish(&body);
}

void detached_call_note_task(struct gateway_worker *worker, struct task *task)
{
    struct detached_call *detached = map_get(worker->detached_tasks, str_from(task->id));
    if (!detached || !task_state_is_terminal(task->state))
        return;
    bool was_stopped = task->state == TASK_CANCELLED || task->state == TASK_EXPIRED;
    if (was_stopped && detached->rpc)
        tell_upstream(detached, task);
    end(detached);
}

void detached_calls_drop(struct gateway_worker *worker)
{
    /* Removal moves entries about, so the walk starts again after each. */
    size_t position = 0;
    void *value;
    while (map_next(worker->detached_tasks, &position, NULL, &value)) {
        end(value);
        position = 0;
    }
}
