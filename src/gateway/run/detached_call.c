/* Calls that run whether or not their client waits: how one begins, what the server answers, how it
 * ends. */
#include <stdlib.h>
#include <string.h>

#include "call/call_span.h"
#include "call/deferred_response.h"
#include "call/token_clock.h"
#include "conversation/rounds.h"
#include "detached_call_internal.h"
#include "inbox/inbox.h"
#include "invocation_rounds.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"

static const struct detached_callbacks *callbacks_of(const struct detached_call *detached)
{
    return detached->base.worker->gateway->detached_callbacks;
}

/* Its client is asked nothing any more. */
static void end_rounds(struct detached_call *detached)
{
    struct invocation *base = &detached->base;
    if (!base->task || !base->rounds.is_conversation)
        return;
    base->rounds.is_between = false;
    question_end_task(base->worker, base->task);
    rounds_forget(base->worker->gateway->questions, str_from(base->id));
}

void detached_call_end(struct detached_call *detached)
{
    struct invocation *base = &detached->base;
    if (invocation_where(base) == INVOCATION_ENDED)
        return;
    exchange_abandon(base->exchange);
    base->exchange = NULL;
    loop_timer_stop(&base->timer);
    invocation_move(base, INVOCATION_ENDED);
    question_end_call(base->worker, str_from(base->audience.key), detached->number);
    end_rounds(detached);
    detached_call_unregister(detached);
    detached_task_release(detached);
    invocation_unref(base);
}

/* ---- the server's answer ---- */

void detached_call_store(struct detached_call *detached)
{
    if (invocation_move(&detached->base, INVOCATION_STORING))
        invocation_store(&detached->base);
    else
        detached_call_end(detached);
}

/* The store may still be taking the call's task. Then the answer is kept, and detached_task.c
 * stores it. */
static void take_reply(struct detached_call *detached, const struct exchange_reply *reply)
{
    if (!detached->base.task) {
        callbacks_of(detached)->answered(detached, reply);
        detached_call_end(detached);
        return;
    }
    invocation_take_reply(&detached->base, reply);
    log_info("Promoted call ended", LOG_TEXT("task", detached->base.id),
             LOG_TEXT("state", task_state_name(detached->base.outcome.change.to)));
    if (invocation_where(&detached->base) == INVOCATION_RUNNING)
        detached_call_store(detached);
}

static void take_server_message(struct detached_call *detached, struct str message)
{
    struct server_message_origin origin = invocation_origin(&detached->base);
    origin.key = detached->key;
    origin.task = detached->call ? NULL : detached->base.task;
    origin.call = detached->number;
    if (detached->call && json_member(message, "id").length == 0)
        callbacks_of(detached)->message(detached, message);
    server_messages_take(&origin, message);
}

/* Nobody can give what a modern server requires of a call that was to become a task, and is none.
 */
static void write_bridged(struct buffer *out, const struct detached_call *detached,
                          struct str result)
{
    struct str type = json_member(result, "resultType");
    if (type.length == 0 || json_string_equals(type, STR("complete")))
        legacy_bridge_write_call_result(out, result, detached->wraps_output);
    else
        detached_rounds_write_refusal(out);
}

static void on_reply(void *context, const struct exchange_reply *reply)
{
    struct detached_call *detached = detached_call_from(context);
    struct str result = json_member(reply->message, "result");
    struct exchange_reply bridged = *reply;
    struct buffer legacy, message;
    detached->base.exchange = NULL;
    if (!detached->is_bridged || result.length == 0) {
        take_reply(detached, reply);
        return;
    }
    if (detached_rounds_take(detached, result))
        return;
    buffer_init(&legacy);
    buffer_init(&message);
    write_bridged(&legacy, detached, result);
    jsonrpc_write_result(&message, json_member(reply->message, "id"), buffer_str(&legacy));
    bridged.message = buffer_str(&message);
    take_reply(detached, &bridged);
    buffer_finish(&message);
    buffer_finish(&legacy);
}

/* A modern server sends notifications alone. */
static void on_bridged_message(struct detached_call *detached, struct str message)
{
    struct buffer legacy;
    if (json_member(message, "id").length > 0)
        return;
    buffer_init(&legacy);
    legacy_bridge_write_notification(&legacy, message);
    take_server_message(detached, buffer_str(&legacy));
    buffer_finish(&legacy);
}

static void on_server_message(void *context, struct str message)
{
    struct detached_call *detached = detached_call_from(context);
    if (detached->is_bridged)
        on_bridged_message(detached, message);
    else
        take_server_message(detached, message);
}

const struct exchange_events detached_call_events = {.reply = on_reply,
                                                     .server_message = on_server_message};

/* ---- the beginning ---- */

/* The client has gone. A call by execute_tool goes on as a task, which the client finds in its
 * list. */
static void on_dropped(struct call *call, void *object)
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
    CALL_PART_KIND(struct detached_call, on_dropped);

static void on_patience_ended(void *context)
{
    struct detached_call *detached = detached_call_from(context);
    if (detached_task_reserve(detached->call, detached->key))
        detached_task_create(detached, detached->call);
    else
        detached_call_try_again(detached);
}

void detached_call_try_again(struct detached_call *detached)
{
    loop_timer_start_with(&detached->base.timer, on_patience_ended, detached,
                          DETACHED_CALL_AGAIN_MS);
}

static void on_stored(struct invocation *invocation)
{
    detached_call_end(detached_call_from(invocation));
}

static void destroy(struct invocation *invocation)
{
    struct detached_call *detached = detached_call_from(invocation);
    MAGIC_CLEAR(detached);
    detached_rounds_destroy(detached->rounds);
    free(detached->end_authorization);
    free(detached);
}

static void give_up(struct invocation *invocation, enum jsonrpc_error error, const char *why)
{
    struct detached_call *detached = detached_call_from(invocation);
    outcome_of_failure(&invocation->outcome, str_from(invocation->task->tool), error, why);
    end_rounds(detached);
    detached_call_store(detached);
}

static void send_round(struct invocation *invocation, struct str answers, struct str state)
{
    detached_rounds_send(detached_call_from(invocation), answers, state);
}

static const struct invocation_class detached_class = {.kind = INVOCATION_DETACHED,
                                                       .end = on_stored,
                                                       .destroy = destroy,
                                                       .answered = invocation_rounds_answered,
                                                       .give_up = give_up,
                                                       .send_round = send_round};

struct detached_call *detached_call_create(struct call *call, int64_t patience_ms)
{
    struct detached_call *detached = memory_alloc(sizeof *detached);
    MAGIC_SET(detached, DETACHED_CALL_MAGIC);
    struct invocation *base = &detached->base;
    invocation_init(base, &detached_class, INVOCATION_RUNNING, call->worker);
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
    detached_call_register(detached);
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

void detached_call_notify_server(const struct detached_call *detached, const char *reason)
{
    struct sending sending = invocation_sending(&detached->base);
    struct buffer body;
    if (!detached->base.exchange || detached->is_bridged)
        return;
    buffer_init(&body);
    invocation_write_cancelled(&detached->base, reason, &body);
    sending.body = buffer_str(&body);
    exchange_notify(detached->base.worker, &sending);
    buffer_finish(&body);
}

void detached_call_note_task(struct gateway_worker *worker, struct task *task)
{
    struct detached_call *detached = map_get(worker->detached_tasks, str_from(task->id));
    if (!detached || !task_state_is_terminal(task->state))
        return;
    bool was_stopped = task->state == TASK_CANCELLED || task->state == TASK_EXPIRED;
    if (was_stopped)
        detached_call_notify_server(detached, task_state_name(task->state));
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
