/*
 * Timers: a binary heap ordered by the moment due, on the monotonic clock.
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

/* Of memory that may never have been a timer. */
static bool is_running_on(const struct loop *loop, const struct loop_timer *timer)
{
    return timer->position > 0 && timer->position <= loop->heap.count &&
           loop->heap.timers[timer->position - 1] == timer;
}

void loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_callback callback,
                     void *context)
{
    ASSERT(!is_running_on(loop, timer)); /* it would be in the heap twice */
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

    if (heap->count == heap->capacity) {
        heap->capacity = heap->capacity == 0 ? FIRST_CAPACITY : 2 * heap->capacity;
        heap->timers = memory_grow_array(heap->timers, heap->capacity, sizeof(struct loop_timer *));
    }
    heap->count++;
    sift_up(heap, timer, heap->count);
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
    if (heap->count == 0)
        return limit_ms;
    int64_t wait_ms = heap->timers[0]->due_ms - clock_monotonic_ms();
    if (wait_ms <= 0)
        return 0;
    return wait_ms < limit_ms ? (int)wait_ms : limit_ms;
}

void timer_heap_run_due(struct timer_heap *heap)
{
    if (heap->count == 0)
        return;
    const int64_t now_ms = clock_monotonic_ms();
    const uint64_t started_before = heap->sequence;

    while (heap->count > 0) {
        struct loop_timer *timer = heap->timers[0];
        if (timer->due_ms > now_ms || timer->sequence > started_before)
            break;
        loop_timer_stop(timer);
        timer->callback(timer->context); /* may free the timer */
    }
}

void timer_heap_finish(struct timer_heap *heap)
{
    ASSERT_NUMBERS(heap->count, ==, 0); /* no timer outlives its loop */
    free(heap->timers);
}
