/* The gateway of the process and the worker of each loop. */
#include <stdio.h>
#include <stdlib.h>

#include "auth/token_check.h"
#include "auth/token_exchange.h"
#include "call/broadcast.h"
#include "call/call.h"
#include "call/request_headers.h"
#include "client/cancelled.h"
#include "client/legacy_stream.h"
#include "client/listen.h"
#include "conversation/answer_gate.h"
#include "conversation/conversation.h"
#include "conversation/detach.h"
#include "conversation/execute.h"
#include "conversation/question.h"
#include "conversation/relay.h"
#include "conversation/rounds.h"
#include "conversation/task_create.h"
#include "conversation/waiting.h"
#include "decision/decision_log.h"
#include "decision/shadow.h"
#include "gates/gates.h"
#include "gates/rate_limit.h"
#include "inbox/inbox.h"
#include "methods/list_cache.h"
#include "replicas/carry.h"
#include "replicas/news.h"
#include "replicas/replicas.h"
#include "server/catalogue.h"
#include "server/own.h"
#include "server/sessions.h"
#include "state/definition_watch.h"
#include "state/quota.h"
#include "state/session_table.h"
#include "state/source_eras.h"
#include "state/task_aliases.h"
#include "state/tool_catalog.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/gateway/blocks.h"
#include "taskgate/gateway/control.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/store/store.h"
#include "tools/plain.h"
#include "tools/repeated_news.h"

/*
 * News between the rooms of this process and other replicas: what happens here is told there, and
 * what others tell goes to the clients of this one. On the worker's loop.
 */

/* Replicas are given a new configuration one after the other: clients are told once for those that
 * tell of it within this time. */
#define GATHER_MS 1000

/* Every worker hears of what happens in the process. One tells it to others. */
static bool is_first(const struct gateway_worker *worker)
{
    return worker == worker->gateway->workers[0];
}

/* ---- from here ---- */

/* The configuration was changed here. Tells the others once, whichever worker it is called on. */
static void replica_news_send_tools(struct gateway_worker *worker)
{
    if (is_first(worker))
        news_send(worker, &(struct news){.kind = NEWS_TOOLS_CHANGED});
}

/* The server of a call that runs here has put or withdrawn a question. The same. */
static void replica_news_send_asks(struct gateway_worker *worker, const struct task *task)
{
    struct news news = {.kind = NEWS_TASK_ASKS};
    struct dialect_view view = {.is_asking = false};
    struct buffer requests, questions;
    if (!is_first(worker) || !worker->gateway->replicas)
        return;
    buffer_init(&requests);
    buffer_init(&questions);
    question_view(worker->gateway, task, &view, &questions);
    rounds_show(worker->gateway->questions, str_from(task->id), &requests, &view.changed_ms);
    snprintf(news.task, sizeof news.task, "%s", task->id);
    news.requests = buffer_str(&requests);
    news.questions = view.pending_elicitations;
    news.is_asking = view.is_asking;
    news.changed_ms = view.changed_ms;
    news_send(worker, &news);
    buffer_finish(&requests);
    buffer_finish(&questions);
}

/* ---- from others ---- */

static void tell_of_tools(void *context)
{
    struct gateway_worker *worker = gateway_worker_from(context);
    client_streams_send_list_changed(worker);
    listens_send_list_changed(worker);
}

static void take_tools(struct gateway_worker *worker, const struct news *news)
{
    (void)news;
    if (!loop_timer_is_running(&worker->tools_changed_timer))
        loop_timer_start(&worker->tools_changed_timer, GATHER_MS);
}

/* A task that another replica has reported, while it is read. */
struct shown_task {
    struct gateway_worker *worker;
    struct news news; /* its texts are owned */
};

static void shown_task_destroy(struct shown_task *shown)
{
    broadcast_release(shown->news.questions);
    free(shown);
}

