/*
 * What the files of the gateway share: the process-wide gateway, the worker of one loop and
 * the call, which is one request on its way.
 */
#pragma once

#include <stdatomic.h>

#include "taskgate/core/list.h"
#include "taskgate/core/map.h"
#include "taskgate/core/metrics.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/json/envelope.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/mcp/jsonrpc.h"
#include "taskgate/mcp/method.h"
#include "taskgate/upstream/upstream.h"

#include "methods/list_cache.h"
#include "methods/rate_limit.h"
#include "request/server_budget.h"
#include "state/session_table.h"
#include "state/tool_catalog.h"

#define OWNER_BYTES 80
/* Of everybody who has neither token nor session: what it owns is found by its id alone. */
#define OWNER_ANONYMOUS "anonymous"

struct gateway {
    struct store *store;
    struct sessions *sessions;
    struct catalog *catalog;
    struct list_cache *list_cache;
    struct rate_limit *rate_limit, *principal_rate_limit;
    struct quota *detached; /* calls that go on without their client (run/detached_cancel.c) */
    struct quota *promoted; /* tasks that were promoted and run, by client_key_of_call() */
    struct shadow *shadow;
    struct inbox_table *inbox_table;         /* inbox/inbox.h */
    struct input_table *inputs;              /* what upstream asks */
    struct request_headers *request_headers; /* of calls that are tasks */
    struct task_aliases *task_aliases;       /* which of ours each is, while it is followed */
    const struct detached_callbacks *detached_callbacks; /* run/detached_call.h; never NULL */
    struct gateway_worker **workers;
    size_t worker_count;
    atomic_bool shutting_down;
    atomic_long in_flight;
};

/* Everything in it belongs to its loop's thread. */
struct gateway_worker {
    struct gateway *gateway;
    struct loop *loop;
    struct upstream_client *client;
    struct buffer reachable_source; /* which upstream answered lately, and until when that holds */
    int64_t reachable_until_ms;     /* monotonic */
    struct metrics_handle active_requests;
    struct list calls;             /* struct call.node, every one that is not yet answered */
    struct list rpc_calls;         /* struct rpc_call.node: the gateway's own requests under way */
    struct loop_timer fetch_timer; /* the next try to fetch tools (mcp_client/tools_fetch.c) */
    struct log_aggregate *aggregate; /* calls that rules alone have decided; NULL until the first */
    struct loop_timer log_aggregate_timer; /* when what it has summed up is said; with `tally` */
    struct loop_timer sweep_timer; /* of the first worker: what has been idle too long goes */
    struct list streams;           /* struct notification_stream.node: open GET streams */
    struct map *waiters;           /* task id -> struct result_wait: open tasks/result */
    struct map *executions;        /* task id -> struct execution: credentials held, or running */
    struct list detached;          /* struct detached_call.node: all of them, tasks yet or not */
    struct map *detached_tasks;    /* task id -> struct detached_call: those that run */
};

/*
 * One request, from the envelope to its answer. It lives as long as anyone holds a
 * reference: the exchange does until it ends, and so does every message under way to the
 * store. `exchange` is NULL once the client has its answer or has gone; then nothing that
 * points into the request (envelope, headers) may be read any more.
 */
struct call;
typedef void (*call_step)(struct call *call);

struct call {
    struct list node;
    struct gateway_worker *worker;
    struct http_exchange *exchange;
    int references;
    struct snapshot *snapshot;
    const struct config_source *source;
    struct str body;          /* POST only: what was parsed, and what a relay sends */
    char *made_body;          /* owned: what `body` shows when it is not the client's own */
    struct envelope envelope; /* POST only */
    const struct mcp_method *method;
    bool is_executed; /* by execute_tool, with a patience of its own: */
    int64_t patience_ms;
    uint64_t tools_epoch;               /* of tools/list: catalog_epoch() when it was asked */
    bool identified;                    /* call_identify() has set the three below */
    char session[DIGEST_HEX_BYTES];     /* its digest, "" without */
    char token[DIGEST_HEX_BYTES];       /* digest of Authorization, "" without */
    char owner[OWNER_BYTES];            /* contract "Sessions, owners" */
    struct session_facts facts;         /* after call_with_facts() */
    struct list parts;                  /* what is under way for it: struct call_part.node */
    struct server_budget server_budget; /* for the requests of the server on its stream */
    bool upstream_broke;                /* the stream ended, and not by anybody's will */
    call_step next;      /* where to go on when the store, the ping or the list has come */
    const char *outcome; /* "success" or "error", for the metric */
};

