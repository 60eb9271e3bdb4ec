/*
 * The event loop: rounds around h2o's evloop, and messages from other threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loop_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/loop/loop.h"

/*
 * h2o's caches of a thread: the size of its read buffers, and memory for reuse, which is freed when
 * the thread ends.
 *
 * h2o 2.2.5 has no call for either. A thread that ends would leave its caches behind.
 */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

/* The caches are chains: the first word of a chunk points to the next. */
static void loop_free_chain(void *first)
{
    while (first != NULL) {
        void *next = *(void **)first;
        free(first);
        first = next;
    }
}

static void loop_release(void *unused)
{
    h2o_mem_recycle_t *buffers = &h2o_socket_buffer_prototype.allocator;
    loop_free_chain(buffers->_link);
    buffers->_link = NULL;
    buffers->cnt = 0;

    /* The pools' cache is private: fill a pool from it and free the pool's chunks instead of
     * clearing the pool, which would put them back. Each step takes most of a quarter of a
     * chunk, the most that is not allocated on its own; the cache holds 16 chunks. */
    h2o_mem_pool_t pool;
    h2o_mem_init_pool(&pool);
    for (int i = 0; i < 17 * 4; i++)
        h2o_mem_alloc_pool(&pool, 1000);
    loop_free_chain(pool.chunks);
}

static void create_key(void)
{
    if (pthread_key_create(&key, loop_release) != 0)
        memory_exhausted(); /* or 1024 keys are in use, which nothing here makes */
}

/* The least that h2o's next read asks for. Its own choice is twice as much, and the requests
 * of thousands of open streams lie in such buffers for hours. */
#define READ_BUFFER_BYTES 4096

/* Has what h2o keeps for the calling thread small, and freed when the thread ends. */
static void thread_cache_prepare(void)
{
    static char in_use; /* any pointer but NULL */
    h2o_socket_buffer_prototype._initial_buf.capacity = READ_BUFFER_BYTES;
    pthread_once(&key_once, create_key);
    pthread_setspecific(key, &in_use);
}

/*
 * Work that is done once at the end of a round.
 */

/* Those that are asked for now; what they ask for is left to the next time. */
static void round_ends_run(struct loop *loop)
{
    struct list taken;
    list_init(&taken);
    list_append(&loop->round_ends, &taken);
    list_remove(&loop->round_ends);
    while (!list_is_empty(&taken)) {
        struct loop_round_end *end = LIST_ENTRY(taken.next, struct loop_round_end, node);
        list_remove(&end->node);
        end->callback(end->context);
    }
}

void loop_round_end_init(struct loop_round_end *end, struct loop *loop, loop_callback callback,
                         void *context)
{
    *end = (struct loop_round_end){.loop = loop, .callback = callback, .context = context};
    list_init(&end->node);
}

void loop_round_end_schedule(struct loop_round_end *end)
{
    if (list_is_empty(&end->node))
        list_append(&end->loop->round_ends, &end->node);
}

void loop_round_end_finish(struct loop_round_end *end)
{
    list_remove(&end->node);
}

/*
 * Watched descriptors: an h2o socket that only tells that there is something to read.
 */

struct loop_watch {
    uint32_t magic;       /* WATCH_MAGIC */
    h2o_socket_t *socket; /* on a duplicate: h2o closes its descriptor, the caller keeps his */
    loop_callback readable;
    void *context;
};
#define WATCH_MAGIC 0x4c4f5702

static inline struct loop_watch *watch_from(void *context)
{
    return MAGIC_CAST(struct loop_watch, WATCH_MAGIC, context);
}

static void loop_on_readable(h2o_socket_t *socket, const char *error);

struct loop_watch *loop_watch_create(struct loop *loop, int fd, loop_callback readable,
                                     void *context)
{
    int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (duplicate == -1)
        return NULL;

    struct loop_watch *watch = memory_alloc(sizeof(*watch));
    MAGIC_SET(watch, WATCH_MAGIC);
    watch->readable = readable;
    watch->context = context;
    watch->socket = h2o_evloop_socket_create(loop->native, duplicate, H2O_SOCKET_FLAG_DONT_READ);
    watch->socket->data = watch;
    h2o_socket_read_start(watch->socket, loop_on_readable);
    return watch;
}

