/* The process from its first line of log to its exit code. */
#include "taskgate/server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "libraries.h"
#include "reload.h"
#include "store_folder.h"
#include "taskgate/admin/admin.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/http/intake.h"
#include "taskgate/http/server.h"
#include "taskgate/loop/loop.h"
#include "taskgate/notify/notify.h"
#include "taskgate/notify/redact.h"
#include "taskgate/store/store.h"

#define READ_TIMEOUT_MS 60000
#define STREAM_HIGH_WATER ((size_t)256 * 1024)
#define DRAIN_MOST_MS 25000 /* contract "Process" */
#define DRAIN_LOOK_MS 20
#define UPTIME_EVERY_MS 15000

/* One event loop with its listener. */
struct worker {
    struct server *server;
    struct loop *loop;
    struct http_server *proxy;
    struct gateway_worker *gateway;
    pthread_t thread;
    bool has_thread;
    sem_t stopped;   /* its loop runs no more */
    sem_t dismissed; /* nothing of its loop is left */
};

struct server {
    struct store *store;
    struct gateway *gateway;
    struct worker *workers;
    struct http_intake *intake; /* of all workers */
    size_t worker_count;
    struct admin *admin;
    struct notifier *notifier;
    struct reload *reload;
    int signals; /* signalfd */
    struct loop_watch *signal_watch;
    struct loop_timer uptime;
    struct loop_timer drain;
    int64_t started_ms, drain_until_ms;
    bool draining;
};

/* ---- reload ---- */

struct reload_news {
    struct server *server;
    char *error; /* NULL: good */
};

static void show_certificates(const struct config *config)
{
    const struct {
        struct str port;
        const struct tls_server *tls;
    } ports[] = {{STR("proxy"), config->proxy_tls.server},
                 {STR("admin"), config->admin_tls.server}};
    metrics_reset(METRIC_TLS_EXPIRES);
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
        if (ports[i].tls)
            metrics_set(METRIC_TLS_EXPIRES, (double)tls_server_expires_s(ports[i].tls),
                        METRIC_LABELS(ports[i].port));
    }
}

static void on_reload_news(void *context)
{
    struct reload_news *news = context;
    if (!news->error) {
        struct snapshot *snapshot = snapshot_current();
        notifier_configure(news->server->notifier, snapshot->config);
        admin_set_tls(news->server->admin, snapshot->config->admin_tls.server);
        admin_reloaded(news->server->admin);
        show_certificates(snapshot->config);
        snapshot_unref(snapshot);
    }
    admin_set_config_error(news->server->admin, news->error);
    free(news->error);
    free(news);
}

static void take_settings(void *context)
{
    struct worker *worker = context;
    struct snapshot *snapshot = snapshot_current();
    http_server_set_max_body(worker->proxy, (size_t)snapshot->config->limits.body_bytes);
    http_intake_set_limit(worker->server->intake, (size_t)snapshot->config->limits.bodies_bytes);
    http_server_set_tls(worker->proxy, snapshot->config->proxy_tls.server);
    snapshot_unref(snapshot);
}

static void on_reloaded(void *context, const char *error)
{
    struct server *server = context;
    struct reload_news *news = memory_alloc(sizeof *news);
    *news = (struct reload_news){server, memory_copy_text(error)};
    if (!error) {
        gateway_reloaded(server->gateway);
        for (size_t i = 0; i < server->worker_count; i++)
            loop_post(server->workers[i].loop, take_settings, &server->workers[i]);
    }
    loop_post(server->workers[0].loop, on_reload_news, news);
}

/* ---- shutting down ---- */

static void nothing(void *context)
{
}

static void drain_proxy(void *context)
{
    struct worker *worker = context;
    http_server_drain(worker->proxy, nothing, NULL);
}

/* Fewer loops than workers are there when the start has failed on the way. */
static void stop_loops(struct server *server)
{
    for (size_t i = 0; i < server->worker_count; i++) {
        if (server->workers[i].loop)
            loop_stop(server->workers[i].loop);
    }
}

