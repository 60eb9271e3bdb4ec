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

static const struct detached_callbacks *callbacks_of(const struct promotion *promotion)
{
    return promotion->worker->gateway->detached_callbacks;
}

static void unref(struct promotion *promotion)
{
    if (--promotion->references > 0)
        return;
    headers_finish(&promotion->headers);
    buffer_finish(&promotion->request_id);
    outcome_finish(&promotion->outcome);
    task_unref(promotion->task);
    snapshot_unref(promotion->snapshot);
    free(promotion);
}

/* It is no task (any more), as far as this process counts. */
static void give_up_task(struct promotion *promotion)
{
    struct gateway *gateway = promotion->worker->gateway;
    if (!promotion->task)
        return;
    map_remove(promotion->worker->promotions, str_from(promotion->task->id));
    quota_give_back(gateway->promoted, str_from(promotion->key));
    atomic_fetch_sub(&gateway->in_flight, 1);
}

/* Nothing more is sent or stored. Who waits for its answer still gets one. */
static void end(struct promotion *promotion)
{
    if (promotion->has_ended)
        return;
    promotion->has_ended = true;
    ask_cancel(promotion->ask);
    promotion->ask = NULL;
    questions_end_call(promotion->worker, str_from(promotion->audience.key), promotion->number);
    loop_timer_stop(&promotion->timer);
    promotion_unregister(promotion);
    give_up_task(promotion);
    unref(promotion);
}

/* ---- the end of the call ---- */

static void store_outcome(struct promotion *promotion);

static void on_outcome_stored(void *context, const struct store_reply *reply)
{
    struct promotion *promotion = context;
    if (reply->status == STORE_FAILED && !promotion->has_ended) {
        /* The answer exists only here: it is kept until the disk takes it. */
        log_error("The outcome of a call could not be stored yet",
                  LOG_TEXT("task", promotion->task->id));
        loop_timer_start(&promotion->timer, STORE_RETRY_MS);
    } else {
        end(promotion);
    }
    unref(promotion); /* NOLINT(clang-analyzer-unix.Malloc): the message's own reference */
}

static void on_store_retry(void *context)
{
    store_outcome(context);
}

static void store_outcome(struct promotion *promotion)
{
    struct gateway_worker *worker = promotion->worker;
    loop_timer_init(&promotion->timer, worker->loop, on_store_retry, promotion);
    promotion->references++;
    store_task_change(worker->gateway->store, str_from(promotion->task->id),
                      outcome_change(&promotion->outcome), &gateway_actor,
                      (struct store_call){worker->loop, on_outcome_stored, promotion});
}

static void take_outcome(struct promotion *promotion, const struct ask_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    if (result.length > 0)
        outcome_of_result(&promotion->outcome, result);
    else if (error.length > 0)
        outcome_of_error(&promotion->outcome, error);
    else
        outcome_of_no_answer(&promotion->outcome, str_from(promotion->task->tool), reply);
    promotion->has_outcome = true;
    log_info("Promoted call ended", LOG_TEXT("task", promotion->task->id),
             LOG_TEXT("state", task_state_name(promotion->outcome.change.to)));
}

static void on_reply(void *context, const struct ask_reply *reply)
{
    struct promotion *promotion = context;
    promotion->ask = NULL;
    if (promotion->task) {
        take_outcome(promotion, reply);
        if (promotion->is_stored)
            store_outcome(promotion);
    } else {
        callbacks_of(promotion)->answered(promotion, reply);
        end(promotion);
    }
}

static void on_interim(void *context, struct str message)
{
    struct promotion *promotion = context;
    struct interim_origin origin = {
        .worker = promotion->worker,
        .snapshot = promotion->snapshot,
        .source = promotion->source,
        .key = promotion->key,
        .task = promotion->call ? NULL : promotion->task,
        .headers = &promotion->headers,
        .session = promotion->session,
        .audience = &promotion->audience,
        .call = promotion->number,
        .budget = &promotion->budget,
    };
    if (promotion->call && json_member(message, "id").length == 0)
        callbacks_of(promotion)->message(promotion, message);
    interim_take(&origin, message);
}

/* ---- it becomes a task ---- */

static void on_listed(void *context, const struct store_reply *reply)
{
    struct promotion *promotion = context;
    if (promotion->call)
        callbacks_of(promotion)->became_task(promotion, reply);
    unref(promotion); /* the list's */
}

