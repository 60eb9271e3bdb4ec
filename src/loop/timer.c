/*
 * Timers: queues of those with one delay, which are due in the order of their starts, and a binary
 * heap, ordered by the moment due, of the others. On the monotonic clock.
 *
 * They do not sit on h2o's timeouts: those live on the wall clock, one list per duration,
 * and a clock set back would stall every deadline.
 */
#include <stdlib.h>

#include "loop_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

#define FIRST_CAPACITY 64
/* A century: later than anything, and no sum overflows. */
#define LONGEST_DELAY_MS INT64_C(3155760000000)

/* The position of a timer in this queue. */
#define IN_QUEUE(i) (SIZE_MAX - (i))

static inline struct loop_timer *first_of(const struct timer_queue *queue)
{
    return LIST_ENTRY(queue->timers.next, struct loop_timer, queued);
}

static bool is_queued(const struct loop_timer *timer)
{
    return timer->position > IN_QUEUE(TIMER_QUEUES);
}

/* Of memory that may never have been a timer, and so is not followed. */
static bool is_running_on(const struct loop *loop, const struct loop_timer *timer)
{
    if (timer->position == 0)
        return false;
    const struct timer_heap *heap = &loop->heap;
    if (!is_queued(timer))
        return timer->position <= heap->count && heap->timers[timer->position - 1] == timer;
    const struct list *timers = &heap->queues[IN_QUEUE(0) - timer->position].timers;
    for (const struct list *node = timers->next; node != timers; node = node->next) {
        if (node == &timer->queued)
            return true;
    }
    return false;
}

void loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_callback callback,
                     void *context)
{
    ASSERT(!is_running_on(loop, timer)); /* it would run twice */
    *timer = (struct loop_timer){.loop = loop, .callback = callback, .context = context};
}

bool loop_timer_is_running(const struct loop_timer *timer)
{
    return timer->position != 0;
}

static bool is_before(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->sequence < b->sequence;
}

static void place(struct timer_heap *heap, struct loop_timer *timer, size_t position)
{
    ASSERT(position >= 1 && position <= heap->count);
    heap->timers[position - 1] = timer;
    timer->position = position;
}

static void sift_up(struct timer_heap *heap, struct loop_timer *timer, size_t position)
{
    while (position > 1 && is_before(timer, heap->timers[position / 2 - 1])) {
        place(heap, heap->timers[position / 2 - 1], position);
        position /= 2;
    }
    place(heap, timer, position);
}

static void sift_down(struct timer_heap *heap, struct loop_timer *timer, size_t position)
{
    for (size_t child; (child = 2 * position) <= heap->count; position = child) {
        if (child < heap->count && is_before(heap->timers[child], heap->timers[child - 1]))
            child++;
        if (!is_before(heap->timers[child - 1], timer))
            break;
        place(heap, heap->timers[child - 1], position);
    }
    place(heap, timer, position);
}

void loop_timer_stop(struct loop_timer *timer)
{
    if (timer->position == 0)
        return;
    struct timer_heap *heap = &timer->loop->heap;
    if (is_queued(timer)) {
        list_remove(&timer->queued);
        timer->position = 0;
        return;
    }
    size_t hole = timer->position;
    ASSERT_NUMBERS(hole, <=, heap->count);
    ASSERT(heap->timers[hole - 1] == timer);
    struct loop_timer *last = heap->timers[--heap->count];
    timer->position = 0;
    if (last == timer)
        return;
    if (hole > 1 && is_before(last, heap->timers[hole / 2 - 1]))
        sift_up(heap, last, hole);
    else
        sift_down(heap, last, hole);
}

static void put_into_heap(struct timer_heap *heap, struct loop_timer *timer)
{
    if (heap->count == heap->capacity) {
        heap->capacity = heap->capacity == 0 ? FIRST_CAPACITY : 2 * heap->capacity;
        heap->timers = memory_grow_array(heap->timers, heap->capacity, sizeof(struct loop_timer *));
    }
    heap->count++;
    sift_up(heap, timer, heap->count);
}

void loop_timer_start(struct loop_timer *timer, int64_t delay_ms)
{
    struct timer_heap *heap = &timer->loop->heap;

    loop_timer_stop(timer);
    if (delay_ms < 0)
        delay_ms = 0;
    else if (delay_ms > LONGEST_DELAY_MS)
        delay_ms = LONGEST_DELAY_MS;
    timer->due_ms = clock_monotonic_ms() + delay_ms;
    timer->sequence = ++heap->sequence;
    if (timer->due_ms < heap->earliest_ms)
        heap->earliest_ms = timer->due_ms;
    size_t at = (size_t)(delay_ms % TIMER_QUEUES);
    struct timer_queue *queue = &heap->queues[at];
    if (queue->delay_ms != delay_ms && !list_is_empty(&queue->timers)) {
        put_into_heap(heap, timer);
    } else {
        queue->delay_ms = delay_ms;
        timer->position = IN_QUEUE(at);
        list_append(&queue->timers, &timer->queued);
    }
}

void loop_timer_start_with(struct loop_timer *timer, loop_callback callback, void *context,
                           int64_t delay_ms)
{
    timer->callback = callback;
    timer->context = context;
    loop_timer_start(timer, delay_ms);
}

int timer_heap_wait_ms(const struct timer_heap *heap, int limit_ms)
{
    if (heap->earliest_ms == INT64_MAX)
        return limit_ms;
    int64_t wait_ms = heap->earliest_ms - clock_monotonic_ms();
    if (wait_ms <= 0)
        return 0;
    return wait_ms < limit_ms ? (int)wait_ms : limit_ms;
}

/* The one that is due first; NULL: none is running. */
static struct loop_timer *find_first(const struct timer_heap *heap)
{
    struct loop_timer *first = heap->count > 0 ? heap->timers[0] : NULL;
    for (size_t i = 0; i < TIMER_QUEUES; i++) {
        const struct timer_queue *queue = &heap->queues[i];
        if (!list_is_empty(&queue->timers) && (!first || is_before(first_of(queue), first)))
            first = first_of(queue);
    }
    return first;
}

void timer_heap_run_due(struct timer_heap *heap)
{
    if (heap->earliest_ms == INT64_MAX)
        return;
    const int64_t now_ms = clock_monotonic_ms();
    const uint64_t started_before = heap->sequence;
    if (now_ms < heap->earliest_ms)
        return;
    struct loop_timer *timer;
    while ((timer = find_first(heap)) != NULL) {
        if (timer->due_ms > now_ms || timer->sequence > started_before)
            break;
        loop_timer_stop(timer);
        timer->callback(timer->context); /* may free the timer */
    }
    heap->earliest_ms = timer ? timer->due_ms : INT64_MAX;
}

void timer_heap_init(struct timer_heap *heap)
{
    heap->earliest_ms = INT64_MAX;
    for (size_t i = 0; i < TIMER_QUEUES; i++)
        list_init(&heap->queues[i].timers);
}

void timer_heap_finish(struct timer_heap *heap)
{
    ASSERT(find_first(heap) == NULL); /* no timer outlives its loop */
    free(heap->timers);
}