/* The change to executing is in the feed as well, and may come later. */
static void on_shown_task(void *context, const struct store_reply *reply)
{
    struct shown_task *shown = context;
    if (reply->status == STORE_OK && reply->task->state == TASK_EXECUTING) {
        const struct dialect_view view = {.is_asking = shown->news.is_asking,
                                          .changed_ms = shown->news.changed_ms,
                                          .pending_elicitations = shown->news.questions};
        client_streams_send_view(shown->worker, reply->task, &view);
    }
    shown_task_destroy(shown);
}

static void take_asks(struct gateway_worker *worker, const struct news *news)
{
    listens_note_news(worker, news);
    if (list_is_empty(&worker->streams) || atomic_load(&worker->gateway->shutting_down))
        return;
    struct shown_task *shown = memory_alloc(sizeof *shown);
    shown->worker = worker;
    shown->news = *news;
    shown->news.requests = shown->news.wait = shown->news.call = STR_EMPTY;
    shown->news.questions = broadcast_copy(news->questions);
    store_task_get(worker->gateway->store, str_from(shown->news.task),
                   (struct store_call){worker->loop, on_shown_task, shown});
}

static void take_wanted(struct gateway_worker *worker, const struct news *news)
{
    struct news asks = {.kind = NEWS_TASK_ASKS};
    struct buffer requests;
    if (!is_first(worker))
        return;
    buffer_init(&requests);
    snprintf(asks.task, sizeof asks.task, "%s", news->task);
    if (rounds_show(worker->gateway->questions, str_from(news->task), &requests,
                    &asks.changed_ms)) {
        asks.requests = buffer_str(&requests);
        news_send(worker, &asks);
    }
    buffer_finish(&requests);
}

/* gateway->news */
static void replica_news_take(struct gateway_worker *worker, const struct news *news)
{
    static void (*const takers[NEWS_COUNT])(struct gateway_worker * worker,
                                            const struct news *news) = {
        [NEWS_TOOLS_CHANGED] = take_tools,         [NEWS_TASK_ASKS] = take_asks,
        [NEWS_TASK_WANTED] = take_wanted,          [NEWS_WAIT_OVER] = cancelled_take_news,
        [NEWS_REPEATED_CALL] = repeated_news_take,
    };
    ASSERT_NUMBERS(news->kind, <, NEWS_COUNT);
    takers[news->kind](worker, news);
}

/* ---- the worker ---- */

static void replica_news_worker_init(struct gateway_worker *worker)
{
    list_init(&worker->news);
    list_init(&worker->pulses);
    loop_timer_init(&worker->tools_changed_timer, worker->loop, tell_of_tools, worker);
}

static void replica_news_worker_close(struct gateway_worker *worker)
{
    loop_timer_stop(&worker->tools_changed_timer);
    news_drop(worker);
}

#define IDLE_CONNECTIONS 256

/* Clients get an event. A server that is back may have other tools now. */
static void on_server_changed(void *context, struct str source, enum catalog_change change)
{
    struct gateway *gateway = gateway_from(context);
    if (change == CATALOG_RECONNECTED)
        tools_fetch_soon(gateway);
    inbox_note_server(gateway, source, change);
}

static void on_input_offered(struct gateway_worker *worker, const struct task *task)
{
    waiting_offer(worker, task);
    client_streams_offer(worker, task);
}

/* A stream numbered by `claimant` is one that waits for a task's result, or a GET stream. */
static void send_to_claimant(struct gateway_worker *worker, const struct task *task,
                             uint64_t claimant, struct str message)
{
    if (!task || !waiting_send(worker, task, claimant, message))
        client_streams_send(worker, claimant, message);
}

static void on_input_status(struct gateway_worker *worker, struct task *task)
{
    client_streams_send_status(worker, task);
    replica_news_send_asks(worker, task);
}

static const struct question_events question_events = {
    .changed = execution_input_changed,
    .status = on_input_status,
    .offer = on_input_offered,
    .offer_client = client_streams_offer_client,
    .send = send_to_claimant,
};