/* ---- request/call.c ---- */
struct call *call_create(struct gateway_worker *worker, struct http_exchange *exchange,
                         struct snapshot *snapshot, const struct config_source *source);
struct call *call_ref(struct call *call);
void call_unref(struct call *call);
/* Works out whom the request speaks for: session, token, owner. Everything but a call that is
 * plainly forwarded needs it. */
void call_identify(struct call *call);
/* What its owner was told of a tool. Identifies the call. */
void call_find_tool(struct call *call, struct str name, struct catalog_tool *tool);
/* Loads what is known of the request's session (memory, else store), then goes on; not at
 * all if the client has gone meanwhile. */
void call_with_facts(struct call *call, call_step next);
/* Takes over what the store has answered about the request's session. */
void call_take_facts(struct call *call, const struct store_reply *reply);
/* Upstream has accepted the session (a digest, or "") with the request's token; the store is told
 * when that is news. After call_identify(). */
void call_note_acceptance(struct call *call, struct str session);
/* Whether the request's session or token owns the task; else it must look unknown. */
bool call_owns(const struct call *call, const struct task *task);
/* The answers; each ends the exchange. Errors travel with HTTP 200, because clients read them only
 * there. A notification has no answer: 202. */
void call_answer(struct call *call, struct str message);
void call_answer_result(struct call *call, struct str result);
void call_answer_error(struct call *call, enum jsonrpc_error error, struct str message,
                       const struct jsonrpc_error_data *data);
void call_answer_status(struct call *call, int status, struct str body);
/* The exchange is answered by the caller, by other means, or has gone: the call drops its parts. */
void call_ended(struct call *call);
/* A store_call that answers to `callback` with this call as its context; takes a reference
 * that `callback` must give back. */
struct store_call call_to_store(struct call *call, store_callback callback);
struct str call_tool(const struct call *call);

/* Puts a message of ours (taken over) in the place of the client's, with the same id. */
enum envelope_status call_replace_body(struct call *call, struct buffer *body, struct error *error);

/* ---- the methods, one file each ---- */
void initialize_handle(struct call *call);
void tools_list_handle(struct call *call);
void tools_call_handle(struct call *call);
void resources_list_handle(struct call *call);
void resources_templates_list_handle(struct call *call);
void prompts_list_handle(struct call *call);
/* For relay_options.rewrite of a GET stream that goes on where another ended: what is on it may be
 * the answer to any request, a list among them. */
void lists_rewrite_resumed(struct call *call, struct str result, struct buffer *new_result);
void name_gate_handle(struct call *call); /* resources/read, resources/subscribe, prompts/get */
void completion_handle(struct call *call);
void unsubscribe_handle(struct call *call);
void tasks_get_handle(struct call *call);
void tasks_result_handle(struct call *call);
void tasks_cancel_handle(struct call *call);
void tasks_list_handle(struct call *call);

/* ---- mcp_client/credential_check.c ---- */
/* Goes on once upstream has accepted this session and token within five minutes; asks it by
 * a ping when need be, and answers the call itself when upstream refuses. */
void credential_check_then(struct call *call, call_step next);

/* ---- methods/tools_call.c ---- */
/* Puts the call to every gate, as if the client had called the tool plainly. For execute_tool,
 * once it has replaced the body. */
void tools_call_execute(struct call *call, int64_t patience_ms);

/* ---- run/task_create.c ---- */
/* A task that is answered at once; compat/plain_call.h has those that are not. */
void task_create_from_call(struct call *call, const struct policy_decision *decision,
                           const struct catalog_tool *tool, bool accelerated);
/* A new task, bound to the call; nothing of it is stored yet. */
struct task *task_create_bound(const struct call *call, const struct policy_decision *decision,
                               const struct catalog_tool *tool, bool accelerated);
/* The store did not take it. The log is told in any case, the client if it is there. */
void task_create_log_refused(const struct call *call, enum store_status status);
void task_create_answer_refused(struct call *call, enum store_status status);
