/* Messages from one worker to all of them. */
#include "broadcast.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

/* A message on its way to one worker; its bytes follow. */
struct delivery {
    struct gateway_worker *worker;
    const struct broadcast_kind *kind;
    _Alignas(max_align_t) unsigned char message[];
};

static void deliver(void *context)
{
    struct delivery *delivery = context;
    const struct broadcast_kind *kind = delivery->kind;
    kind->deliver(delivery->worker, kind->bytes > 0 ? delivery->message : NULL);
    if (kind->finish)
        kind->finish(delivery->message);
    free(delivery);
}

void broadcast_send(struct gateway *gateway, const struct broadcast_kind *kind, const void *message)
{
    for (size_t i = 0; i < gateway->worker_count; i++) {
        struct delivery *delivery = memory_alloc(sizeof *delivery + kind->bytes);
        delivery->worker = gateway->workers[i];
        delivery->kind = kind;
        if (kind->bytes > 0)
            memcpy(delivery->message, message, kind->bytes);
        if (kind->own)
            kind->own(delivery->message);
        loop_post(gateway->workers[i]->loop, deliver, delivery);
    }
}

struct str broadcast_copy(struct str text)
{
    return str_slice(memory_copy_str(text), text.length);
}

void broadcast_release(struct str copy)
{
    free((void *)(uintptr_t)copy.bytes);
}

void task_broadcast_own(void *message)
{
    struct task_broadcast *broadcast = message;
    task_ref(broadcast->task);
    broadcast->text = broadcast_copy(broadcast->text);
}

void task_broadcast_finish(void *message)
{
    struct task_broadcast *broadcast = message;
    task_unref(broadcast->task);
    broadcast_release(broadcast->text);
}

void client_broadcast_own(void *message)
{
    struct client_broadcast *broadcast = message;
    broadcast->key = broadcast_copy(broadcast->key);
}

void client_broadcast_finish(void *message)
{
    struct client_broadcast *broadcast = message;
    broadcast_release(broadcast->key);
}
