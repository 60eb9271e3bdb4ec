/*
 * What the rooms above are told of inputs. gateway.c fills the table, so that this room calls none
 * of them. Each is called on the loop of `worker`, which has to look at what belongs to it alone.
 */
#pragma once

#include "request/worker.h"

struct input_events {
    /* What is open for the task's execution has changed: a person who thinks is no silence. */
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
