/*
 * The rooms above learn of inputs through this table. gateway.c fills it, so that this room calls
 * none of them. Each function runs on the loop of `worker`, and looks only at what belongs to that
 * worker.
 */
#pragma once

#include "call/worker.h"

struct input_events {
    /* The open inputs of the task's execution have changed. While a person thinks, the server is
     * not silent. */
    void (*changed)(struct gateway_worker *worker, const struct task *task);
    /* The task's status has changed for clients that follow it. */
    void (*status)(struct gateway_worker *worker, struct task *task);
    /* The task's execution has an open input, which a client of this worker may be sent. */
    void (*offer)(struct gateway_worker *worker, const struct task *task);
    /* The same for an input of a client outside any task. */
    void (*offer_client)(struct gateway_worker *worker, struct str key);
    /* Sends the message on the stream of this number, if it is here. `task` may be NULL. */
    void (*send)(struct gateway_worker *worker, const struct task *task, uint64_t claimant,
                 struct str message);
};
