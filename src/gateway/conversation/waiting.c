/* Waiting for a task's end. */
#include "waiting.h"

#include <stdlib.h>

#include "call/call.h"
#include "call/deferred_response.h"
#include "question.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

struct waiting_call {
    uint32_t magic; /* WAITING_CALL_MAGIC */
    struct call_part part;
    struct list node; /* in the worker's list for this task */
    struct call *call;
    struct str task_id; /* owned; the client chose it, so it may hold NUL */
    struct task *task;  /* as it was read; or NULL */
    struct waiting_options options;
    struct loop_timer patience;
    uint64_t claimant; /* its number once it carries questions */
};
#define WAITING_CALL_MAGIC 0x4757570f

static inline struct waiting_call *waiting_call_from(void *context)
{
    return MAGIC_CAST(struct waiting_call, WAITING_CALL_MAGIC, context);
}

static void drop(struct call *call, void *object)
{
    struct waiting_call *wait = object;
    struct gateway_worker *worker = call->worker;
    loop_timer_stop(&wait->patience);
    list_remove(&wait->node);
    struct list *others = map_get(worker->waiters, wait->task_id);
    if (others && list_is_empty(others)) {
        map_remove(worker->waiters, wait->task_id);
        free(others);
    }
    call_memory_give(call, (char *)wait->task_id.bytes);
    task_unref(wait->task);
    question_release(worker, wait->claimant);
    MAGIC_CLEAR(wait);
    call_memory_give(call, wait);
}

static const struct call_part_kind waiting_kind = CALL_PART_KIND(struct waiting_call, drop);

static struct waiting_call *waiting_of(const struct call *call)
{
    return call_part_get(call, &waiting_kind);
}

/* A wait for the outcome itself, as tasks/result is, has nothing else to say. */
static void ask_again(struct call *call)
{
    struct jsonrpc_error_data data = {.details = STR("shutting down"), .retry_after = 1};
    call_answer_error(call, JSONRPC_UNAVAILABLE, STR_EMPTY, &data);
}

void waiting_open(struct call *call)
{
    const struct waiting_call *wait = waiting_of(call);
    if (atomic_load(&call->worker->gateway->shutting_down))
        deferred_response_stop(call);
    else if (wait->options.opens_late)
        deferred_response_open_late(call);
    else
        deferred_response_open(call);
}

static void on_out_of_patience(void *context)
{
    struct waiting_call *wait = waiting_call_from(context);
    wait->options.timed_out(wait->call);
}

void waiting_begin(struct call *call, struct str task_id, const struct waiting_options *options)
{
    struct gateway_worker *worker = call->worker;
    struct waiting_call *wait = call_memory_take(call, sizeof *wait);
    ASSERT(!call_part_find(call, &waiting_kind)); /* a call waits for one task */
    MAGIC_SET(wait, WAITING_CALL_MAGIC);
    struct list *others = map_get(worker->waiters, task_id);
    if (!others) {
        others = memory_alloc(sizeof *others);
        list_init(others);
        map_put(worker->waiters, task_id, others);
    }
    wait->call = call;
    wait->task_id = str_slice(call_memory_copy(call, task_id), task_id.length);
    wait->options = *options;
    list_append(others, &wait->node);
    call_part_add(call, &wait->part, &waiting_kind);
    /* The modern era has no relation between progress and tasks. */
    deferred_response_begin(
        call,
        &(struct deferred_options){.what = "Waiting for the task to end",
                                   .task_id = call->dialect->has_sessions ? task_id : STR_EMPTY,
                                   .stopped = options->timed_out ? options->timed_out : ask_again});
    loop_timer_init(&wait->patience, worker->loop, on_out_of_patience, wait);
}

void waiting_set_patience(struct call *call, int64_t patience_ms)
{
    struct waiting_call *wait = waiting_of(call);
    ASSERT(wait->options.timed_out); /* it says what is answered then */
    loop_timer_start(&wait->patience, token_clock_bound_ms(call, patience_ms));
}

