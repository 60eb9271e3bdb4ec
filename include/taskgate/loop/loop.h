/*
 * One event loop: h2o's evloop with timers of any length and messages between threads.
 *
 * A loop belongs to the thread that calls loop_run(); only loop_post() and loop_stop() may be
 * called from other threads. Nothing that runs on a loop may block (behaviour 1.8).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "taskgate/core/error.h"
#include "taskgate/core/list.h"

struct loop;

typedef void (*loop_callback)(void *context);

/* NULL on failure. SIGPIPE is ignored in the process from here on: a peer that leaves is an
 * error of write(), never a signal. */
struct loop *loop_create(struct error *error);
/* After loop_run() has returned and everything on the loop is gone, but before its thread ends:
 * h2o counts the read buffers of sockets per thread. Messages not yet delivered are run first,
 * so that what they own is freed. NULL is allowed. */
void loop_destroy(struct loop *loop);
/* Runs until loop_stop(); the calling thread becomes the loop's. */
void loop_run(struct loop *loop);
/* Runs one round: waits at most `timeout_ms` for something to do. For tests and shutdown. */
void loop_run_once(struct loop *loop, int timeout_ms);
void loop_stop(struct loop *loop); /* any thread */
/* Runs `callback` on the loop's thread, soon, in the order posted. Any thread. A post from such a
 * callback runs in a later round, so that posting cannot starve the loop. */
void loop_post(struct loop *loop, loop_callback callback, void *context);
/* Whether the calling thread is the loop's: the one that ran it last, or created it. */
bool loop_is_current(const struct loop *loop);
/* The monotonic clock as the round began, give or take a millisecond: what a request asks a
 * dozen times. On the loop's thread. */
int64_t loop_now_ms(struct loop *loop);
/* Something to be done once at the end of a round, after all sockets and timers: what h2o would
 * undo before, or what costs less when it is done together. Embedded in its owner, who finishes it
 * before it goes. On the loop's thread. */
struct loop_round_end {
    struct list node; /* in the loop, while it is asked for */
    struct loop *loop;
    loop_callback callback;
    void *context;
};
void loop_round_end_init(struct loop_round_end *end, struct loop *loop, loop_callback callback,
                         void *context);
/* The callback comes at the end of this round, or of the next one, which does not wait then. It
 * comes once, however often it was scheduled. */
void loop_round_end_schedule(struct loop_round_end *end);
void loop_round_end_finish(struct loop_round_end *end); /* safe when not scheduled */
/* The h2o_evloop_t, for the http and upstream modules alone. */
void *loop_native(struct loop *loop);

/*
 * Timers: one-shots, so ordered that thousands of waiters cost the loop nothing while
 * they wait. A timer is embedded in its owner; the owner stops it before it goes.
 */
struct loop_timer {
    struct loop *loop;      /* set by loop_timer_init */
    loop_callback callback; /* called once per start, on the loop's thread */
    void *context;
    int64_t due_ms;    /* monotonic; meaning only while running */
    uint64_t sequence; /* of the start: timers due at once run in the order started */
    size_t position;   /* 0: it is not running; else the loop's */
    struct list queued;
};

/* Once for each timer; never one that is running, which the loop would lose. */
void loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_callback callback,
                     void *context);
/* Starts, or starts again with a new delay. 0 means the next round, never this one. */
void loop_timer_start(struct loop_timer *timer, int64_t delay_ms);
/* The same with another callback and its context, from this start on. */
void loop_timer_start_with(struct loop_timer *timer, loop_callback callback, void *context,
                           int64_t delay_ms);
void loop_timer_stop(struct loop_timer *timer); /* safe when not running */
bool loop_timer_is_running(const struct loop_timer *timer);

/*
 * Watches a descriptor, level-triggered for reading; `readable` reads from it. The
 * descriptor stays the caller's and becomes non-blocking. A watch may be destroyed in its
 * own callback; NULL is allowed.
 */
struct loop_watch;
/* NULL when the process has no descriptors left. */
struct loop_watch *loop_watch_create(struct loop *loop, int fd, loop_callback readable,
                                     void *context);
void loop_watch_destroy(struct loop_watch *watch);

/*
 * Sockets whose owner reads and writes them itself, and is told of each change once.
 *
 * h2o's sockets are level-triggered: the kernel asks each of them once more after it has told of
 * it. These are in an epoll set of their own, which the loop watches, and are edge-triggered. A
 * look at the set costs one system call however many sockets it has, and is as fresh as that call:
 * an owner that is about to use an idle connection learns whether it was closed meanwhile.
 */

/* The events that end a connection, or one of its directions. */
#define LOOP_EDGE_HANGS_UP (EPOLLRDHUP | EPOLLHUP | EPOLLERR)

/* Embedded in its owner, who stops it before it goes. On the loop's thread. */
struct loop_edge {
    struct loop *loop;
    loop_callback callback; /* something happened; owners look at `events` */
    void *context;
    struct list ready; /* in the loop, while the callback is due */
    /* EPOLLIN, EPOLLOUT and the above, as they came. A bit stays until the owner takes it away:
     * when a read or a write has found that there is nothing more to do. */
    uint32_t events;
};

/* The descriptor is non-blocking and stays the owner's. false: errno says why not. */
bool loop_edge_start(struct loop_edge *edge, struct loop *loop, int fd, loop_callback callback,
                     void *context);
/* Then the owner closes the descriptor, which takes it out of the set. */
void loop_edge_stop(struct loop_edge *edge);
/* Has the callback called at the end of the round, for `events` that are left. */
void loop_edge_again(struct loop_edge *edge);
/* Brings the events of all sockets of the loop up to this moment. No callback runs meanwhile. */
void loop_edges_look(struct loop *loop);
