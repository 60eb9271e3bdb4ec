/*
 * Shared by the files of src/admin: the server, and one request that has passed the checks of
 * router.c.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/error.h"
#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/http/server.h"
#include "taskgate/loop/loop.h"
#include "taskgate/store/store.h"

#include "operator.h"
#include "rights.h"

#define KNOWN_SENDERS 256

struct admin_traffic;

/* Everything in it belongs to its loop's thread. */
struct admin {
    uint32_t magic; /* ADMIN_MAGIC while it lives */
    struct loop *loop;
    struct http_server *server;
    struct store *store;
    const struct state_keys *state_keys;
    struct feed *feed;
    struct list streams; /* of events.c */
    struct list waits;   /* of results.c */
    struct list idle_waits;
    size_t idle_wait_count; /* of probes.c */
    struct gateway_worker *worker;
    struct provider *provider;
    struct slack *slack;
    struct refusals *refusals;
    struct session_watch *session_watch;
    const struct notifier *notifier; /* or NULL */
    char extra_token_sha256[65];
    char known_senders[KNOWN_SENDERS][65]; /* known_senders.c */
    size_t next_sender;
    bool (*upstream_reachable)(void *context);
    struct admin_traffic (*traffic)(void *context);
    void (*close_after_answers)(void *context, bool closes);
    void *context;
    char *config_error; /* or NULL */
    bool leaving;       /* /ready says so, and all goes on */
    bool shutting_down;
    bool closed;        /* the store is going, or gone */
    int64_t started_ms; /* monotonic */
};
#define ADMIN_MAGIC 0xad317e52

static inline struct admin *admin_from(void *context)
{
    return MAGIC_CAST(struct admin, ADMIN_MAGIC, context);
}

/* One request; lives until its handler returns. Longer work copies the parts that it needs. */
struct request {
    struct admin *admin;
    struct http_exchange *exchange;
    struct snapshot *snapshot;
    struct operator_identity *who; /* NULL on routes that need no role */
    enum right right;              /* that their roles give on this route */
    struct str id;                 /* the {id} of the path */
};

typedef void (*request_handler)(const struct request *request);

/* ---- router.c ---- */
void router_handle(struct http_exchange *exchange, void *admin);

/* ---- one handler per route, each in the file of its name ---- */
#define ROUTE(method, path, viewer, approver, caller, auditor, handler)                            \
    void handler(const struct request *request);
#define OPEN_ROUTE(method, path, any_host, handler) void handler(const struct request *request);
#include "routes_table.h"
#undef ROUTE
#undef OPEN_ROUTE
bool page_has(struct str path); /* whether a file of the page is served at `path` */
