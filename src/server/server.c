/* The process from its first line of log to its exit code. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "private_file.h"
#include "reload.h"
#include "store_opening.h"
#include "supervisor.h"
#include "taskgate/admin/admin.h"
#include "taskgate/config/config.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/gateway/gateway.h"
#include "taskgate/gateway/snapshot.h"
#include "taskgate/loop/loop.h"
#include "taskgate/notify/brief.h"
#include "taskgate/notify/notify.h"
#include "taskgate/notify/redact.h"
#include "taskgate/server/server.h"
#include "taskgate/store/replicas.h"
#include "taskgate/store/store.h"
#include "taskgate/telemetry/telemetry.h"
#include "workers.h"

/* The configuration's settings of the audit trail, for the store. */

/* At the start, and after each reload. */
static void audit_settings_apply(struct store *store, const struct config *config)
{
    const struct config_audit *audit = &config->audit;
    const struct store_audit_settings settings = {
        .keep_arguments_ms = audit->keep_arguments_ms,
        .keep_ms = audit->keep_ms,
        .anchor_every_ms = audit->anchor_every_ms,
        .key = audit->key,
    };
    store_audit_configure(store, &settings);
}

#define DRAIN_LOOK_MS 20
#define LATE_REQUESTS_MS 1000 /* after the last one, to the end */
#define FLUSH_MOST_MS 5000
#define UPTIME_EVERY_MS 15000

struct server {
    uint32_t magic; /* SERVER_MAGIC */
    struct store *store;
    struct state_keys state_keys;
    struct gateway *gateway;
    struct workers *workers;
    struct admin *admin;
    struct notifier *notifier;
    struct reload *reload;
    int signals; /* signalfd */
    struct loop_watch *signal_watch;
    struct supervisor_watchdog watchdog;
    struct loop_timer uptime;
    struct loop_timer linger, drain;
    int64_t started_ms, drain_until_ms;
    int64_t busy_ms;             /* of the drain: when a request was seen under way */
    bool is_lingering, draining; /* one after the other */
    bool finishing;              /* the loops run no more, but for messages */
    bool has_failed;             /* the exit code says so */
    bool ended_early;            /* by a signal, before it was up */
};
#define SERVER_MAGIC 0x53565301

static struct server *server_from(void *context)
{
    return MAGIC_CAST(struct server, SERVER_MAGIC, context);
}

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

/* Of the configuration in force. */
static void show_settings(const struct config *config)
{
    metrics_set(METRIC_CONFIG_RELOAD_TIMESTAMP, (double)clock_now_ms() / 1000, NULL);
    metrics_set(METRIC_STORE_LIMIT, (double)config->limits.store_bytes, NULL);
    show_certificates(config);
}

static void server_apply(struct server *server, struct config *config)
{
    notifier_configure(server->notifier, config);
    audit_settings_apply(server->store, config);
    admin_set_slack(server->admin, config);
    admin_set_tls(server->admin, config->admin_tls.server);
    admin_reloaded(server->admin);
    show_settings(config);
}

/* All workers have taken the configuration, so it is in force with the end of this. */
static void on_reload_news(void *context)
{
    struct reload_news *news = context;
    struct server *server = server_from(news->server);
    if (!news->error && !server->finishing) {
        struct snapshot *snapshot = snapshot_current();
        server_apply(server, snapshot->config);
        metrics_count(METRIC_CONFIG_LOADS, STR("success"));
        log_info("Configuration reloaded", LOG_TEXT("file", snapshot->config->path));
        snapshot_unref(snapshot);
    }
    if (!server->finishing)
        admin_set_config_error(server->admin, news->error);
    free(news->error);
    free(news);
}

/* News of a failure go the same way, so that they do not overtake those of a reload before. */
static void on_reloaded(void *context, const char *error)
{
    struct server *server = server_from(context);
    struct reload_news *news = memory_alloc(sizeof *news);
    *news = (struct reload_news){server, memory_copy_text(error)};
    if (!error)
        gateway_reloaded(server->gateway);
    workers_take_settings(server->workers, on_reload_news, news);
}