/* The client is told of its other tasks at this server, too. */
static void list_working(struct promotion *promotion)
{
    const struct task *task = promotion->task;
    const struct store_task_query query = {
        .owner = str_from(strcmp(task->owner, OWNER_ANONYMOUS) == 0 ? "" : task->owner),
        .session = str_from(task->session),
        .source = str_from(task->source),
        .states = PSEUDO_WORKING,
        .limit = PSEUDO_MOST_LISTED,
    };
    struct store_reply nothing = {.status = STORE_OK};
    if (query.owner.length == 0 && query.session.length == 0) {
        callbacks_of(promotion)->became_task(promotion, &nothing);
    } else {
        promotion->references++;
        store_task_list(promotion->worker->gateway->store, &query,
                        (struct store_call){promotion->worker->loop, on_listed, promotion});
    }
}

static void on_created(void *context, const struct store_reply *reply)
{
    struct promotion *promotion = context;
    if (reply->status == STORE_OK) {
        promotion->is_stored = true;
        task_bind_announce(promotion->task);
        if (promotion->call)
            list_working(promotion);
        if (promotion->has_outcome && !promotion->has_ended)
            store_outcome(promotion);
    } else {
        log_warn("A slow call could not be made a task: its client waits on",
                 LOG_NUMBER("store_status", reply->status));
        if (promotion->has_outcome && promotion->call)
            callbacks_of(promotion)->ended(promotion);
        if (!promotion->has_ended) {
            give_up_task(promotion);
            task_unref(promotion->task);
            promotion->task = NULL;
        }
        if (!promotion->call)
            end(promotion);
        else if (!promotion->has_ended && reply->status != STORE_FAILED)
            loop_timer_start(&promotion->timer, AGAIN_MS); /* a limit: there may be room later */
    }
    unref(promotion); /* NOLINT(clang-analyzer-unix.Malloc): the message's own reference */
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
static void promote(struct promotion *promotion, const struct call *call)
{
    struct gateway *gateway = promotion->worker->gateway;
    const struct config_limits *limits = &promotion->snapshot->config->limits;
    const struct store_limits pending = {limits->pending_per_principal, limits->pending_total,
                                         limits->store_bytes};
    struct task *task = task_bind_promoted(call);
    promotion->task = task_ref(task);
    loop_timer_stop(&promotion->timer);
    pseudo_client_touch(gateway, str_from(promotion->key));
    map_put(promotion->worker->promotions, str_from(task->id), promotion);
    atomic_fetch_add(&gateway->in_flight, 1);
    promotion->references++;
    store_task_create(gateway->store, task, &pending,
                      (struct store_call){promotion->worker->loop, on_created, promotion});
}

/* The same call made again joins the task. */
static void remember(const struct promotion *promotion, const struct call *call)
{
    char digest[DIGEST_HEX_BYTES];
    pseudo_join_digest_left(call_tool(call), call->envelope.arguments.raw, digest);
    const struct pseudo_join join = {str_from(promotion->key), digest, promotion->task->id};
    pseudo_join_leave(promotion->worker->gateway, &join);
}

/* ---- the beginning ---- */

/* The client has gone. What execute_tool has begun goes on: its client finds the task in its
 * list. */
static void on_dropped(struct call *call, void *object)
{
    struct promotion *promotion = object;
    promotion->call = NULL;
    if (promotion->task)
        return;
    loop_timer_stop(&promotion->timer);
    if (promotion->is_executed && promotion->key[0] && reserve(call, promotion->key)) {
        promote(promotion, call);
        remember(promotion, call);
    } else {
        end(promotion);
    }
}

static const struct call_part_kind promotion_kind = CALL_PART_KIND(struct promotion, on_dropped);

static void on_patience_ended(void *context)
{
    struct promotion *promotion = context;
    if (reserve(promotion->call, promotion->key))
        promote(promotion, promotion->call);
    else
        loop_timer_start(&promotion->timer, AGAIN_MS);
}

void promotion_hurry(struct promotion *promotion)
{
    if (promotion->call && !promotion->task) {
        promotion->is_given_up = true;
        on_patience_ended(promotion);
    }
}

static struct promotion *create(struct call *call, int64_t patience_ms)
{
    struct promotion *promotion = memory_alloc(sizeof *promotion);
    promotion->worker = call->worker;
    promotion->references = 1;
    promotion->snapshot = snapshot_ref(call->snapshot);
    promotion->source = call->source;
    promotion->call = call;
    promotion->patience_ms = patience_ms;
    promotion->number = questions_take_number(call);
    questions_audience(call, &promotion->audience);
    memcpy(promotion->session, call->session, sizeof promotion->session);
    inbox_key_of_call(call, promotion->key);
    headers_init(&promotion->headers, true);
    headers_from_request(&promotion->headers, call->exchange, call->source);
    buffer_append(&promotion->request_id, call->envelope.id);
    loop_timer_init(&promotion->timer, call->worker->loop, on_patience_ended, promotion);
    promotion_register(promotion);
    call_part_add(call, &promotion->part, &promotion_kind);
    return promotion;
}

static const struct ask_callbacks callbacks = {.reply = on_reply, .interim = on_interim};

static struct ask_options options_of(const struct promotion *promotion)
{
    return (struct ask_options){
        .source = promotion->source,
        .snapshot = promotion->snapshot,
        .headers = &promotion->headers,
        .id = buffer_str(&promotion->request_id),
        .most_bytes = (size_t)promotion->snapshot->config->limits.result_bytes,
    };
}

void promotion_run(struct call *call, int64_t patience_ms)
{
    struct promotion *promotion = create(call, patience_ms);
    struct ask_options options = options_of(promotion);
    promotion->is_executed = true;
    options.body = call->body;
    held_begin(call, WAITS_FOR, STR_EMPTY);
    held_await_upstream(call);
    held_open_late(call);
    promotion->ask = ask_start(call->worker, &options, &callbacks, promotion);
    loop_timer_start(&promotion->timer, patience_ms);
}

static bool may_promote(const struct call *call)
{
    bool has_asked_for_task = call->envelope.task.raw.length > 0;
    return relay_is_under_way(call) && !has_asked_for_task && client_is_shown_tools(call);
}

/* Room for a task is reserved, and the server's side is the promotion's: false, and nothing was
 * changed, when there is no room, or it cannot be taken now. */
static bool take_relayed(struct call *call, struct relay_taken *taken)
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
    struct relay_taken taken;
    if (!may_promote(call))
        return;
    int64_t left_ms = call->snapshot->config->pseudo.wait_ms - relay_age_ms(call);
    if (left_ms > 0) {
        relay_ask_again(call, left_ms);
        return;
    }
    if (!take_relayed(call, &taken)) {
        relay_ask_again(call, AGAIN_MS);
        return;
    }
    struct promotion *promotion = create(call, call->snapshot->config->pseudo.wait_ms);
    struct ask_options options = options_of(promotion);
    if (taken.is_stream)
        held_take_stream(call, WAITS_FOR);
    else
        held_begin(call, WAITS_FOR, STR_EMPTY);
    held_await_upstream(call);
    promotion->ask = ask_adopt(call->worker, &taken, &options, &callbacks, promotion);
    promote(promotion, call);
}