/* Of a client with tasks that listens, or of one without that holds the call. */
static void on_task_asks(struct gateway_worker *worker, const struct task *task)
{
    listens_note_requests(worker, task);
    plain_call_note_requests(worker, task);
    replica_news_send_asks(worker, task);
}

struct lost_task {
    struct gateway *gateway;
    struct task *task;
};

static void tell_lost(void *context)
{
    struct lost_task *lost = context;
    inbox_note_lost_task(lost->gateway, lost->task);
    task_unref(lost->task);
    free(lost);
}

/* On the loop that hears of each change for the process: what the feed has told is told there
 * before. */
static void on_task_lost(struct gateway *gateway, struct task *task)
{
    struct lost_task *lost = memory_alloc(sizeof *lost);
    *lost = (struct lost_task){gateway, task_ref(task)};
    loop_post(gateway->workers[0]->loop, tell_lost, lost);
}

static void on_pin_again(void *context, struct str source)
{
    struct gateway *gateway = gateway_from(context);
    catalog_pin_again(gateway->catalog, source);
}

/* P(member, create, destroy): the parts of a gateway that need nothing to begin, in the order of
 * their end. Rewritten lists hold pages of the catalogue. */
#define GATEWAY_PARTS(P)                                                                           \
    P(shadow, shadow_create, shadow_destroy)                                                       \
    P(inbox_table, inbox_table_create, inbox_table_destroy)                                        \
    P(request_headers, request_headers_create, request_headers_destroy)                            \
    P(token_check, token_check_create, token_check_destroy)                                        \
    P(token_exchanges, token_exchange_table_create, token_exchange_table_destroy)                  \
    P(task_aliases, task_aliases_create, task_aliases_destroy)                                     \
    P(questions, question_table_create, question_table_destroy)                                    \
    P(task_places, quota_create, quota_destroy)                                                    \
    P(opened_sessions, quota_create, quota_destroy)                                                \
    P(unknown_listens, quota_create, quota_destroy)                                                \
    P(fed_streams, quota_create, quota_destroy)                                                    \
    P(listens, quota_create, quota_destroy)                                                        \
    P(promoted, quota_create, quota_destroy)                                                       \
    P(promoted_in, quota_create, quota_destroy)                                                    \
    P(ended_sessions, quota_create, quota_destroy)                                                 \
    P(detached, quota_create, quota_destroy)                                                       \
    P(rate_limit, rate_limit_create, seen_table_destroy)                                           \
    P(principal_rate_limit, rate_limit_create, seen_table_destroy)                                 \
    P(list_cache, list_cache_create, seen_table_destroy)                                           \
    P(rewritten_lists, rewritten_lists_create, seen_table_destroy)                                 \
    P(catalog, catalog_create, catalog_destroy)                                                    \
    P(accepted_pairs, accepted_pairs_create, seen_table_destroy)                                   \
    P(sessions, sessions_create, seen_table_destroy)                                               \
    P(given_sessions, given_sessions_create, seen_table_destroy)                                   \
    P(eras, source_eras_create, source_eras_destroy)

struct gateway *gateway_create(struct store *store, const struct state_keys *state_keys)
{
    struct gateway *gateway = memory_alloc(sizeof *gateway);
    MAGIC_SET(gateway, GATEWAY_MAGIC);
    gateway->store = store;
    gateway->state_keys = state_keys;
#define CREATE(member, create, destroy) gateway->member = create();
    GATEWAY_PARTS(CREATE)
#undef CREATE
    gateway->definitions = definition_watch_create(store);
    catalog_set_watch(gateway->catalog, gateway->definitions);
    server_status_observe(gateway->catalog, &(struct server_observer){on_server_changed, gateway});
    gateway->detached_callbacks = &detached_answers;
    gateway->question_events = &question_events;
    gateway->task_asks = on_task_asks;
    gateway->task_lost = on_task_lost;
    gateway->task_message = client_streams_send_owner;
    gateway->news = replica_news_take;
    return gateway;
}