static void on_drain_look(void *context)
{
    struct server *server = context;
    long left = gateway_in_flight(server->gateway);
    if (left == 0) {
        stop_loops(server);
    } else if (clock_monotonic_ms() >= server->drain_until_ms) {
        log_warn("Stopping with requests under way", LOG_NUMBER("count", left));
        stop_loops(server);
    } else {
        loop_timer_start(&server->drain, DRAIN_LOOK_MS);
    }
}

static void begin_shutdown(struct server *server)
{
    if (server->draining)
        return;
    server->draining = true;
    struct snapshot *snapshot = snapshot_current();
    int64_t most_ms = snapshot->config->times.drain_timeout_ms;
    snapshot_unref(snapshot);
    log_info("Shutting down");
    server->drain_until_ms =
        clock_monotonic_ms() + (most_ms < DRAIN_MOST_MS ? most_ms : DRAIN_MOST_MS);
    admin_announce_shut_down(server->admin);
    gateway_shut_down(server->gateway);
    for (size_t i = 0; i < server->worker_count; i++)
        loop_post(server->workers[i].loop, drain_proxy, &server->workers[i]);
    loop_timer_start(&server->drain, DRAIN_LOOK_MS);
}

static void on_signal(void *context)
{
    struct server *server = context;
    struct signalfd_siginfo info;
    while (read(server->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP)
            reload_now(server->reload);
        else
            begin_shutdown(server);
    }
}

static void on_uptime(void *context)
{
    struct server *server = context;
    metrics_set(METRIC_UPTIME, (double)(clock_monotonic_ms() - server->started_ms) / 1000, NULL);
    loop_timer_start(&server->uptime, UPTIME_EVERY_MS);
}

/* ---- starting ---- */

/* The store keeps of an ended task only the values that operators may see. */
static bool redact_ended(void *context, struct buffer *out, struct str value, const char *workflow)
{
    struct snapshot *snapshot = snapshot_current();
    bool is_redacted = redact_write(out, value, snapshot->config, workflow);
    snapshot_unref(snapshot);
    return is_redacted;
}

static bool open_store(struct server *server, const struct config *config,
                       struct admin_options *admin, struct error *error)
{
    char *path = store_folder_path(config);
    bool good = store_folder_check(path, error) &&
                store_folder_admin_token(config, path, admin->extra_token_sha256, error);
    if (good) {
        server->store = store_open(path, &(struct store_redaction){.write = redact_ended}, error);
        good = server->store != NULL;
    }
    free(path);
    admin->store = server->store;
    return good;
}

static bool start_worker(struct worker *worker, const struct config *config, uint16_t port,
                         struct error *error)
{
    worker->loop = loop_create(error);
    if (!worker->loop)
        return false;
    worker->gateway = gateway_worker_create(worker->server->gateway, worker->loop, error);
    if (!worker->gateway)
        return false;
    int64_t workers = config->workers > 0 ? config->workers : 1;
    struct http_server_options options = {
        .address = str_from(config->proxy_bind),
        .port = port,
        .reuse_port = workers > 1,
        .first_on_port = workers > 1 && worker == &worker->server->workers[0],
        .max_body_bytes = (size_t)config->limits.body_bytes,
        .intake = worker->server->intake,
        .max_connections = (int)((config->limits.connections + workers - 1) / workers),
        .read_timeout_ms = READ_TIMEOUT_MS,
        .stream_high_water = STREAM_HIGH_WATER,
        .transport = "http",
        .port_name = "proxy",
        .tls = config->proxy_tls.server,
        .handler = gateway_handle,
        .refusal = gateway_refusal,
        .context = worker->gateway,
    };
    worker->proxy = http_server_create(worker->loop, &options, error);
    return worker->proxy ||
           error_suffix(error, "free the port, or name another in THOUGHTGATE_OUTBOUND_PORT");
}

