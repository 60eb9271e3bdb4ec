/*
 * Tells the rooms above of inputs. gateway.c fills the table, so that this room calls none of them.
 * Each function runs on the loop of `worker`, and looks at what belongs to that worker alone.
 */
#pragma once

#include "request/worker.h"

struct input_events {
    /* The open inputs of the task's execution have changed. The time that a person takes is no
     * silence of upstream's. */
    void (*changed)(struct gateway_worker *worker, const struct task *task);
    /* The task looks different now to those who are told of its status. */
    void (*status)(struct gateway_worker *worker, struct task *task);
    /* The task's execution has something open, which a client here may be sent. */
    void (*offer)(struct gateway_worker *worker, const struct task *task);
    /* The same for what a client is asked in no task. */
    void (*offer_client)(struct gateway_worker *worker, struct str key);
    /* Sends the message on the stream of this number, if it is here. `task` may be NULL. */
    void (*send)(struct gateway_worker *worker, const struct task *task, uint64_t claimant,
                 struct str message);
};