void gateway_destroy(struct gateway *gateway)
{
    if (!gateway)
        return;
#define DESTROY(member, create, destroy) destroy(gateway->member);
    GATEWAY_PARTS(DESTROY)
#undef DESTROY
    replicas_destroy(gateway->replicas);
    definition_watch_destroy(gateway->definitions);
    blocks_end();
    free(gateway->workers);
    MAGIC_CLEAR(gateway);
    free(gateway);
}

/* A task was created or has moved: reports it to each room that waits for it on this loop. */
static void on_task(void *context, struct task *task, bool created)
{
    struct gateway_worker *worker = gateway_worker_from(context);
    answer_gate_note_task(worker, task);
    if (worker == worker->gateway->workers[0])
        task_room_note_task(worker->gateway, task);
    if (task_is_answer(task))
        return; /* no client hears of it */
    if (worker == worker->gateway->workers[0])
        inbox_note_task(worker->gateway, task, created);
    if (!created)
        client_streams_send_status(worker, task);
    waiting_note_task(worker, task);
    execution_note_task(worker, task);
    detached_call_note_task(worker, task);
    listens_note_task(worker, task);
}

static void on_sweep(void *context)
{
    struct gateway_worker *worker = gateway_worker_from(context);
    struct snapshot *snapshot = snapshot_current();
    inbox_table_sweep(worker->gateway->inbox_table, clock_monotonic_ms());
    definition_watch_retry(worker->gateway->definitions);
    loop_timer_start(&worker->sweep_timer, snapshot->config->pseudo.cleanup_interval_ms);
    snapshot_unref(snapshot);
}

struct gateway_worker *gateway_worker_create(struct gateway *gateway, struct loop *loop,
                                             struct error *error)
{
    struct gateway_worker *worker = memory_alloc(sizeof *worker);
    MAGIC_SET(worker, GATEWAY_WORKER_MAGIC);
    worker->gateway = gateway;
    worker->loop = loop;
    worker->client = upstream_client_create(loop, IDLE_CONNECTIONS, error);
    if (!worker->client) {
        free(worker);
        return NULL;
    }
    list_init(&worker->calls);
    loop_timer_init(&worker->fetch_timer, loop, tools_fetch_missing, worker);
    loop_timer_init(&worker->sweep_timer, loop, on_sweep, worker);
    list_init(&worker->exchanges_reading);
    list_init(&worker->parked_sessions);
    list_init(&worker->opened_sessions);
    list_init(&worker->streams);
    list_init(&worker->listens);
    list_init(&worker->handovers);
    replica_news_worker_init(worker);
    worker->legs = map_create();
    worker->conversations = map_create();
    worker->waiters = map_create();
    worker->answers = map_create();
    worker->executions = map_create();
    worker->detached_tasks = map_create();
    list_init(&worker->detached);
    token_check_worker_init(worker);
    gateway->workers = memory_grow_array(gateway->workers, gateway->worker_count + 1,
                                         sizeof(struct gateway_worker *));
    gateway->workers[gateway->worker_count++] = worker;
    store_observe(gateway->store, loop, on_task, worker);
    if (gateway->worker_count == 1) {
        definition_watch_start(gateway->definitions, loop, on_pin_again, gateway);
        blocks_start(gateway->store, loop);
        control_resume(worker);
        loop_timer_start(&worker->sweep_timer, 0);
    }
    return worker;
}

/* Cuts the calls that are still under way: the time for an orderly end is over. */
static void drop_calls(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        call_ended(LIST_ENTRY(node, struct call, node));
    }
}

