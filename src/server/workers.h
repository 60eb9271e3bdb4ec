/*
 * The workers of the process: event loops, each with a listener and a worker of the gateway. The
 * first loop runs on the main thread, the others on threads of their own. On the main thread, but
 * for workers_take_settings().
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/loop/loop.h"

struct workers;

/* As many as the configuration says, without loops yet. */
struct workers *workers_create(struct gateway *gateway, const struct config *config);
/* Opens the loops and listeners. false: some may be open; workers_destroy() closes them. */
bool workers_start(struct workers *workers, const struct config *config, struct error *error);
/* Listens for the other replicas, after workers_start(). false as above. */
bool workers_listen_for_replicas(struct workers *workers, const struct config *config,
                                 struct error *error);
bool workers_start_threads(struct workers *workers, struct error *error);
struct loop *workers_first_loop(const struct workers *workers);
/* Of all that clients make the process hold, on all ports. */
struct budget *workers_budget(const struct workers *workers);
struct gateway_worker *workers_first_gateway(const struct workers *workers);
/* Each loop takes what a new snapshot sets for its listener. `taken` then comes once, on the first
 * loop, in the order of the calls. Any thread. */
void workers_take_settings(struct workers *workers, loop_callback taken, void *context);
/* http_server_close_after_answers() of the agents' port on each loop. Any thread. */
void workers_close_after_answers(struct workers *workers, bool closes);
/* The agents' listeners close, and each connection once its requests are answered. The port for
 * replicas stays open. */
void workers_drain(struct workers *workers);
/* Of that: no agent's connection is left. Any thread. */
bool workers_are_drained(const struct workers *workers);
/* Whether other replicas may send requests here. */
bool workers_take_relayed(const struct workers *workers);

/* ---- the end, in this order; NULL is allowed ---- */
void workers_stop(struct workers *workers);
/* Until no loop runs on a thread of its own. From here on the caller runs them all. */
void workers_await_stop(struct workers *workers);
/* One round of each loop, for the messages that wait there. */
void workers_deliver(struct workers *workers);
/* Cuts what the gateway has under way. */
void workers_close(struct workers *workers);
void workers_destroy(struct workers *workers);
