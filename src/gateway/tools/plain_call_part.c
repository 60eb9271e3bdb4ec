/* A plain call that is a task, as a part of its call. */
#include "call/call.h"
#include "plain_call_internal.h"
#include "repeated_news.h"

struct repeated_call plain_call_join(const struct plain_call *plain)
{
    return (struct repeated_call){str_from(plain->key), plain->digest, plain->id};
}

void plain_call_set_task(struct plain_call *plain, struct task *task)
{
    task_unref(plain->task);
    plain->task = task_ref(task);
    plain->is_pending = task->state == TASK_PENDING;
    plain->decide_by_ms = task->decide_by_ms;
}

void plain_call_leave(const struct call *call, const struct plain_call *plain)
{
    struct repeated_call join = plain_call_join(plain);
    if (repeated_call_set_undelivered(plain->gateway, &join))
        repeated_news_send(call->worker, &join, 0);
}

/* The next call of the kind gets the outcome that this one did not get. */
static void drop(struct call *call, void *object)
{
    struct plain_call *plain = object;
    if (plain->id[0] && !plain->is_told)
        plain_call_leave(call, plain);
    task_unref(plain->task);
    call_memory_give(call, plain->key);
    call_memory_give(call, plain);
}

const struct call_part_kind plain_call_kind = CALL_PART_KIND(struct plain_call, drop);

struct plain_call *plain_call_of(const struct call *call)
{
    return call_part_get(call, &plain_call_kind);
}

void plain_call_give_up(const struct call *call)
{
    const struct plain_call *plain = call_part_find(call, &plain_call_kind);
    if (plain && plain->id[0])
        store_task_leave(plain->gateway->store, str_from(plain->id),
                         (struct store_call){call->worker->loop, NULL, NULL});
}
