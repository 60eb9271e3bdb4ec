/*
 * The edge-triggered sockets of a loop: an epoll set that is itself a watched descriptor.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "loop_internal.h"
#include "taskgate/core/log.h"
#include "taskgate/loop/edge.h"

/* So many are told by one system call. */
#define TOLD_TOGETHER 64

static struct loop_edge *edge_at(struct list *node)
{
    return LIST_ENTRY(node, struct loop_edge, ready);
}

/* Those that are due now; one that becomes due meanwhile runs at the next end of a round. */
static void run_ready(void *context)
{
    struct loop_edges *edges = loop_edges_from(context);
    struct list taken;
    list_init(&taken);
    list_append(&edges->ready, &taken);
    list_remove(&edges->ready);
    while (!list_is_empty(&taken)) {
        struct loop_edge *edge = edge_at(taken.next);
        list_remove(&edge->ready);
        edge->callback(edge->context);
    }
}

static int wait_for_none(int set, struct epoll_event *told)
{
    int count;
    do
        count = epoll_wait(set, told, TOLD_TOGETHER, 0);
    while (count == -1 && errno == EINTR);
    if (count == -1)
        log_error("The sockets toward servers cannot be watched",
                  LOG_TEXT("error", strerror(errno)));
    return count;
}

static void take_events(struct loop_edges *edges)
{
    struct epoll_event told[TOLD_TOGETHER];
    int count;
    do {
        count = wait_for_none(edges->set, told);
        for (int i = 0; i < count; i++) {
            struct loop_edge *edge = told[i].data.ptr;
            edge->events |= told[i].events;
            if (list_is_empty(&edge->ready))
                list_append(&edges->ready, &edge->ready);
        }
    } while (count == TOLD_TOGETHER);
}

static void on_told(void *context)
{
    struct loop_edges *edges = loop_edges_from(context);
    take_events(edges);
    run_ready(edges);
}

bool loop_edges_init(struct loop_edges *edges, struct loop *loop)
{
    MAGIC_SET(edges, EDGES_MAGIC);
    list_init(&edges->ready);
    loop_round_end_init(&edges->run_ready, loop, run_ready, edges);
    edges->set = epoll_create1(EPOLL_CLOEXEC);
    if (edges->set == -1)
        return false;
    edges->watch = loop_watch_create(loop, edges->set, on_told, edges);
    return edges->watch != NULL;
}

void loop_edges_finish(struct loop_edges *edges)
{
    loop_round_end_finish(&edges->run_ready);
    loop_watch_destroy(edges->watch);
    if (edges->set != -1)
        close(edges->set);
    MAGIC_CLEAR(edges);
}

bool loop_edge_start(struct loop_edge *edge, struct loop *loop, int fd, loop_callback callback,
                     void *context)
{
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                 .data.ptr = edge};
    *edge = (struct loop_edge){.loop = loop, .callback = callback, .context = context};
    list_init(&edge->ready);
    return epoll_ctl(loop->edges.set, EPOLL_CTL_ADD, fd, &wanted) == 0;
}

void loop_edge_stop(struct loop_edge *edge)
{
    list_remove(&edge->ready);
}

void loop_edge_again(struct loop_edge *edge)
{
    struct loop_edges *edges = &edge->loop->edges;
    if (list_is_empty(&edge->ready))
        list_append(&edges->ready, &edge->ready);
    loop_round_end_schedule(&edges->run_ready);
}

void loop_edges_look(struct loop *loop)
{
    take_events(&loop->edges);
    if (!list_is_empty(&loop->edges.ready))
        loop_round_end_schedule(&loop->edges.run_ready);
}
