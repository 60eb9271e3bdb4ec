/*
 * The gateway: MCP requests in, judged and relayed, held as tasks, or refused.
 *
 * One gateway per process, one worker per event loop; workers share the sessions and the
 * tool catalogue behind short locks, and send each other messages about the rest. A request is
 * judged by the snapshot that was in force when it came in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/error.h"
#include "taskgate/http/server.h"
#include "taskgate/loop/loop.h"
#include "taskgate/store/store.h"

struct gateway;
struct gateway_worker;

struct state_keys; /* taskgate/core/state_seal.h */

/* `store` and the keys of what clients keep for the gateway outlive it. */
struct gateway *gateway_create(struct store *store, const struct state_keys *state_keys);
/* After all its workers. NULL is allowed. */
void gateway_destroy(struct gateway *gateway);

/* Before the loops run; subscribes to the store on `loop`. NULL on failure. */
struct gateway_worker *gateway_worker_create(struct gateway *gateway, struct loop *loop,
                                             struct error *error);
/* After its loop has stopped: drops calls under way, so that the store may be closed. The worker
 * stays until the loop has delivered the store's messages. */
void gateway_worker_close(struct gateway_worker *worker);
void gateway_worker_destroy(struct gateway_worker *worker); /* closed; NULL is allowed */
/* The http_handler of the proxy port; context is the worker. */
void gateway_handle(struct http_exchange *exchange, void *worker);
/* Before there are workers: requests of sessions that live at other replicas are relayed to them,
 * and signed with `key` (copied; NULL: nothing is relayed). Does nothing where no other process
 * may use the store's database. */
void gateway_share(struct gateway *gateway, const char *key);
/* The http_handler of the port for other replicas; context is the worker. */
void gateway_handle_relayed(struct http_exchange *exchange, void *worker);
/* The http_refusal of the proxy port: a JSON-RPC error without an id. */
void gateway_refusal(int status, struct buffer *body, void *worker);

/* Fetches the tools of every enabled source with the gateway's own session, for the annotation
 * cache (behaviour 2.12). On the worker's loop; nothing waits for it. */
void gateway_fetch_tools(struct gateway_worker *worker);
/* After snapshot_install(): logs and counts the annotations anew and tells open GET streams
 * that the list has changed. Any thread. */
void gateway_reloaded(struct gateway *gateway);
/* Whether the last attempt to reach each enabled source's upstream was answered. Any thread. */
bool gateway_upstream_reachable(const struct gateway *gateway);

/* Whether a call that waits for a decision is bound to another definition than its owner was told
 * last. If so, appends that one to `now`, unless it is NULL: {"description", "annotations"}, each
 * null where there is none. Not known, and false, after a restart and at another replica. Any
 * thread. */
bool gateway_definition_changed(const struct gateway_worker *worker, const struct task *task,
                                struct buffer *now);

/* From now on waiting clients are answered -32013, streams end, nothing new is begun.
 * Any thread. */
void gateway_shut_down(struct gateway *gateway);
/* Requests and executions under way. Any thread. */
long gateway_in_flight(const struct gateway *gateway);
/* Those of them that are not streams which only listen: GET and subscriptions/listen. Any thread.
 */
long gateway_answering(const struct gateway *gateway);
/* Last words to servers that have not been answered yet, ends of sessions among them. Any thread.
 */
long gateway_parting(const struct gateway *gateway);
/* When another replica last relayed a request to this one; monotonic, 0: none has. Any thread. */
int64_t gateway_relayed_ms(const struct gateway *gateway);
/* The requests of agents since the start. Any thread. */
uint64_t gateway_arrived(const struct gateway *gateway);