int64_t promotion_first_look_ms(const struct call *call)
{
    int64_t wait_ms = call->snapshot->config->pseudo.wait_ms;
    return wait_ms < FIRST_LOOK_MS ? wait_ms : FIRST_LOOK_MS;
}

void promotion_of_slow_call(struct call *call)
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

static void promote_left(struct call *call, struct relay_taken *taken)
{
    struct promotion *promotion = create(call, 0);
    struct ask_options options = options_of(promotion);
    call_part_remove(&promotion->part);
    promotion->call = NULL;
    promotion->ask = ask_adopt(call->worker, taken, &options, &callbacks, promotion);
    promote(promotion, call);
    remember(promotion, call);
}

void promotion_of_left_call(struct call *call)
{
    char key[CLIENT_KEY_BYTES];
    struct relay_taken taken;
    if (!knows_client(call) || !may_promote(call))
        return;
    inbox_key_of_call(call, key);
    if (key[0] && take_relayed(call, &taken))
        promote_left(call, &taken);
}

/* ---- the task has changed ---- */

static void tell_upstream(const struct promotion *promotion, const struct task *task)
{
    struct buffer body;
    struct ask_options options = {.source = promotion->source,
                                  .snapshot = promotion->snapshot,
                                  .headers = &promotion->headers};
    buffer_init(&body);
    buffer_append_format(&body,
                         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                         "\"params\":{\"requestId\":%.*s,\"reason\":\"%s\"}}",
                         STR_ARGS(buffer_str(&promotion->request_id)),
                         task_state_name(task->state));
    options.body = buffer_str(&body);
    ask_tell(promotion->worker, &options);
    buffer_finish(&body);
}

void promotion_tell(struct gateway_worker *worker, struct task *task)
{
    struct promotion *promotion = map_get(worker->promotions, str_from(task->id));
    if (!promotion || !task_state_is_terminal(task->state))
        return;
    bool was_stopped = task->state == TASK_CANCELLED || task->state == TASK_EXPIRED;
    if (was_stopped && promotion->ask)
        tell_upstream(promotion, task);
    end(promotion);
}

void promotions_drop(struct gateway_worker *worker)
{
    /* Removal moves entries about, so the walk starts again after each. */
    size_t position = 0;
    void *value;
    while (map_next(worker->promotions, &position, NULL, &value)) {
        end(value);
        position = 0;
    }
}
