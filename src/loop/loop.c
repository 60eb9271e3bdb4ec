/*
 * The event loop: rounds around h2o's evloop, and messages from other threads.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loop_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

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
static void wake(struct loop *loop)
{
    const uint64_t one = 1;
    while (write(loop->wake_fd, &one, sizeof(one)) == -1 && errno == EINTR)
        ;
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stopping, true);
    wake(loop);
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
        wake(loop);
}

/* Takes what is posted now and runs it. Returns whether there was anything. */
static bool deliver(struct loop *loop)
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
    deliver(loop);
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
    while (deliver(loop))
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