static bool start_workers(struct server *server, const struct config *config, struct error *error)
{
    size_t count = config->workers > 0 ? (size_t)config->workers : 1;
    uint16_t port = config->proxy_port;
    server->intake = http_intake_create((size_t)config->limits.bodies_bytes);
    server->workers = memory_alloc_array(count, sizeof *server->workers);
    server->worker_count = count;
    for (size_t i = 0; i < count; i++) {
        server->workers[i].server = server;
        if (!start_worker(&server->workers[i], config, port, error))
            return false;
        port = http_server_port(server->workers[i].proxy); /* the same for all, also from 0 */
    }
    log_info("Proxy listening", LOG_TEXT("address", config->proxy_bind), LOG_NUMBER("port", port),
             LOG_NUMBER("workers", (int64_t)count),
             LOG_BOOL("tls", config->proxy_tls.server != NULL));
    return true;
}

static bool upstream_reachable(void *gateway)
{
    return gateway_upstream_reachable(gateway);
}

static bool start_admin(struct server *server, const struct config *config,
                        struct admin_options *options, struct error *error)
{
    options->bind = config->admin_bind;
    options->port = config->admin_port;
    options->tls = config->admin_tls.server;
    options->upstream_reachable = upstream_reachable;
    options->context = server->gateway;
    options->worker = server->workers[0].gateway;
    server->admin = admin_create(server->workers[0].loop, options, error);
    if (!server->admin)
        return error_suffix(error, "free the port, or name another in THOUGHTGATE_ADMIN_PORT");
    log_info("Admin listening", LOG_TEXT("address", config->admin_bind),
             LOG_NUMBER("port", admin_port(server->admin)),
             LOG_BOOL("tls", config->admin_tls.server != NULL));
    return true;
}

static bool start_notifier(struct server *server, struct config *config, struct error *error)
{
    server->notifier = notifier_create(server->workers[0].loop, server->store, error);
    if (server->notifier)
        notifier_configure(server->notifier, config);
    return server->notifier != NULL;
}

/* Signals are read from a descriptor on the first loop; no thread is interrupted by them. */
static bool take_signals(struct server *server, struct error *error)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write to a file at its limit is an error, not a signal */
    server->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (server->signals < 0)
        return error_set(error, "signalfd: %s", strerror(errno));
    return true;
}

static void wait_for(sem_t *event)
{
    while (sem_wait(event) != 0 && errno == EINTR)
        ;
}

/* h2o counts a connection's read buffers per thread, so the thread outlives the connections that
 * are open at the end. */
static void *run_worker(void *context)
{
    struct worker *worker = context;
    pthread_setname_np(pthread_self(), "taskgate-loop");
    loop_run(worker->loop);
    sem_post(&worker->stopped);
    wait_for(&worker->dismissed);
    return NULL;
}

static bool start_thread(struct worker *worker)
{
    sem_init(&worker->stopped, 0, 0);
    sem_init(&worker->dismissed, 0, 0);
    worker->has_thread = pthread_create(&worker->thread, NULL, run_worker, worker) == 0;
    return worker->has_thread;
}

static bool start(struct server *server, const char *config_path, struct config *config,
                  struct error *error)
{
    struct admin_options admin = {0};
    if (!take_signals(server, error) || !libraries_load(config, error) ||
        !open_store(server, config, &admin, error))
        return false;
    server->gateway = gateway_create(server->store);
    if (!start_workers(server, config, error) || !start_admin(server, config, &admin, error) ||
        !start_notifier(server, config, error))
        return false;
    struct loop *first = server->workers[0].loop;
    server->reload = reload_start(config_path, config, on_reloaded, server, error);
    if (!server->reload)
        return false;
    server->signal_watch = loop_watch_create(first, server->signals, on_signal, server);
    loop_timer_init(&server->drain, first, on_drain_look, server);
    loop_timer_init(&server->uptime, first, on_uptime, server);
    loop_timer_start(&server->uptime, 0);
    for (size_t i = 1; i < server->worker_count; i++) {
        if (!start_thread(&server->workers[i]))
            return error_set(error, "a worker thread could not be started");
    }
    return true;
}

/* ---- the end, in reverse ---- */

static void deliver_messages(struct server *server)
{
    for (size_t i = 0; i < server->worker_count; i++) {
        if (server->workers[i].loop)
            loop_run_once(server->workers[i].loop, 0);
    }
}

