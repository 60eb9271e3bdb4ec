/* Waiting for a task's end. */
#include "waiting.h"

#include <stdlib.h>

#include "questions.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/mcp/sse.h"

#define SIGN_OF_LIFE_MS 15000
/* What a client that does not read may make wait for it. */
#define BACKLOG_BYTES ((size_t)256 * 1024)

struct waiting {
    struct list node; /* in the worker's list for this task */
    struct call *call;
    struct str task_id; /* owned; a client's word, so it may hold NUL */
    struct loop_timer timer;
    int64_t started_ms;
    bool is_stream;        /* SSE, begun */
    bool upstream_reports; /* upstream's own progress has been passed on this token */
    uint64_t claimant;     /* its number once it carries questions */
};

static bool accepts_events(const struct call *call)
{
    struct str accept = http_header(call->exchange, "accept");
    while (accept.length > 0) {
        struct str range, media, parameters;
        str_cut(accept, ',', &range, &accept);
        str_cut(range, ';', &media, &parameters);
        if (str_equal_ignore_case(str_trim(media), STR("text/event-stream")))
            return true;
    }
    return false;
}

static void write_message(struct waiting *waiting, struct str message)
{
    struct buffer event;
    buffer_init(&event);
    sse_write_event(&event, STR_EMPTY, STR_EMPTY, message);
    http_stream_write(waiting->call->exchange, buffer_str(&event));
    buffer_finish(&event);
}

/* A comment keeps proxies from closing the stream; a client's own clock starts again only on
 * progress (reference §8.2), which must rise. */
static void on_sign_of_life(void *context)
{
    struct waiting *waiting = context;
    struct call *call = waiting->call;
    struct str token = call->envelope.progress_token;
    loop_timer_start(&waiting->timer, SIGN_OF_LIFE_MS);
    if (token.length > 0 && !waiting->upstream_reports) {
        struct buffer message;
        int64_t seconds = (clock_monotonic_ms() - waiting->started_ms) / 1000;
        buffer_init(&message);
        dialect_write_progress(&message, token, seconds, STR("Waiting for the task to end"),
                               waiting->task_id);
        write_message(waiting, buffer_str(&message));
        buffer_finish(&message);
    }
    http_stream_write(call->exchange, STR(":ping\n\n"));
}

static void answer_shutting_down(struct call *call)
{
    struct jsonrpc_error_data data = {.details = STR("shutting down"), .retry_after = 5};
    waiting_answer_error(call, JSONRPC_UNAVAILABLE, &data);
}

void waiting_open(struct call *call)
{
    struct waiting *waiting = call->state;
    struct http_header headers[] = {
        {STR("content-type"), STR("text/event-stream")},
        {STR("cache-control"), STR("no-cache")},
    };
    if (atomic_load(&call->worker->gateway->shutting_down)) {
        answer_shutting_down(call);
        return;
    }
    if (waiting->is_stream || call->envelope.id.length == 0 || !accepts_events(call))
        return;
    waiting->is_stream = true;
    http_stream_start(call->exchange, 200, headers, 2, -1);
    http_stream_flush(call->exchange);
    loop_timer_start(&waiting->timer, SIGN_OF_LIFE_MS);
}

static void forget(struct call *call)
{
    struct waiting *waiting = call->state;
    struct gateway_worker *worker = call->worker;
    loop_timer_stop(&waiting->timer);
    list_remove(&waiting->node);
    struct list *others = map_get(worker->waiters, waiting->task_id);
    if (others && list_is_empty(others)) {
        map_remove(worker->waiters, waiting->task_id);
        free(others);
    }
    free((char *)waiting->task_id.bytes);
    questions_release(worker, waiting->claimant);
    free(waiting);
    call->state = NULL;
}

void waiting_begin(struct call *call, struct str task_id)
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
    waiting->started_ms = clock_monotonic_ms();
    list_append(others, &waiting->node);
    call->state = waiting;
    call->abandoned = forget;
    loop_timer_init(&waiting->timer, worker->loop, on_sign_of_life, waiting);
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

void waiting_answer(struct call *call, struct str message)
{
    struct waiting *waiting = call->state;
    struct http_exchange *exchange = call->exchange;
    if (!waiting->is_stream) {
        call_answer(call, message);
        return;
    }
    write_message(waiting, message);
    http_on_gone(exchange, NULL, NULL);
    call_forget_state(call);
    call_ended(call);
    http_stream_end(exchange);
}

void waiting_answer_error(struct call *call, enum jsonrpc_error error,
                          const struct jsonrpc_error_data *data)
{
    struct buffer message;
    buffer_init(&message);
    call->outcome = "error";
    jsonrpc_write_error(&message, call->envelope.id, error, STR_EMPTY, data);
    waiting_answer(call, buffer_str(&message));
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
        if (!call_owns(call, task))
            continue;
        struct buffer message;
        buffer_init(&message);
        dialect_write_task_answer(&message, call->envelope.id, task);
        waiting_answer(call, buffer_str(&message));
        buffer_finish(&message);
    }
}

void waiting_tell_progress(struct gateway_worker *worker, const struct task *task,
                           struct str message)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return;
    LIST_FOR_EACH_SAFE (node, next, others) {
        struct waiting *waiting = LIST_ENTRY(node, struct waiting, node);
        struct call *call = waiting->call;
        struct str token = call->envelope.progress_token;
        if (token.length == 0 || !waiting->is_stream || !call_owns(call, task) ||
            http_stream_backlog(call->exchange) > BACKLOG_BYTES)
            continue; /* progress is a courtesy: the next one says more */
        struct buffer rewritten;
        buffer_init(&rewritten);
        dialect_rewrite_progress(&rewritten, message, token, str_from(task->id));
        waiting->upstream_reports = true;
        write_message(waiting, buffer_str(&rewritten));
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
        struct waiting *waiting = LIST_ENTRY(node, struct waiting, node);
        if (!waiting->is_stream || !call_owns(waiting->call, task))
            continue;
        if (http_stream_backlog(waiting->call->exchange) <= BACKLOG_BYTES)
            write_message(waiting, message);
        return true;
    }
    return false;
}

static void offer(struct waiting *waiting, const struct task *task)
{
    struct buffer events;
    buffer_init(&events);
    questions_claim(waiting->call, task, &waiting->claimant, &events);
    if (events.length > 0)
        http_stream_write(waiting->call->exchange, buffer_str(&events));
    buffer_finish(&events);
}

void waiting_offer(struct gateway_worker *worker, const struct task *task)
{
    struct list *others = map_get(worker->waiters, str_from(task->id));
    if (!others)
        return;
    LIST_FOR_EACH_SAFE (node, next, others) {
        struct waiting *waiting = LIST_ENTRY(node, struct waiting, node);
        if (waiting->is_stream && call_owns(waiting->call, task))
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
            write_message(waiting, message);
            return true;
        }
    }
    return false;
}

void waiting_end_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        if (call->abandoned == forget)
            answer_shutting_down(call);
    }
}
