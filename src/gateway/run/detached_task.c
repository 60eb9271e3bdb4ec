/* How a running call becomes a task: room is reserved, the store takes the task, and the client is
 * told. */
#include "detached_call_internal.h"

#include <string.h>

#include "call/client_profile.h"
#include "decision/task_binding.h"
#include "inbox/inbox.h"
#include "inbox/repeated_calls.h"
#include "inbox/task_summary.h"
#include "state/quota.h"
#include "task_room.h"
#include "taskgate/core/log.h"

static const struct detached_callbacks *callbacks_of(const struct detached_call *detached)
{
    return detached->base.worker->gateway->detached_callbacks;
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

void detached_task_release(struct detached_call *detached)
{
    struct gateway *gateway = detached->base.worker->gateway;
    if (!detached->base.task)
        return;
    map_remove(detached->base.worker->detached_tasks, str_from(detached->base.id));
    task_room_give_back(gateway, detached->base.id);
    quota_give_back(gateway->promoted, str_from(detached->key));
    detached_session_leave(detached);
    atomic_fetch_sub(&gateway->in_flight, 1);
}

/* ---- telling its client ---- */

static void on_listed(void *context, const struct store_reply *reply)
{
    struct detached_call *detached = detached_call_from(context);
    if (detached->call)
        callbacks_of(detached)->became_task(detached, reply);
    invocation_unref(&detached->base); /* the list's */
}

/* The client is told of its other tasks at this server, too. */
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
static void promise(struct detached_call *detached)
{
    invocation_ref(&detached->base);
    store_task_promise(detached->base.worker->gateway->store, str_from(detached->base.id),
                       (struct store_call){detached->base.worker->loop, on_promised, detached});
}

/* ---- the same call made again joins it ---- */

static struct repeated_call join_of(const struct detached_call *detached, char key[])
{
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

void detached_task_forget(const struct detached_call *detached)
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

/* ---- storing it ---- */

static bool has_answer(const struct detached_call *detached)
{
    return !detached->base.exchange && !detached->base.rounds.is_between;
}

static void on_task_stored(struct detached_call *detached)
{
    bool has_ended = invocation_where(&detached->base) == INVOCATION_ENDED;
    task_binding_announce(detached->base.task);
    let_join(detached);
    if (!has_ended && !has_answer(detached) &&
        !invocation_move(&detached->base, INVOCATION_RUNNING))
        detached_call_end(detached);
    if (detached->call)
        promise(detached);
    if (!has_ended && has_answer(detached))
        detached_call_store(detached);
    else if (invocation_where(&detached->base) == INVOCATION_RUNNING)
        detached_rounds_begin(detached);
}

static void undo(struct detached_call *detached)
{
    detached_task_release(detached);
    invocation_set_task(&detached->base, NULL);
}

/* The call stays what it was: its client waits for the answer, if it has not given it up. */
static void on_task_refused(struct detached_call *detached, enum store_status status)
{
    log_warn("A slow call could not be made a task: its client waits on",
             LOG_NUMBER("store_status", status));
    if (detached->is_given_up) {
        detached_call_give_up(detached);
        return;
    }
    detached_rounds_refuse(detached);
    if (has_answer(detached) && detached->call)
        callbacks_of(detached)->ended(detached);
    if (!detached->call) {
        detached_call_end(detached);
        return;
    }
    undo(detached);
    if (!invocation_move(&detached->base, INVOCATION_RUNNING))
        detached_call_end(detached);
    else if (status != STORE_FAILED)
        detached_call_try_again(detached); /* there may be room later */
}

static void on_created(void *context, const struct store_reply *reply)
{
    struct detached_call *detached = detached_call_from(context);
    if (reply->status == STORE_OK)
        on_task_stored(detached);
    else if (invocation_where(&detached->base) != INVOCATION_ENDED)
        on_task_refused(detached, reply->status);
    invocation_unref(&detached->base); /* the message's own reference */
}

bool detached_task_create(struct detached_call *detached, const struct call *call)
{
    struct invocation *base = &detached->base;
    struct gateway *gateway = base->worker->gateway;
    struct task *task = task_binding_create_promoted(call);
    invocation_set_task(base, task);
    repeated_call_digest_left(&call->envelope, detached->repeated);
    loop_timer_stop(&base->timer);
    inbox_touch(gateway, str_from(detached->key));
    map_put(base->worker->detached_tasks, str_from(base->id), detached);
    detached_session_enter(detached);
    atomic_fetch_add(&gateway->in_flight, 1);
    bool may_store = invocation_move(base, INVOCATION_COMMITTING);
    if (may_store) {
        invocation_ref(base);
        const struct store_limits pending = task_room_take(call, task->id);
        store_task_create(gateway->store, task, &pending,
                          (struct store_call){base->worker->loop, on_created, detached});
    } else {
        task_unref(task);
        undo(detached);
    }
    return may_store;
}
