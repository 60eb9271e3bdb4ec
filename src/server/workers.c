/* The event loops, their listeners and their threads. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "taskgate/config/config.h"
#include "taskgate/config/memory_limit.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/budget.h"
#include "taskgate/core/error.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/http/server.h"
#include "workers.h"

struct replica_port {
    char address[INET6_ADDRSTRLEN]; /* of an interface of this machine */
    uint16_t port;
};

/* HOST:PORT as an address to listen on. */

/* The configuration has been checked for the form. */
static bool workers_cut(struct str text, char **host, struct replica_port *port)
{
    size_t digits = 0;
    uint64_t number;
    while (text.bytes && digits < text.length && text.bytes[text.length - digits - 1] != ':')
        digits++;
    if (digits >= text.length ||
        !str_to_u64(str_slice(text.bytes + text.length - digits, digits), &number) || number == 0 ||
        number > UINT16_MAX)
        return false;
    struct str name = str_slice(text.bytes, text.length - digits - 1);
    if (str_starts_with(name, STR("[")) && str_ends_with(name, STR("]")))
        name = str_slice(name.bytes + 1, name.length - 2);
    *host = memory_copy_str(name);
    port->port = (uint16_t)number;
    return true;
}

static bool workers_look_up(const char *host, struct replica_port *port, struct error *error)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int code = getaddrinfo(host, NULL, &hints, &found);
    if (code != 0)
        return error_set(error,
                         "replica.address: the name %s is not found (%s); name the address "
                         "to listen on in replica.bind",
                         host, gai_strerror(code));
    bool is_written = getnameinfo(found->ai_addr, found->ai_addrlen, port->address,
                                  sizeof port->address, NULL, 0, NI_NUMERICHOST) == 0;
    freeaddrinfo(found);
    return is_written || error_set(error, "replica.bind: %s is no address to listen on", host);
}

/* Looks the name up, so it may block: at the start alone. */
static bool replica_port_read(struct replica_port *port, const struct config *config,
                              struct error *error)
{
    struct str scheme = STR("http://"), text = str_from(config->replica.bind);
    char *host = NULL;
    if (text.length == 0) {
        text = str_from(config->replica.address);
        text = str_slice(text.bytes + scheme.length, text.length - scheme.length);
    }
    if (!workers_cut(text, &host, port))
        return error_set(error, "replica.bind: %.*s has no port to listen on", STR_ARGS(text));
    bool is_found = workers_look_up(host, port, error);
    free(host);
    return is_found;
}

#define READ_TIMEOUT_MS 60000
#define STREAM_HIGH_WATER ((size_t)256 * 1024)
#define HEAD_BYTES ((size_t)16 * 1024)

/* One event loop with its listener. */
struct worker {
    uint32_t magic; /* WORKER_MAGIC */
    struct workers *workers;
    struct loop *loop;
    struct http_server *proxy;
    struct http_server *replicas; /* for the other replicas; NULL: they send nothing here */
    struct gateway_worker *gateway;
    pthread_t thread;
    bool has_thread;
    sem_t stopped;   /* its loop runs no more */
    sem_t dismissed; /* nothing of its loop is left */
};
#define WORKER_MAGIC 0x53565702

struct workers {
    struct gateway *gateway;
    struct budget *budget; /* of all listeners, and of the operators' */
    struct http_port *proxy_port, *replica_port;
    atomic_size_t open_proxies; /* of a drain: proxies with connections */
    size_t count;
    struct worker list[];
};

static struct worker *worker_from(void *context)
{
    return MAGIC_CAST(struct worker, WORKER_MAGIC, context);
}

/* ---- starting ---- */

/* h2o doubles its buffer until a request fits, with a head of some KiB. */
static struct budget_limits budget_limits_of(const struct config *config)
{
    const struct config_limits *limits = &config->limits;
    return (struct budget_limits){.bytes = (size_t)limits->bodies_bytes,
                                  .percent = limits->share_percent,
                                  .least_bytes = 2 * ((size_t)limits->body_bytes + HEAD_BYTES)};
}

static void log_memory(const struct config *config)
{
    log_info("Memory limit", LOG_NUMBER("bytes", memory_limit_of(config)),
             LOG_NUMBER("worst_case", memory_limit_worst(config)),
             LOG_NUMBER("bodies_bytes", config->limits.bodies_bytes),
             LOG_NUMBER("result_bytes", config->limits.result_bytes),
             LOG_NUMBER("connections", config->limits.connections));
}

struct workers *workers_create(struct gateway *gateway, const struct config *config)
{
    size_t count = config->workers > 0 ? (size_t)config->workers : 1;
    struct workers *workers = memory_alloc(sizeof *workers + count * sizeof(struct worker));
    workers->gateway = gateway;
    const struct budget_limits limits = budget_limits_of(config);
    workers->budget = budget_create(&limits);
    log_memory(config);
    workers->proxy_port = http_port_create((int)config->limits.connections);
    workers->replica_port = http_port_create((int)config->limits.connections);
    workers->count = count;
    for (size_t i = 0; i < count; i++) {
        MAGIC_SET(&workers->list[i], WORKER_MAGIC);
        workers->list[i].workers = workers;
    }
    return workers;
}

