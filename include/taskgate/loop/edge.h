/*
 * Sockets whose owner reads and writes them itself, and is told of each change once.
 *
 * h2o's sockets are level-triggered: the kernel asks each of them once more after it has told of
 * it. These are in an epoll set of their own, which the loop watches, and are edge-triggered. A
 * look at the set costs one system call however many sockets it has, and is as fresh as that call:
 * an owner that is about to use an idle connection learns whether it was closed meanwhile.
 */
#pragma once

#include <sys/epoll.h>

#include "taskgate/loop/loop.h"

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
