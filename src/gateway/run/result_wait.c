/* Waiting for a task's end. */
#include "result_wait.h"

#include <stdlib.h>

#include "input/input_request.h"
#include "request/call_part.h"
#include "request/deferred_response.h"
#include "taskgate/core/memory.h"

struct waiting {
    struct call_part part;
    struct list node; /* in the worker's list for this task */
    struct call *call;
    struct str task_id; /* owned; a client's word, so it may hold NUL */
    struct waiting_options options;
    struct loop_timer patience;
    uint64_t claimant; /* its number once it carries questions */
};

static void drop(struct call *call, void *object)
{
    struct waiting *waiting = object;
    struct gateway_worker *worker = call->worker;
    loop_timer_stop(&waiting->patience);
    list_remove(&waiting->node);
    struct list *others = map_get(worker->waiters, waiting->task_id);
    if (others && list_is_empty(others)) {
        map_remove(worker->waiters, waiting->task_id);
        free(others);
    }
    free((char *)waiting->task_id.bytes);
    questions_release(worker, waiting->claimant);
    free(waiting);
}

static const struct call_part_kind waiting_kind = CALL_PART_KIND(struct waiting, drop);

static struct waiting *waiting_of(const struct call *call)
{
    return call_part_get(call, &waiting_kind);
}

static void answer_shutting_down(struct call *call)
{
    struct jsonrpc_error_data data = {.details = STR("shutting down"), .retry_after = 5};
    call_answer_error(call, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
}

void waiting_open(struct call *call)
{
    const struct waiting *waiting = waiting_of(call);
    if (atomic_load(&call->worker->gateway->shutting_down))
        answer_shutting_down(call);
    else if (waiting->options.opens_late)
        held_open_late(call);
    else
        held_open(call);
}

static void on_out_of_patience(void *context)
{
    struct waiting *waiting = context;
    waiting->options.timed_out(waiting->call);
}

void waiting_begin_with(struct call *call, struct str task_id,
                        const struct waiting_options *options)
{
    struct gateway_worker *worker = call->worker;
    struct waiting *waiting = memory_alloc(sizeof *waiting);
    struct list *others = map_get(worker->waiters, task_id);
    if (!others) {
        others = memory_alloc(sizeof *others);
        list_init(others);
        map_put(worker->waiters, task_id, others);
    }
    waiting->call = call;
    waiting->task_id = str_slice(memory_copy_str(task_id), task_id.length);
    waiting->options = *options;
    list_append(others, &waiting->node);
    call_part_add(call, &waiting->part, &waiting_kind);
    held_begin(call, "Waiting for the task to end", task_id);
    loop_timer_init(&waiting->patience, worker->loop, on_out_of_patience, waiting);
}

void waiting_set_patience(struct call *call, int64_t patience_ms)
{
    struct waiting *waiting = waiting_of(call);
    loop_timer_start(&waiting->patience, patience_ms);
}

void waiting_begin(struct call *call, struct str task_id)
{
    waiting_begin_with(call, task_id, &(struct waiting_options){.timed_out = NULL});
}

void waiting_end(struct call *call)
{
    struct waiting *waiting = waiting_of(call);
    call_part_remove(&waiting->part);
    drop(call, waiting);
    held_end(call);
}

bool waiting_exists(struct gateway_worker *worker, const struct task *task)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return false;
    LIST_FOR_EACH_SAFE (node, next, others) {
        if (call_owns(LIST_ENTRY(node, struct waiting, node)->call, task))
            return true;
    }
    return false;
}

void waiting_answer(struct call *call, struct task *task)
{
    const struct waiting *waiting = waiting_of(call);
    if (waiting->options.ended) {
        waiting->options.ended(call, task);
        return;
    }
    struct buffer message;
    buffer_init(&message);
    dialect_write_task_answer(&message, call->envelope.id, task);
    call_answer(call, buffer_str(&message));
    buffer_finish(&message);
}

void waiting_tell(struct gateway_worker *worker, struct task *task)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others || !task_state_is_terminal(task->state))
        return;
    /* Answering a call may end the list itself, so the walk ends with its last node; who asks
     * for a task that is not theirs is answered by the read of it. */
    struct list *last = others->previous;
    for (struct list *node = others->next, *next; node != NULL; node = next) {
        struct call *call = LIST_ENTRY(node, struct waiting, node)->call;
        next = node == last ? NULL : node->next;
        if (call_owns(call, task))
            waiting_answer(call, task);
    }
}

void waiting_tell_progress(struct gateway_worker *worker, const struct task *task,
                           struct str message)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return;
    LIST_FOR_EACH_SAFE (node, next, others) {
        struct call *call = LIST_ENTRY(node, struct waiting, node)->call;
        struct str token = call->envelope.progress_token;
        if (token.length == 0 || !held_is_stream(call) || !call_owns(call, task))
            continue;
        struct buffer rewritten;
        buffer_init(&rewritten);
        dialect_rewrite_progress(&rewritten, message, token, str_from(task->id));
        held_pass_progress(call, buffer_str(&rewritten));
        buffer_finish(&rewritten);
    }
}

bool waiting_tell_message(struct gateway_worker *worker, const struct task *task,
                          struct str message)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return false;
    LIST_FOR_EACH_SAFE (node, next, others) {
        struct call *call = LIST_ENTRY(node, struct waiting, node)->call;
        if (held_is_stream(call) && call_owns(call, task)) {
            held_pass(call, message);
            return true;
        }
    }
    return false;
}

/* What has not begun to be a stream becomes one when there is something to ask on it. */
static void offer(struct waiting *waiting, const struct task *task)
{
    struct call *call = waiting->call;
    struct buffer events;
    buffer_init(&events);
    questions_claim(call, task, &waiting->claimant, &events);
    if (events.length > 0) {
        held_open(call);
        http_stream_write(call->exchange, buffer_str(&events));
    }
    buffer_finish(&events);
}

void waiting_offer(struct gateway_worker *worker, const struct task *task)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return;
    LIST_FOR_EACH_SAFE (node, next, others) {
        struct waiting *waiting = LIST_ENTRY(node, struct waiting, node);
        if (held_may_stream(waiting->call) && call_owns(waiting->call, task))
            offer(waiting, task);
    }
}

bool waiting_send(struct gateway_worker *worker, const struct task *task, uint64_t claimant,
                  struct str message)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return false;
    LIST_FOR_EACH_SAFE (node, next, others) {
        struct waiting *waiting = LIST_ENTRY(node, struct waiting, node);
        if (waiting->claimant == claimant) {
            held_pass(waiting->call, message);
            return true;
        }
    }
    return false;
}

void waiting_end_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        if (held_is(call) && !held_awaits_upstream(call))
            answer_shutting_down(call);
    }
}