/* The options that the two ports of a worker share: a call that another replica relays has come
 * through its proxy port, so the bounds are the same. */
static struct http_server_options port_options(const struct worker *worker,
                                               const struct config *config)
{
    const struct workers *workers = worker->workers;
    return (struct http_server_options){
        .reuse_port = workers->count > 1,
        .first_on_port = workers->count > 1 && worker == workers->list,
        .max_body_bytes = (size_t)config->limits.body_bytes,
        .budget = workers->budget,
        .read_timeout_ms = READ_TIMEOUT_MS,
        .stream_high_water = STREAM_HIGH_WATER,
        .context = worker->gateway,
    };
}

static bool listen_for_replicas(struct worker *worker, const struct config *config,
                                const struct replica_port *port, struct error *error)
{
    struct http_server_options options = port_options(worker, config);
    options.address = str_from(port->address);
    options.port = port->port;
    options.port_name = "replicas";
    options.shared_port = worker->workers->replica_port;
    options.handler = gateway_handle_relayed;
    worker->replicas = http_server_create(worker->loop, &options, error);
    return worker->replicas ||
           error_suffix(error, "free the port, or name another in replica.bind");
}

static bool start_worker(struct worker *worker, const struct config *config, uint16_t port,
                         struct error *error)
{
    ASSERT(!worker->loop && !worker->proxy); /* it starts once */
    worker->loop = loop_create(error);
    if (!worker->loop)
        return false;
    worker->gateway = gateway_worker_create(worker->workers->gateway, worker->loop, error);
    if (!worker->gateway)
        return false;
    struct http_server_options options = port_options(worker, config);
    options.address = str_from(config->proxy_bind);
    options.port = port;
    options.transport = "http";
    options.port_name = "proxy";
    options.shared_port = worker->workers->proxy_port;
    options.tls = config->proxy_tls.server;
    options.handler = gateway_handle;
    options.refusal = gateway_refusal;
    worker->proxy = http_server_create(worker->loop, &options, error);
    return worker->proxy ||
           error_suffix(error, "free the port, or name another in THOUGHTGATE_OUTBOUND_PORT");
}

bool workers_listen_for_replicas(struct workers *workers, const struct config *config,
                                 struct error *error)
{
    struct replica_port port = {.port = 0};
    if (!replica_port_read(&port, config, error))
        return false;
    for (size_t i = 0; i < workers->count; i++) {
        if (!listen_for_replicas(&workers->list[i], config, &port, error))
            return false;
    }
    log_info("Listening for other replicas", LOG_TEXT("address", port.address),
             LOG_NUMBER("port", port.port));
    return true;
}

bool workers_start(struct workers *workers, const struct config *config, struct error *error)
{
    uint16_t port = config->proxy_port;
    for (size_t i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->list[i];
        if (!start_worker(worker, config, port, error))
            return false;
        port = http_server_port(worker->proxy); /* the same for all, also from 0 */
    }
    log_info("Proxy listening", LOG_TEXT("address", config->proxy_bind), LOG_NUMBER("port", port),
             LOG_NUMBER("workers", (int64_t)workers->count),
             LOG_BOOL("tls", config->proxy_tls.server != NULL));
    return true;
}

struct loop *workers_first_loop(const struct workers *workers)
{
    return workers->list[0].loop;
}

struct budget *workers_budget(const struct workers *workers)
{
    return workers->budget;
}

struct gateway_worker *workers_first_gateway(const struct workers *workers)
{
    return workers->list[0].gateway;
}

/* ---- threads ---- */

static void wait_for(sem_t *event)
{
    while (sem_wait(event) != 0 && errno == EINTR)
        ;
}

/* h2o counts a connection's read buffers per thread, so the thread outlives the connections that
 * are open at the end. */
static void *run_worker(void *context)
{
    struct worker *worker = worker_from(context);
    pthread_setname_np(pthread_self(), "taskgate-loop");
    loop_run(worker->loop);
    sem_post(&worker->stopped);
    wait_for(&worker->dismissed);
    return NULL;
}

bool workers_start_threads(struct workers *workers, struct error *error)
{
    for (size_t i = 1; i < workers->count; i++) {
        struct worker *worker = &workers->list[i];
        sem_init(&worker->stopped, 0, 0);
        sem_init(&worker->dismissed, 0, 0);
        worker->has_thread = pthread_create(&worker->thread, NULL, run_worker, worker) == 0;
        if (!worker->has_thread)
            return error_set(error, "a worker thread could not be started");
    }
    return true;
}

/* ---- messages to all loops ---- */

/* Settings on their way to all workers. The worker that takes them last frees this. */
struct settings_round {
    struct workers *workers;
    atomic_size_t left; /* workers that have not taken them */
    loop_callback taken;
    void *context;
};

/* The message to one worker. */
struct settings_message {
    struct worker *worker;
    struct settings_round *round;
};