/* ---- shutting down ---- */

/* No request is under way, or about to be. A request may still be read, a replica not know that
 * this one ends, or a session of a server be about to end. */
static bool is_idle(struct server *server, long in_flight)
{
    int64_t now_ms = clock_monotonic_ms();
    if (in_flight > 0)
        server->busy_ms = now_ms;
    return in_flight == 0 && now_ms - gateway_relayed_ms(server->gateway) >= LATE_REQUESTS_MS &&
           ((workers_are_drained(server->workers) && gateway_parting(server->gateway) == 0) ||
            now_ms - server->busy_ms >= LATE_REQUESTS_MS);
}

static void on_drain_look(void *context)
{
    struct server *server = server_from(context);
    long left = gateway_in_flight(server->gateway);
    if (is_idle(server, left)) {
        workers_stop(server->workers);
    } else if (clock_monotonic_ms() >= server->drain_until_ms) {
        if (left > 0)
            log_warn("Stopping with requests under way", LOG_NUMBER("count", left));
        workers_stop(server->workers);
    } else {
        loop_timer_start(&server->drain, DRAIN_LOOK_MS);
    }
}

static struct config_times times_now(void)
{
    struct snapshot *snapshot = snapshot_current();
    struct config_times times = snapshot->config->times;
    snapshot_unref(snapshot);
    return times;
}

static void begin_drain(void *context)
{
    struct server *server = server_from(context);
    loop_timer_stop(&server->linger);
    server->draining = true;
    log_info("Shutting down");
    server->busy_ms = clock_monotonic_ms();
    server->drain_until_ms = server->busy_ms + times_now().drain_timeout_ms;
    if (workers_take_relayed(server->workers))
        store_announce(server->store, NULL); /* the others relay nothing here any more */
    admin_announce_shut_down(server->admin);
    /* Idle connections close first: those of streams that end now are no such ones, for their
     * clients may have sent the next request on them. */
    workers_drain(server->workers);
    gateway_shut_down(server->gateway);
    loop_timer_start(&server->drain, DRAIN_LOOK_MS);
}

/* For a while new requests still arrive, until nothing leads here any more. */
static void begin_shutdown(struct server *server)
{
    int64_t linger_ms = times_now().linger_ms;
    if (server->draining)
        return;
    supervisor_tell("STOPPING=1");
    if (server->is_lingering || linger_ms == 0) {
        begin_drain(server);
        return;
    }
    server->is_lingering = true;
    log_info("Serving on before the shutdown", LOG_NUMBER("for_ms", linger_ms));
    admin_announce_leaving(server->admin);
    workers_close_after_answers(server->workers, true);
    loop_timer_start(&server->linger, linger_ms);
}

static void on_signal(void *context)
{
    struct server *server = server_from(context);
    struct signalfd_siginfo info;
    while (read(server->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP)
            reload_now(server->reload);
        else
            begin_shutdown(server);
    }
}

/* Another living replica has this one's id, and was there first. */
static void on_yield(void *context)
{
    struct server *server = server_from(context);
    log_error("Another living replica has this one's name, so this one ends; give each a name of "
              "its own in replica.id",
              LOG_TEXT("replica", store_replica_id(server->store)));
    server->has_failed = true;
    begin_shutdown(server);
}