static void loop_on_readable(h2o_socket_t *socket, const char *error)
{
    struct loop_watch *watch = watch_from(socket->data);
    watch->readable(watch->context);
}

void loop_watch_destroy(struct loop_watch *watch)
{
    if (watch == NULL)
        return;
    h2o_socket_read_stop(watch->socket);
    h2o_socket_close(watch->socket);
    MAGIC_CLEAR(watch);
    free(watch);
}

/*
 * The edge-triggered sockets of a loop: an epoll set that is itself a watched descriptor.
 */

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

static void loop_take_events(struct loop_edges *edges)
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

static void loop_on_told(void *context)
{
    struct loop_edges *edges = loop_edges_from(context);
    loop_take_events(edges);
    run_ready(edges);
}

/* false: errno says why not, and there is still something to finish. */
static bool loop_edges_init(struct loop_edges *edges, struct loop *loop)
{
    MAGIC_SET(edges, EDGES_MAGIC);
    list_init(&edges->ready);
    loop_round_end_init(&edges->run_ready, loop, run_ready, edges);
    edges->set = epoll_create1(EPOLL_CLOEXEC);
    if (edges->set == -1)
        return false;
    edges->watch = loop_watch_create(loop, edges->set, loop_on_told, edges);
    return edges->watch != NULL;
}

static void loop_edges_finish(struct loop_edges *edges)
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
    loop_take_events(&loop->edges);
    if (!list_is_empty(&loop->edges.ready))
        loop_round_end_schedule(&loop->edges.run_ready);
}

/* A round without anything to do ends after this long; h2o wants a finite wait. */
#define LONGEST_ROUND_MS 60000

struct message {
    struct list node;
    loop_callback callback;
    void *context;
};

static pthread_once_t process_setup = PTHREAD_ONCE_INIT;

static void set_up_process(void)
{
    signal(SIGPIPE, SIG_IGN);
    /* No big request in a file below /tmp: it may hold secrets, the disk may be read-only. */
    h2o_socket_buffer_mmap_settings.threshold = SIZE_MAX;
}

static void on_wake(void *context);

struct loop *loop_create(struct error *error)
{
    int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_fd == -1) {
        error_set(error, "cannot create an event descriptor: %s", strerror(errno));
        return NULL;
    }
    pthread_once(&process_setup, set_up_process);
    thread_cache_prepare();

    struct loop *loop = memory_alloc(sizeof(*loop));
    MAGIC_SET(loop, LOOP_MAGIC);
    timer_heap_init(&loop->heap);
    loop->native = h2o_evloop_create();
    loop->wake_fd = wake_fd;
    pthread_mutex_init(&loop->posted_lock, NULL);
    list_init(&loop->posted);
    list_init(&loop->round_ends);
    atomic_init(&loop->thread, pthread_self());
    atomic_init(&loop->stopping, false);
    bool has_edges = loop_edges_init(&loop->edges, loop);
    loop->wake_watch = has_edges ? loop_watch_create(loop, wake_fd, on_wake, loop) : NULL;
    if (loop->wake_watch == NULL) {
        error_set(error, "cannot watch an event descriptor: %s", strerror(errno));
        loop_destroy(loop);
        return NULL;
    }
    return loop;
}

/* One round. Sockets run inside h2o, timers after it. The work that timers leave pending, above all
 * a write that was done at once, runs before h2o looks at its sockets. Otherwise h2o would take the
 * write for one that is under way, watch for room, tell its end all the same, and abort when there
 * is room. Its own timeouts do as this does. The ends of the round write, too, and what follows a
 * write may ask for one: hence twice. */
