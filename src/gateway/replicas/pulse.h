/*
 * Whether another replica still answers while requests wait there. A stopped process, and a machine
 * that has gone, keep a connection open and send nothing, as a server does that takes long; so the
 * replica itself is asked, once for all requests of a worker that wait at it. On the worker's loop.
 */
#pragma once

#include "session_homes.h"
#include "taskgate/core/list.h"

struct gateway_worker;
struct pulse;

/* So long after the first question without an answer the replica is taken for silent. With the
 * pause before a question this is below the 2 s in which a client is answered. */
#define PULSE_PATIENCE_MS 1300

/* Called once; the listener has left. `is_over`: the store says that this life of the replica has
 * ended. Else the replica does not answer; it may live, and may go on. */
typedef void (*pulse_lost)(void *context, bool is_over);

struct pulse_listener {
    struct list node;
    struct pulse *pulse; /* NULL: has left */
    pulse_lost lost;
    void *context;
};

void pulse_join(struct gateway_worker *worker, const struct session_home *home, const char *address,
                struct pulse_listener *listener, pulse_lost lost, void *context);
/* This process ends: the replicas at which requests wait are asked now, and learn of it with each
 * question. They answer what they hold. */
void pulse_ask_all(struct gateway_worker *worker);
void pulse_leave(struct pulse_listener *listener); /* safe after it was called */
