/*
 * Watched descriptors: an h2o socket that only tells that there is something to read.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "loop_internal.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"

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

static void on_readable(h2o_socket_t *socket, const char *error);

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
    h2o_socket_read_start(watch->socket, on_readable);
    return watch;
}

static void on_readable(h2o_socket_t *socket, const char *error)
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