static void dismiss_threads(struct server *server)
{
    for (size_t i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];
        if (!worker->has_thread)
            continue;
        sem_post(&worker->dismissed);
        pthread_join(worker->thread, NULL);
        sem_destroy(&worker->stopped);
        sem_destroy(&worker->dismissed);
    }
}

static void finish(struct server *server)
{
    if (server->signal_watch) {
        loop_timer_stop(&server->drain);
        loop_timer_stop(&server->uptime);
        loop_watch_destroy(server->signal_watch); /* a signal from now on finds nothing to do */
    }
    reload_stop(server->reload);
    stop_loops(server);
    for (size_t i = 0; i < server->worker_count; i++) {
        if (server->workers[i].has_thread)
            wait_for(&server->workers[i].stopped);
    }
    deliver_messages(server); /* while all they speak to is there */
    for (size_t i = 0; i < server->worker_count; i++) {
        if (server->workers[i].gateway)
            gateway_worker_close(server->workers[i].gateway);
    }
    if (server->admin)
        admin_close(server->admin);
    notifier_close(server->notifier);
    store_stop(server->store);
    /* The first round delivers the store's answers, so that they are freed. The second delivers the
     * refusals of requests that the first round made. */
    deliver_messages(server);
    deliver_messages(server);
    notifier_destroy(server->notifier);
    admin_destroy(server->admin);
    for (size_t i = 0; i < server->worker_count; i++)
        http_server_destroy(server->workers[i].proxy);
    for (size_t i = 0; i < server->worker_count; i++) {
        gateway_worker_destroy(server->workers[i].gateway);
        if (server->workers[i].loop)
            loop_destroy(server->workers[i].loop);
    }
    dismiss_threads(server);
    store_close(server->store);
    gateway_destroy(server->gateway);
    snapshot_install(NULL);
    metrics_finish();
    http_intake_destroy(server->intake);
    free(server->workers);
    if (server->signals >= 0)
        close(server->signals);
}

/* At the start, mistakes are lines on standard error. Later, standard error is the log, and
 * warnings are its entries. */
static struct snapshot *load(const char *config_path)
{
    struct config_problems problems = {0};
    struct buffer text;
    struct config *config = config_load(config_path, NULL, &problems);
    struct snapshot *snapshot = config ? snapshot_create(config, &problems) : NULL;
    buffer_init(&text);
    config_problems_write(&problems, &text);
    if (snapshot && text.length > 0) {
        text.bytes[text.length - 1] = '\0';
        log_warn("The configuration has warnings", LOG_TEXT("warnings", text.bytes));
    } else if (!snapshot) {
        fwrite(text.bytes ? text.bytes : "", 1, text.length, stderr);
    }
    buffer_finish(&text);
    config_problems_finish(&problems);
    return snapshot;
}

/* RUST_LOG as ThoughtGate has it, one word: debug, info, warn or error. */
static void choose_log_level(void)
{
    enum log_level level;
    const char *name = getenv("RUST_LOG");
    if (name && log_level_parse(str_from(name), &level))
        log_set_level(level);
}

int server_run(const char *config_path)
{
    choose_log_level();
    struct server server = {.signals = -1, .started_ms = clock_monotonic_ms()};
    struct error error = {""};
    struct snapshot *snapshot = load(config_path);
    if (!snapshot)
        return 2;
    snapshot_install(snapshot_ref(snapshot));
    metrics_count(METRIC_CONFIG_LOADS, STR("success"));
    metrics_set(METRIC_CONFIG_RELOAD_TIMESTAMP, (double)clock_now_ms() / 1000, NULL);
    show_certificates(snapshot->config);
    bool started = start(&server, config_path, snapshot->config, &error);
    snapshot_unref(snapshot);
    if (started) {
        metrics_set(METRIC_STARTUP_DURATION,
                    (double)(clock_monotonic_ms() - server.started_ms) / 1000, NULL);
        gateway_fetch_tools(server.workers[0].gateway);
        log_info("taskgate is ready", LOG_TEXT("version", TASKGATE_VERSION));
        loop_run(server.workers[0].loop);
        log_info("Stopped");
    } else {
        log_error("taskgate could not start", LOG_TEXT("error", error.message));
    }
    finish(&server);
    return started ? 0 : 1;
}