static void take_settings(struct worker *worker)
{
    struct snapshot *snapshot = snapshot_current();
    http_server_set_max_body(worker->proxy, (size_t)snapshot->config->limits.body_bytes);
    if (worker->replicas)
        http_server_set_max_body(worker->replicas, (size_t)snapshot->config->limits.body_bytes);
    const struct budget_limits limits = budget_limits_of(snapshot->config);
    budget_set_limits(worker->workers->budget, &limits);
    http_server_set_tls(worker->proxy, snapshot->config->proxy_tls.server);
    snapshot_unref(snapshot);
}

/* Every loop delivers in the order posted, so an earlier round ends before a later one. */
static void on_settings(void *context)
{
    struct settings_message *message = context;
    struct settings_round *round = message->round;
    take_settings(message->worker);
    free(message);
    size_t left = atomic_fetch_sub(&round->left, 1);
    ASSERT_NUMBERS(left, >, 0); /* each worker answers once */
    if (left > 1)
        return;
    loop_post(round->workers->list[0].loop, round->taken, round->context);
    free(round);
}

void workers_take_settings(struct workers *workers, loop_callback taken, void *context)
{
    struct settings_round *round = memory_alloc(sizeof *round);
    size_t count = workers->count;
    ASSERT(count > 0 && taken); /* or nobody frees the round */
    *round = (struct settings_round){.workers = workers, .taken = taken, .context = context};
    atomic_init(&round->left, count);
    for (size_t i = 0; i < count; i++) {
        struct settings_message *message = memory_alloc(sizeof *message);
        *message = (struct settings_message){&workers->list[i], round};
        loop_post(workers->list[i].loop, on_settings, message);
    }
}

static void close_after_answers(void *context)
{
    struct worker *worker = worker_from(context);
    http_server_close_after_answers(worker->proxy, true);
}

static void keep_after_answers(void *context)
{
    struct worker *worker = worker_from(context);
    http_server_close_after_answers(worker->proxy, false);
}

void workers_close_after_answers(struct workers *workers, bool closes)
{
    for (size_t i = 0; i < workers->count; i++)
        loop_post(workers->list[i].loop, closes ? close_after_answers : keep_after_answers,
                  &workers->list[i]);
}

static void workers_on_drained(void *context)
{
    size_t left = atomic_fetch_sub(&worker_from(context)->workers->open_proxies, 1);
    ASSERT_NUMBERS(left, >, 0); /* each proxy is drained once */
}

/* The port for replicas is open to the end: what comes there is refused unread, and each connection
 * ends with that. */
static void drain_proxy(void *context)
{
    struct worker *worker = worker_from(context);
    http_server_drain(worker->proxy, workers_on_drained, worker);
    if (worker->replicas)
        http_server_close_after_answers(worker->replicas, true);
}

void workers_drain(struct workers *workers)
{
    atomic_store(&workers->open_proxies, workers->count);
    for (size_t i = 0; i < workers->count; i++)
        loop_post(workers->list[i].loop, drain_proxy, &workers->list[i]);
}

bool workers_take_relayed(const struct workers *workers)
{
    return workers->list[0].replicas != NULL;
}

bool workers_are_drained(const struct workers *workers)
{
    return atomic_load(&workers->open_proxies) == 0;
}

/* ---- the end ---- */

/* After a start that failed on the way, the last workers have no loop. */
void workers_stop(struct workers *workers)
{
    for (size_t i = 0; workers && i < workers->count; i++) {
        if (workers->list[i].loop)
            loop_stop(workers->list[i].loop);
    }
}

void workers_await_stop(struct workers *workers)
{
    for (size_t i = 0; workers && i < workers->count; i++) {
        if (workers->list[i].has_thread)
            wait_for(&workers->list[i].stopped);
    }
}

void workers_deliver(struct workers *workers)
{
    for (size_t i = 0; workers && i < workers->count; i++) {
        if (workers->list[i].loop)
            loop_run_once(workers->list[i].loop, 0);
    }
}

void workers_close(struct workers *workers)
{
    for (size_t i = 0; workers && i < workers->count; i++) {
        if (workers->list[i].gateway)
            gateway_worker_close(workers->list[i].gateway);
    }
}

static void dismiss_thread(struct worker *worker)
{
    if (!worker->has_thread)
        return;
    sem_post(&worker->dismissed);
    pthread_join(worker->thread, NULL);
    sem_destroy(&worker->stopped);
    sem_destroy(&worker->dismissed);
}

void workers_destroy(struct workers *workers)
{
    if (!workers)
        return;
    for (size_t i = 0; i < workers->count; i++)
        http_server_destroy(workers->list[i].proxy);
    for (size_t i = 0; i < workers->count; i++)
        http_server_destroy(workers->list[i].replicas);
    for (size_t i = 0; i < workers->count; i++) {
        gateway_worker_destroy(workers->list[i].gateway);
        if (workers->list[i].loop)
            loop_destroy(workers->list[i].loop);
    }
    for (size_t i = 0; i < workers->count; i++) {
        dismiss_thread(&workers->list[i]);
        MAGIC_CLEAR(&workers->list[i]);
    }
    budget_destroy(workers->budget);
    http_port_destroy(workers->proxy_port);
    http_port_destroy(workers->replica_port);
    free(workers);
}