void gateway_worker_close(struct gateway_worker *worker)
{
    tools_fetch_stop(worker);
    loop_timer_stop(&worker->sweep_timer);
    if (worker == worker->gateway->workers[0])
        blocks_close();
    replica_news_worker_close(worker);
    drop_calls(worker);
    answer_gates_drop(worker);
    executions_drop(worker);
    detached_calls_drop(worker);
    conversations_drop(worker);
    session_pool_close(worker);
    parked_sessions_finish(worker);
    decision_log_finish(worker);
    token_exchange_worker_close(worker);
    token_check_worker_close(worker);
}

void gateway_worker_destroy(struct gateway_worker *worker)
{
    if (!worker)
        return;
    question_drop(worker);
    map_destroy(worker->detached_tasks, NULL);
    map_destroy(worker->executions, NULL);
    map_destroy(worker->waiters, NULL);
    map_destroy(worker->conversations, NULL);
    map_destroy(worker->legs, NULL);
    map_destroy(worker->answers, NULL);
    upstream_client_destroy(worker->client);
    MAGIC_CLEAR(worker);
    free(worker);
}

static void deliver_list_changed(struct gateway_worker *worker, const void *none)
{
    client_streams_send_list_changed(worker);
    listens_send_list_changed(worker);
    replica_news_send_tools(worker);
}

static const struct broadcast_kind list_changed_kind = {.deliver = deliver_list_changed};

void gateway_reloaded(struct gateway *gateway)
{
    struct snapshot *snapshot = snapshot_current();
    catalog_reconfigure(gateway->catalog, snapshot->config);
    catalog_announce_all(gateway->catalog, snapshot);
    snapshot_unref(snapshot);
    atomic_store(&gateway->reloaded_ms, clock_monotonic_ms());
    broadcast_send(gateway, &list_changed_kind, NULL);
    tools_fetch_soon(gateway);
}

void gateway_fetch_tools(struct gateway_worker *worker)
{
    struct snapshot *snapshot = snapshot_current();
    catalog_reconfigure(worker->gateway->catalog, snapshot->config);
    server_status_show(worker->gateway->catalog);
    snapshot_unref(snapshot);
    token_check_prepare(worker);
    tools_fetch_missing(worker);
}

void gateway_handle(struct http_exchange *exchange, void *worker)
{
    gates_handle(gateway_worker_from(worker), exchange);
}

void gateway_share(struct gateway *gateway, const char *key)
{
    gateway->replicas = replicas_create(gateway->store, key);
}

void gateway_handle_relayed(struct http_exchange *exchange, void *worker)
{
    gates_handle_relayed(gateway_worker_from(worker), exchange);
}

void gateway_refusal(int status, struct buffer *body, void *worker)
{
    gates_write_refusal(status, body);
}

bool gateway_upstream_reachable(const struct gateway *gateway)
{
    return catalog_all_reachable(gateway->catalog);
}

/* ---- shutting down ---- */

static void deliver_shut_down(struct gateway_worker *worker, const void *none)
{
    listens_end_all(worker); /* before all that is held is refused */
    waiting_end_all(worker);
    client_streams_end_all(worker);
    relay_end_opening(worker);
    carry_end_all(worker);
    conversations_end_waiting(worker);
    session_pool_end_idle(worker);
}

static const struct broadcast_kind shut_down_kind = {.deliver = deliver_shut_down};

void gateway_shut_down(struct gateway *gateway)
{
    atomic_store(&gateway->shutting_down, true);
    broadcast_send(gateway, &shut_down_kind, NULL);
}

long gateway_in_flight(const struct gateway *gateway)
{
    return atomic_load(&gateway->in_flight);
}

long gateway_answering(const struct gateway *gateway)
{
    return atomic_load(&gateway->in_flight) - atomic_load(&gateway->listening);
}

long gateway_parting(const struct gateway *gateway)
{
    return atomic_load(&gateway->parting);
}

int64_t gateway_relayed_ms(const struct gateway *gateway)
{
    return gateway->replicas ? atomic_load(&gateway->replicas->relayed_ms) : 0;
}

uint64_t gateway_arrived(const struct gateway *gateway)
{
    return atomic_load(&gateway->arrived);
}
