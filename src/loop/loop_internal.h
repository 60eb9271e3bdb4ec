/*
 * Shared by the files of src/loop.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include <h2o.h>

#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/loop/loop.h"

/* Running timers that were started with one delay, the one due first at the front. */
struct timer_queue {
    int64_t delay_ms;
    struct list timers; /* of struct loop_timer */
};
#define TIMER_QUEUES 31 /* a prime: whole seconds rarely share a place */

/* Running timers. A delay has one place among the queues. While the timers there have another
 * delay, its timers go into the binary heap, the one due first at the top. */
struct timer_heap {
    struct timer_queue queues[TIMER_QUEUES];
    int64_t earliest_ms;        /* nothing is due before; a timer may have been stopped since */
    struct loop_timer **timers; /* positions are 1-based: timers[position - 1] */
    size_t count;
    size_t capacity;
    uint64_t sequence; /* of the last start */
};

void timer_heap_init(struct timer_heap *heap);
void timer_heap_finish(struct timer_heap *heap);
/* Milliseconds until a timer may be due, at most `limit_ms`. */
int timer_heap_wait_ms(const struct timer_heap *heap, int limit_ms);
/* Runs what is due, but nothing that is started meanwhile. */
void timer_heap_run_due(struct timer_heap *heap);

/* The sockets that are told of once. */
struct loop_edges {
    uint32_t magic; /* EDGES_MAGIC */
    int set;        /* epoll's; -1: none */
    struct loop_watch *watch;
    struct list ready; /* of struct loop_edge: their callbacks are due */
    struct loop_round_end run_ready;
};
#define EDGES_MAGIC 0x4c4f4503

static inline struct loop_edges *loop_edges_from(void *context)
{
    return MAGIC_CAST(struct loop_edges, EDGES_MAGIC, context);
}

struct loop {
    uint32_t magic; /* LOOP_MAGIC */
    h2o_evloop_t *native;
    struct timer_heap heap;
    int64_t now_ms;            /* monotonic, read when h2o's own clock … */
    uint64_t now_as_of;        /* … stood here; h2o reads that after each wait */
    _Atomic(pthread_t) thread; /* the loop's own: see loop_is_current() */
    atomic_bool stopping;

    struct list round_ends; /* of struct loop_round_end: asked for */
    struct loop_edges edges;

    int wake_fd; /* eventfd: something was posted, or the loop shall stop */
    struct loop_watch *wake_watch;
    pthread_mutex_t posted_lock;
    struct list posted; /* of struct message, under posted_lock */
};
#define LOOP_MAGIC 0x4c4f4f01

static inline struct loop *loop_from(void *context)
{
    return MAGIC_CAST(struct loop, LOOP_MAGIC, context);
}