static void run_round(struct loop *loop, int limit_ms)
{
    h2o_timeout__do_post_callback(loop->native);
    int wait_ms = list_is_empty(&loop->round_ends) ? timer_heap_wait_ms(&loop->heap, limit_ms) : 0;
    if (h2o_evloop_run(loop->native, wait_ms) != 0 && errno != EINTR)
        log_error("The event loop failed", LOG_TEXT("error", strerror(errno)));
    timer_heap_run_due(&loop->heap);
    if (list_is_empty(&loop->round_ends))
        return;
    round_ends_run(loop);
    h2o_timeout__do_post_callback(loop->native);
    round_ends_run(loop);
}

void loop_run(struct loop *loop)
{
    thread_cache_prepare();
    atomic_store(&loop->thread, pthread_self());
    while (!atomic_load(&loop->stopping))
        run_round(loop, LONGEST_ROUND_MS);
    atomic_store(&loop->stopping, false);
}

void loop_run_once(struct loop *loop, int timeout_ms)
{
    thread_cache_prepare();
    atomic_store(&loop->thread, pthread_self());
    run_round(loop, timeout_ms < LONGEST_ROUND_MS ? timeout_ms : LONGEST_ROUND_MS);
}

/* The counter of an eventfd cannot overflow here, so that a write can only be interrupted. */
static void loop_wake(struct loop *loop)
{
    const uint64_t one = 1;
    while (write(loop->wake_fd, &one, sizeof(one)) == -1 && errno == EINTR)
        ;
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stopping, true);
    loop_wake(loop);
}

void loop_post(struct loop *loop, loop_callback callback, void *context)
{
    struct message *message = memory_alloc(sizeof(*message));
    message->callback = callback;
    message->context = context;

    pthread_mutex_lock(&loop->posted_lock);
    bool was_empty = list_is_empty(&loop->posted);
    list_append(&loop->posted, &message->node);
    pthread_mutex_unlock(&loop->posted_lock);
    if (was_empty)
        loop_wake(loop);
}

/* Takes what is posted now and runs it. Returns whether there was anything. */
static bool loop_deliver(struct loop *loop)
{
    struct list taken;
    list_init(&taken);
    pthread_mutex_lock(&loop->posted_lock);
    if (!list_is_empty(&loop->posted)) {
        list_append(&loop->posted, &taken); /* the ring gets a second head … */
        list_remove(&loop->posted);         /* … and loses its first */
    }
    pthread_mutex_unlock(&loop->posted_lock);

    bool any = !list_is_empty(&taken);
    while (!list_is_empty(&taken)) {
        struct message *message = LIST_ENTRY(taken.next, struct message, node);
        list_remove(&message->node);
        message->callback(message->context);
        free(message);
    }
    return any;
}

static void on_wake(void *context)
{
    struct loop *loop = loop_from(context);
    uint64_t count;

    /* Read first: what is posted from here on wakes the loop again. */
    while (read(loop->wake_fd, &count, sizeof(count)) == -1 && errno == EINTR)
        ;
    loop_deliver(loop);
}

bool loop_is_current(const struct loop *loop)
{
    return pthread_equal(atomic_load(&loop->thread), pthread_self()) != 0;
}

int64_t loop_now_ms(struct loop *loop)
{
    if (loop->now_as_of != loop->native->_now) {
        loop->now_as_of = loop->native->_now;
        loop->now_ms = clock_monotonic_ms();
    }
    return loop->now_ms;
}

void *loop_native(struct loop *loop)
{
    return loop->native;
}

void loop_destroy(struct loop *loop)
{
    if (loop == NULL)
        return;
    atomic_store(&loop->thread, pthread_self());
    while (loop_deliver(loop))
        ;
    loop_watch_destroy(loop->wake_watch);
    loop_edges_finish(&loop->edges);
    /* h2o frees a closed socket in the round after, also one that has work pending. */
    h2o_timeout__do_post_callback(loop->native);
    h2o_evloop_run(loop->native, 0);
    h2o_evloop_destroy(loop->native);
    close(loop->wake_fd);
    timer_heap_finish(&loop->heap);
    pthread_mutex_destroy(&loop->posted_lock);
    MAGIC_CLEAR(loop);
    free(loop);
}
