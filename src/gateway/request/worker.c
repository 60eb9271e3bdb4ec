/* Messages from one worker to all of them. */
#include "worker.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"

/* On its way to one worker. */
struct delivery {
    struct gateway_worker *worker;
    worker_callback callback;
    struct task *task;
    char *message;
    size_t length;
};

static void deliver(void *context)
{
    struct delivery *delivery = context;
    delivery->callback(delivery->worker, delivery->task,
                       str_slice(delivery->message, delivery->length));
    task_unref(delivery->task);
    free(delivery->message);
    free(delivery);
}

void workers_broadcast(struct gateway *gateway, worker_callback callback, struct task *task,
                       struct str message)
{
    for (size_t i = 0; i < gateway->worker_count; i++) {
        struct delivery *delivery = memory_alloc(sizeof *delivery);
        *delivery = (struct delivery){
            .worker = gateway->workers[i],
            .callback = callback,
            .task = task ? task_ref(task) : NULL,
            .message = memory_copy_str(message),
            .length = message.length,
        };
        loop_post(gateway->workers[i]->loop, deliver, delivery);
    }
}