static void on_uptime(void *context)
{
    struct server *server = server_from(context);
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

static void server_write_brief(void *context, struct buffer *out, const struct task *task)
{
    struct snapshot *snapshot = snapshot_current();
    brief_write(out, task, snapshot->config);
    snapshot_unref(snapshot);
}

static bool open_store(struct server *server, const struct config *config,
                       struct admin_options *admin, struct error *error)
{
    /* With a database elsewhere the folder is still that of the files that the process makes. */
    char *path = store_folder_path(config);
    bool good = (config->store_url || store_folder_check(path, error)) &&
                store_folder_admin_token(config, path, admin->extra_token_sha256, error) &&
                state_key_load(config, path, &server->state_keys, error);
    if (good) {
        const struct state_keys *keys = &server->state_keys;
        digest_use_keys(keys->keys[0], keys->count > 1 ? keys->keys[1] : NULL);
        const struct store_wait wait = {server->signals, config->store_lock_wait_ms};
        server->store = store_wait_open(
            &wait, config, path, &(struct store_redaction){redact_ended, server_write_brief, NULL},
            &server->ended_early, error);
        good = server->store != NULL;
    }
    free(path);
    admin->store = server->store;
    admin->state_keys = &server->state_keys;
    if (good)
        audit_settings_apply(server->store, config);
    return good;
}

static bool upstream_reachable(void *context)
{
    return gateway_upstream_reachable(server_from(context)->gateway);
}

static struct admin_traffic traffic(void *context)
{
    const struct gateway *gateway = server_from(context)->gateway;
    return (struct admin_traffic){gateway_answering(gateway), gateway_arrived(gateway)};
}

static void server_close_after_answers(void *context, bool closes)
{
    struct server *server = server_from(context);
    if (!server->is_lingering && !server->draining)
        workers_close_after_answers(server->workers, closes);
}

static bool start_admin(struct server *server, const struct config *config,
                        struct admin_options *options, struct error *error)
{
    options->bind = config->admin_bind;
    options->port = config->admin_port;
    options->tls = config->admin_tls.server;
    options->upstream_reachable = upstream_reachable;
    options->traffic = traffic;
    options->close_after_answers = server_close_after_answers;
    options->context = server;
    options->worker = workers_first_gateway(server->workers);
    options->budget = workers_budget(server->workers);
    options->most_connections = config->limits.connections;
    server->admin = admin_create(workers_first_loop(server->workers), options, error);
    if (!server->admin)
        return error_suffix(error, "free the port, or name another in THOUGHTGATE_ADMIN_PORT");
    log_info("Admin listening", LOG_TEXT("address", config->admin_bind),
             LOG_NUMBER("port", admin_port(server->admin)),
             LOG_BOOL("tls", config->admin_tls.server != NULL));
    return true;
}

static bool start_notifier(struct server *server, struct config *config, struct error *error)
{
    server->notifier = notifier_create(workers_first_loop(server->workers), server->store, error);
    if (server->notifier) {
        notifier_configure(server->notifier, config);
        admin_set_notifier(server->admin, server->notifier);
        admin_set_slack(server->admin, config);
    }
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

/* The others learn where this one is reached once it is. */
static bool meet_replicas(struct server *server, const struct config *config, struct error *error)
{
    if (!config->replica.address || !store_is_shared(server->store))
        return true;
    if (!workers_listen_for_replicas(server->workers, config, error))
        return false;
    store_announce(server->store, config->replica.address);
    return true;
}

static bool server_start(struct server *server, const char *config_path, struct config *config,
                         struct error *error)
{
    struct admin_options admin = {0};
    if (!take_signals(server, error) || !libraries_load(config, error) ||
        !telemetry_start(config, error) || !open_store(server, config, &admin, error))
        return false;
    server->gateway = gateway_create(server->store, &server->state_keys);
    gateway_share(server->gateway, config->replica.key);
    server->workers = workers_create(server->gateway, config);
    if (!workers_start(server->workers, config, error) || !meet_replicas(server, config, error) ||
        !start_admin(server, config, &admin, error) || !start_notifier(server, config, error))
        return false;
    struct loop *first = workers_first_loop(server->workers);
    server->reload = reload_start(config_path, config, on_reloaded, server, error);
    if (!server->reload)
        return false;
    server->signal_watch = loop_watch_create(first, server->signals, on_signal, server);
    loop_timer_init(&server->linger, first, begin_drain, server);
    loop_timer_init(&server->drain, first, on_drain_look, server);
    loop_timer_init(&server->uptime, first, on_uptime, server);
    loop_timer_start(&server->uptime, 0);
    supervisor_watchdog_start(&server->watchdog, first);
    store_observe_yield(server->store, first, on_yield, server);
    return workers_start_threads(server->workers, error);
}

/* ---- the end, in reverse ---- */

/* Spans that wait for the collector are sent within the drain, but not for long: a collector that
 * is slow must not hold the process. */
static void stop_telemetry(const struct server *server)
{
    int64_t until_ms = clock_monotonic_ms() + FLUSH_MOST_MS;
    bool is_short = server->draining && server->drain_until_ms < until_ms;
    telemetry_stop(is_short ? server->drain_until_ms : until_ms);
}

static void server_finish(struct server *server)
{
    if (server->signal_watch) {
        loop_timer_stop(&server->linger);
        loop_timer_stop(&server->drain);
        loop_timer_stop(&server->uptime);
        supervisor_watchdog_stop(&server->watchdog);
        loop_watch_destroy(server->signal_watch); /* a signal from now on finds nothing to do */
    }
    reload_stop(server->reload);
    workers_stop(server->workers);
    workers_await_stop(server->workers);
    server->finishing = true;
    workers_deliver(server->workers); /* while all receivers are there */
    workers_close(server->workers);
    if (server->admin)
        admin_close(server->admin);
    notifier_close(server->notifier);
    store_stop(server->store);
    /* The first round delivers the store's answers, so that they are freed. The second delivers the
     * refusals of requests that the first round made. */
    workers_deliver(server->workers);
    workers_deliver(server->workers);
    notifier_destroy(server->notifier);
    admin_destroy(server->admin);
    workers_destroy(server->workers);
    store_close(server->store);
    gateway_destroy(server->gateway);
    stop_telemetry(server);
    snapshot_install(NULL);
    metrics_finish();
    if (server->signals >= 0)
        close(server->signals);
}

/* At the start, mistakes are lines on standard error. Later, standard error is the log, and
 * warnings are its entries. */
static struct snapshot *server_load(const char *config_path)
{
    struct config_problems problems = {0};
    OWNED_BUFFER(text);
    struct config *config = config_load(config_path, NULL, &problems);
    struct snapshot *snapshot = config ? snapshot_create(config, &problems) : NULL;
    config_problems_write(&problems, &text);
    if (snapshot && text.length > 0) {
        text.bytes[text.length - 1] = '\0';
        log_warn("The configuration has warnings", LOG_TEXT("warnings", text.bytes));
    } else if (!snapshot) {
        fwrite(text.bytes ? text.bytes : "", 1, text.length, stderr);
    }
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

int server_run(const char *config_path, void (*ready)(void *context), void *context)
{
    choose_log_level();
    struct server server = {
        .magic = SERVER_MAGIC, .signals = -1, .started_ms = clock_monotonic_ms()};
    struct error error = {""};
    struct snapshot *snapshot = server_load(config_path);
    if (!snapshot)
        return 2;
    snapshot_install(snapshot_ref(snapshot));
    metrics_count(METRIC_CONFIG_LOADS, STR("success"));
    show_settings(snapshot->config);
    bool started = server_start(&server, config_path, snapshot->config, &error);
    snapshot_unref(snapshot);
    if (started) {
        metrics_set(METRIC_STARTUP_DURATION,
                    (double)(clock_monotonic_ms() - server.started_ms) / 1000, NULL);
        gateway_fetch_tools(workers_first_gateway(server.workers));
        log_info("taskgate is ready", LOG_TEXT("version", TASKGATE_VERSION));
        supervisor_tell("READY=1");
        if (ready)
            ready(context);
        loop_run(workers_first_loop(server.workers));
        log_info("Stopped");
    } else if (server.ended_early) {
        log_info("Stopped before the database was free");
    } else {
        log_error("taskgate could not start", LOG_TEXT("error", error.message));
    }
    server_finish(&server);
    return (started && !server.has_failed) || server.ended_early ? 0 : 1;
}
