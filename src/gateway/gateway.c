/* The gateway of the process and the worker of each loop. */
#include <stdlib.h>

#include "compat/detached_answer.h"
#include "decision/decision_log.h"
#include "decision/shadow.h"
#include "inbox/inbox.h"
#include "inbox/inbox_events.h"
#include "input/input_request.h"
#include "internal.h"
#include "mcp_client/rpc_call.h"
#include "mcp_client/tools_fetch.h"
#include "relay/notification_stream.h"
#include "relay/relay.h"
#include "request/request_headers.h"
#include "request/worker.h"
#include "run/detached_call.h"
#include "run/execution.h"
#include "run/quota.h"
#include "run/result_wait.h"
#include "run/task_aliases.h"
#include "state/server_status.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/gateway/control.h"

#define IDLE_CONNECTIONS 256

/* Clients are told, and a server that is back may have other tools now. */
static void on_server_changed(void *context, struct str source, enum catalog_change change)
{
    struct gateway *gateway = context;
    if (change == CATALOG_RECONNECTED)
        fetch_soon(gateway);
    pseudo_tell_server(gateway, source, change);
}

struct gateway *gateway_create(struct store *store)
{
    struct gateway *gateway = memory_alloc(sizeof *gateway);
    gateway->store = store;
    gateway->sessions = sessions_create();
    gateway->catalog = catalog_create();
    server_status_observe(gateway->catalog, &(struct server_observer){on_server_changed, gateway});
    gateway->kept_lists = kept_lists_create();
    gateway->rate = rate_create();
    gateway->principal_rate = rate_create();
    gateway->detached = quota_create();
    gateway->promoted = quota_create();
    gateway->detached_callbacks = &detached_answers;
    gateway->shadow = shadow_create();
    gateway->pseudo_clients = pseudo_clients_create();
    gateway->questions = question_table_create();
    gateway->upstream_tasks = upstream_tasks_create();
    gateway->request_headers = request_headers_create();
    return gateway;
}

void gateway_destroy(struct gateway *gateway)
{
    if (!gateway)
        return;
    shadow_destroy(gateway->shadow);
    pseudo_clients_destroy(gateway->pseudo_clients);
    request_headers_destroy(gateway->request_headers);
    upstream_tasks_destroy(gateway->upstream_tasks);
    question_table_destroy(gateway->questions);
    quota_destroy(gateway->promoted);
    quota_destroy(gateway->detached);
    rate_destroy(gateway->rate);
    rate_destroy(gateway->principal_rate);
    kept_lists_destroy(gateway->kept_lists);
    catalog_destroy(gateway->catalog);
    sessions_destroy(gateway->sessions);
    free(gateway->workers);
    free(gateway);
}

/* A task was created or has moved: whoever waits for it on this loop hears of it. */
static void on_task(void *context, struct task *task, bool created)
{
    struct gateway_worker *worker = context;
    if (worker == worker->gateway->workers[0])
        pseudo_tell(worker->gateway, task, created);
    if (!created)
        stream_tell_status(worker, task);
    waiting_tell(worker, task);
    execution_tell(worker, task);
    promotion_tell(worker, task);
}

static void on_sweep(void *context)
{
    struct gateway_worker *worker = context;
    struct snapshot *snapshot = snapshot_current();
    pseudo_clients_sweep(worker->gateway->pseudo_clients, clock_monotonic_ms());
    loop_timer_start(&worker->sweep_timer, snapshot->config->pseudo.cleanup_interval_ms);
    snapshot_unref(snapshot);
}

struct gateway_worker *gateway_worker_create(struct gateway *gateway, struct loop *loop,
                                             struct error *error)
{
    struct gateway_worker *worker = memory_alloc(sizeof *worker);
    worker->gateway = gateway;
    worker->loop = loop;
    worker->client = upstream_client_create(loop, IDLE_CONNECTIONS, error);
    if (!worker->client) {
        free(worker);
        return NULL;
    }
    list_init(&worker->calls);
    loop_timer_init(&worker->fetch_timer, loop, fetch_missing, worker);
    loop_timer_init(&worker->sweep_timer, loop, on_sweep, worker);
    list_init(&worker->asks);
    list_init(&worker->streams);
    worker->waiters = map_create();
    worker->executions = map_create();
    worker->promotions = map_create();
    list_init(&worker->detached);
    gateway->workers = memory_grow_array(gateway->workers, gateway->worker_count + 1,
                                         sizeof(struct gateway_worker *));
    gateway->workers[gateway->worker_count++] = worker;
    store_observe(gateway->store, loop, on_task, worker);
    if (gateway->worker_count == 1) {
        control_resume(worker);
        loop_timer_start(&worker->sweep_timer, 0);
    }
    return worker;
}

/* What is still under way is cut: the time to end it in order has passed. */
static void drop_calls(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        http_on_gone(call->exchange, NULL, NULL);
        call_ended(call);
    }
}

void gateway_worker_close(struct gateway_worker *worker)
{
    fetch_stop(worker);
    loop_timer_stop(&worker->sweep_timer);
    drop_calls(worker);
    executions_drop(worker);
    promotions_drop(worker);
    ask_cancel_all(worker);
    decided_finish(worker);
}

void gateway_worker_destroy(struct gateway_worker *worker)
{
    if (!worker)
        return;
    questions_drop(worker);
    map_destroy(worker->promotions, NULL);
    map_destroy(worker->executions, NULL);
    map_destroy(worker->waiters, NULL);
    upstream_client_destroy(worker->client);
    buffer_finish(&worker->reachable_source);
    free(worker);
}

void gateway_reloaded(struct gateway *gateway)
{
    struct snapshot *snapshot = snapshot_current();
    catalog_reconfigure(gateway->catalog, snapshot->config);
    catalog_announce_all(gateway->catalog, snapshot);
    snapshot_unref(snapshot);
    workers_broadcast(gateway, stream_tell_list_changed, NULL, STR_EMPTY);
    fetch_soon(gateway);
}

void gateway_fetch_tools(struct gateway_worker *worker)
{
    struct snapshot *snapshot = snapshot_current();
    catalog_reconfigure(worker->gateway->catalog, snapshot->config);
    snapshot_unref(snapshot);
    fetch_missing(worker);
}

bool gateway_upstream_reachable(const struct gateway *gateway)
{
    return catalog_all_reachable(gateway->catalog);
}

/* ---- shutting down ---- */

static void shut_down_worker(struct gateway_worker *worker, struct task *unused, struct str none)
{
    waiting_end_all(worker);
    stream_end_all(worker);
    relay_end_opening(worker);
}

void gateway_shut_down(struct gateway *gateway)
{
    atomic_store(&gateway->shutting_down, true);
    workers_broadcast(gateway, shut_down_worker, NULL, STR_EMPTY);
}

long gateway_in_flight(const struct gateway *gateway)
{
    return atomic_load(&gateway->in_flight);
}
