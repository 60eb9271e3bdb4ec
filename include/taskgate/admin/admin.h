/*
 * The operators' side: health, readiness, metrics, the tasks API, the event stream and the page, on
 * a port of its own.
 *
 * Lives on one loop. A decision is one store_task_change(). The store's observers do the rest: the
 * execution, the answers to waiting clients. Calls of the control plane go through
 * taskgate/gateway/control.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/config/config.h"
#include "taskgate/core/error.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/http/server.h"
#include "taskgate/loop/loop.h"
#include "taskgate/store/store.h"

struct admin;
struct notifier;
struct state_keys; /* taskgate/core/state_seal.h */

struct admin_traffic {
    long answering;   /* requests that have no whole answer yet, but for streams that only listen */
    uint64_t arrived; /* requests, since the start */
};

struct admin_options {
    const char *bind;
    uint16_t port;
    struct tls_server *tls; /* NULL: plain HTTP */
    struct store *store;
    const struct state_keys *state_keys; /* of what browsers keep for the gateway; it outlives it */
    struct budget *budget;               /* of what clients make the process hold; NULL: none */
    int64_t most_connections;            /* if fewer than the port's own bound; 0: that bound */
    /* A token that is valid beside the configured ones, as SHA-256 hex: the generated one, or
     * THOUGHTGATE_ADMIN_TOKEN (name `admin`, roles approver). "" when there is none. */
    char extra_token_sha256[65];
    /* The gateway's worker on this loop: runs the calls of the control plane. NULL: nothing can
     * be called. */
    struct gateway_worker *worker;
    /* Whether every upstream was reachable when last tried; /ready says so, and is 200 all the
     * same. NULL: it never is. */
    bool (*upstream_reachable)(void *context);
    /* The agents' port, for /health/idle; NULL: it is idle. The second says whether connections
     * close with their answers: while somebody waits there. */
    struct admin_traffic (*traffic)(void *context);
    void (*close_after_answers)(void *context, bool closes);
    void *context;
};

/* Listens at once and subscribes to the store. Tokens, hosts and origins come from the
 * snapshot in force at each request. NULL on failure. */
struct admin *admin_create(struct loop *loop, const struct admin_options *options,
                           struct error *error);
uint16_t admin_port(const struct admin *admin);
/* The notifier whose endpoints /ready names; it outlives what is served. Before the loop runs. */
void admin_set_notifier(struct admin *admin, const struct notifier *notifier);
/* Slack's channels and people from now on. On the loop, or before it runs. */
void admin_set_slack(struct admin *admin, struct config *config);
/* As http_server_set_tls(). On the loop. */
void admin_set_tls(struct admin *admin, struct tls_server *tls);
/* After a reload: ends the streams and waits of everybody who lost the right to them. On the loop.
 */
void admin_reloaded(struct admin *admin);
/* The error of the last reload, for /ready: NULL after a good one. Copied. On the loop. */
void admin_set_config_error(struct admin *admin, const char *message);
/* From now on /ready is 503. On the loop. */
void admin_announce_leaving(struct admin *admin);
/* From now on /ready is 503 and event streams end; everything else is still answered, so that
 * probes and operators can look on while the proxy drains. On the loop. */
void admin_announce_shut_down(struct admin *admin);
/* Before store_stop(), once the loop has stopped: every later request is answered 503, and the
 * store gets no more calls. */
void admin_close(struct admin *admin);
/* After store_stop(), because the store notifies it of changes, and after the loop has delivered
 * the store's messages (loop_run_once()). NULL is allowed. */
void admin_destroy(struct admin *admin);
