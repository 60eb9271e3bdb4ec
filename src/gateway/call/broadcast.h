/*
 * A message from one worker to all of them, its own included. Each kind is a struct of its own;
 * borrowed parts are copied for each worker. Any thread may send.
 */
#pragma once

#include "worker.h"

struct broadcast_kind {
    size_t bytes; /* of the message's struct; 0: there is none, and `message` is NULL everywhere */
    /* Copies what the message has borrowed. NULL: it borrows nothing. */
    void (*own)(void *message);
    /* Frees the copies of `own`. NULL if `own` is. */
    void (*finish)(void *message);
    /* On the loop of each worker. */
    void (*deliver)(struct gateway_worker *worker, const void *message);
};

/* Delivers a copy of `message` to every worker, later. `kind` must live as long as the process. */
void broadcast_send(struct gateway *gateway, const struct broadcast_kind *kind,
                    const void *message);

/* For the kinds about a task: `text` may be empty, or a JSON-RPC message. */
struct task_broadcast {
    struct task *task;
    struct str text;
};
void task_broadcast_own(void *message);
void task_broadcast_finish(void *message);
#define TASK_BROADCAST_KIND(deliver_function)                                                      \
    {                                                                                              \
        .bytes = sizeof(struct task_broadcast), .own = task_broadcast_own,                         \
        .finish = task_broadcast_finish, .deliver = (deliver_function)                             \
    }

/* For the kinds about a client: `key` is its client_key_of_call(). */
struct client_broadcast {
    struct str key;
};
void client_broadcast_own(void *message);
void client_broadcast_finish(void *message);
#define CLIENT_BROADCAST_KIND(deliver_function)                                                    \
    {                                                                                              \
        .bytes = sizeof(struct client_broadcast), .own = client_broadcast_own,                     \
        .finish = client_broadcast_finish, .deliver = (deliver_function)                           \
    }

/* A copy of the text, for an `own`; broadcast_release() frees it. */
struct str broadcast_copy(struct str text);
void broadcast_release(struct str copy);