void waiting_keep(struct call *call, struct task *task)
{
    struct waiting_call *wait = waiting_of(call);
    task_unref(wait->task);
    wait->task = task_ref(task);
}

const struct task *waiting_kept(const struct call *call)
{
    return waiting_of(call)->task;
}

void waiting_end(struct call *call)
{
    struct waiting_call *wait = waiting_of(call);
    call_part_remove(&wait->part);
    drop(call, wait);
    deferred_response_end(call);
}

const struct call *waiting_newest(struct gateway_worker *worker, const struct task *task)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    const struct call *newest = NULL;
    if (!others)
        return NULL;
    LIST_FOR_EACH_SAFE (node, next, others) {
        const struct call *call = LIST_ENTRY(node, struct waiting_call, node)->call;
        newest = call_owns(call, task) ? call : newest;
    }
    return newest;
}

void waiting_answer(struct call *call, struct task *task)
{
    const struct waiting_call *wait = waiting_of(call);
    if (wait->options.ended) {
        wait->options.ended(call, task);
        return;
    }
    OWNED_BUFFER(message);
    dialect_write_task_answer(&message, call->envelope.id, task);
    call_answer(call, buffer_str(&message));
}

void waiting_note_task(struct gateway_worker *worker, struct task *task)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others || !task_state_is_terminal(task->state))
        return;
    /* Answering the last call frees the list, so the walk ends with that node. The read of the task
     * answers a client that does not own it. */
    struct list *last = others->previous;
    for (struct list *node = others->next, *next; node != NULL; node = next) {
        struct call *call = LIST_ENTRY(node, struct waiting_call, node)->call;
        next = node == last ? NULL : node->next;
        if (call_owns(call, task))
            waiting_answer(call, task);
    }
}

void waiting_pass_progress(struct gateway_worker *worker, const struct task *task,
                           struct str message)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return;
    LIST_FOR_EACH_SAFE (node, next, others) {
        struct call *call = LIST_ENTRY(node, struct waiting_call, node)->call;
        struct str token = call->envelope.progress_token;
        if (token.length == 0 || !deferred_response_is_stream(call) || !call_owns(call, task))
            continue;
        OWNED_BUFFER(rewritten);
        dialect_rewrite_progress(&rewritten, message, token, str_from(task->id));
        deferred_response_pass_progress(call, buffer_str(&rewritten));
    }
}

bool waiting_pass_message(struct gateway_worker *worker, const struct task *task,
                          struct str message)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return false;
    LIST_FOR_EACH_SAFE (node, next, others) {
        struct call *call = LIST_ENTRY(node, struct waiting_call, node)->call;
        if (deferred_response_is_stream(call) && call_owns(call, task)) {
            deferred_response_pass(call, message);
            return true;
        }
    }
    return false;
}

/* A wait becomes an event stream when there is something to ask on it. */
static void offer(struct waiting_call *wait, const struct task *task)
{
    struct call *call = wait->call;
    OWNED_BUFFER(events);
    question_claim(call, task, &wait->claimant, &events);
    if (events.length > 0) {
        deferred_response_open(call);
        http_stream_write(call->exchange, buffer_str(&events));
    }
}

void waiting_offer(struct gateway_worker *worker, const struct task *task)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return;
    LIST_FOR_EACH_SAFE (node, next, others) {
        struct waiting_call *wait = LIST_ENTRY(node, struct waiting_call, node);
        if (deferred_response_may_stream(wait->call) && call_owns(wait->call, task))
            offer(wait, task);
    }
}

bool waiting_send(struct gateway_worker *worker, const struct task *task, uint64_t claimant,
                  struct str message)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return false;
    LIST_FOR_EACH_SAFE (node, next, others) {
        struct waiting_call *wait = LIST_ENTRY(node, struct waiting_call, node);
        if (wait->claimant == claimant) {
            deferred_response_pass(wait->call, message);
            return true;
        }
    }
    return false;
}

void waiting_end_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        if (deferred_response_is_held(call))
            deferred_response_stop(call);
    }
}
