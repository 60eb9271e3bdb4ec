/* The operators' side, from its listener to its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/admin/admin.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/store/grants.h"
#include "taskgate/store/replicas.h"

#include "events.h"
#include "feed.h"
#include "internal.h"
#include "known_senders.h"
#include "provider.h"
#include "refusals.h"
#include "results.h"
#include "slack_votes.h"
#include "task_json.h"
#include "voter.h"

#define MAX_BODY_BYTES ((size_t)4 * 1024 * 1024) /* of a call, as the default on the proxy port */
#define MAX_CONNECTIONS 1000
#define RESERVED_CONNECTIONS 16 /* for probes */
#define READ_TIMEOUT_MS 30000
#define STREAM_HIGH_WATER ((size_t)1024 * 1024)

/* In the shape of reply_error(). */
static void on_refusal(int status, struct buffer *body, void *context)
{
    buffer_append_format(body, "{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}",
                         status == 413 ? "too_large" : "invalid_request",
                         status == 413 ? "the body is larger than 4 MiB"
                                       : "the body has no clear end");
}

/* Grants are judged by the configuration in force. */
static void judge_grants(struct admin *admin)
{
    struct snapshot *snapshot = snapshot_current();
    if (!snapshot)
        return;
    const struct store_electorate electorate = voter_electorate(snapshot->config, admin->worker);
    store_grants_configure(admin->store, &electorate);
    snapshot_unref(snapshot);
}

static int most_connections(const struct admin_options *options)
{
    bool is_less = options->most_connections > 0 && options->most_connections < MAX_CONNECTIONS;
    return is_less ? (int)options->most_connections : MAX_CONNECTIONS;
}

/* ---- events of grants ---- */

/* `event: grant` on open event streams: a grant was given or used, or it has ended. Changes of
 * grants, for those who follow them. The store says which grant has changed. It is read then, if
 * anybody follows, and sent as it is. Such an event has no number: a reader that comes back asks
 * for the list of grants, which has them all. */

static void grant_events_tell(void *context, const struct store_reply *reply)
{
    struct admin *admin = admin_from(context);
    OWNED_BUFFER(event);
    if (reply->status != STORE_OK || admin->closed)
        return;
    struct snapshot *snapshot = snapshot_current();
    buffer_append_text(&event, "event: grant\ndata: ");
    grant_json_write(&event, &reply->grants[0], snapshot->config);
    buffer_append_text(&event, "\n\n");
    events_send(admin, buffer_str(&event));
    snapshot_unref(snapshot);
}

static void grant_events_on_change(void *context, struct str id)
{
    struct admin *admin = admin_from(context);
    if (!list_is_empty(&admin->streams) && !admin->closed)
        store_grant_get(admin->store, id,
                        (struct store_call){admin->loop, grant_events_tell, admin});
}

/* Before the loops run; until the store closes. */
static void grant_events_observe(struct admin *admin)
{
    store_observe_ids(admin->store, STORE_GRANT, admin->loop, grant_events_on_change, admin);
}

/* ---- sessions that end at another replica ---- */

/* Sessions of operators that end at another replica. Their next request here finds none; but a
 * stream or a wait that is open asks no more. So those of sessions are looked up every 5 s while
 * replicas share the store. On the admin's loop. A timer, and a question to the store for each
 * session that has something open. */

#define LOOK_EVERY_MS 5000

struct session_watch {
    uint32_t magic; /* SESSION_WATCH_MAGIC while it lives */
    struct admin *admin;
    struct loop_timer timer;
};
#define SESSION_WATCH_MAGIC 0x5e55a3c7

static struct session_watch *session_watch_from(void *context)
{
    return MAGIC_CAST(struct session_watch, SESSION_WATCH_MAGIC, context);
}

/* One question. The admin lives until the store has answered all. */
struct look {
    struct admin *admin;
    char sha256[65]; /* of the cookie */
};

static void session_watch_on_row(void *context, const struct store_reply *reply)
{
    struct look *look = context;
    if (reply->status == STORE_NOT_FOUND && !look->admin->closed) {
        events_end_of(look->admin, look->sha256);
        results_end_of(look->admin, look->sha256);
    }
    free(look);
}

static void session_watch_look_up(struct admin *admin, const char *sha256)
{
    struct look *look = memory_alloc(sizeof *look);
    look->admin = admin;
    snprintf(look->sha256, sizeof look->sha256, "%s", sha256);
    store_sign_in_get(admin->store, str_from(look->sha256),
                      (struct store_call){admin->loop, session_watch_on_row, look});
}

static void session_watch_look_at_all(void *context)
{
    struct session_watch *watch = session_watch_from(context);
    struct admin *admin = watch->admin;
    if (!admin->closed) {
        events_visit_sessions(admin, session_watch_look_up);
        results_visit_sessions(admin, session_watch_look_up);
    }
    loop_timer_start(&watch->timer, LOOK_EVERY_MS);
}

static struct session_watch *session_watch_create(struct admin *admin)
{
    struct session_watch *watch = memory_alloc(sizeof *watch);
    MAGIC_SET(watch, SESSION_WATCH_MAGIC);
    watch->admin = admin;
    loop_timer_init(&watch->timer, admin->loop, session_watch_look_at_all, watch);
    if (store_is_shared(admin->store))
        loop_timer_start(&watch->timer, LOOK_EVERY_MS);
    return watch;
}

/* NULL is allowed */
static void session_watch_destroy(struct session_watch *watch)
{
    if (!watch)
        return;
    loop_timer_stop(&watch->timer);
    MAGIC_CLEAR(watch);
    free(watch);
}

/* ---- the server ---- */

struct admin *admin_create(struct loop *loop, const struct admin_options *options,
                           struct error *error)
{
    struct admin *admin = memory_alloc(sizeof *admin);
    const struct http_server_options server = {
        .address = str_from(options->bind),
        .port = options->port,
        .max_body_bytes = MAX_BODY_BYTES,
        .max_connections = most_connections(options),
        .reserved_connections = RESERVED_CONNECTIONS,
        .budget = options->budget,
        .judge_body = known_senders_judge,
        .read_timeout_ms = READ_TIMEOUT_MS,
        .stream_high_water = STREAM_HIGH_WATER,
        .port_name = "admin",
        .tls = options->tls,
        .handler = router_handle,
        .refusal = on_refusal,
        .context = admin,
    };
    MAGIC_SET(admin, ADMIN_MAGIC);
    admin->loop = loop;
    admin->store = options->store;
    admin->state_keys = options->state_keys;
    admin->upstream_reachable = options->upstream_reachable;
    admin->traffic = options->traffic;
    admin->close_after_answers = options->close_after_answers;
    admin->context = options->context;
    admin->worker = options->worker;
    admin->started_ms = clock_monotonic_ms();
    memcpy(admin->extra_token_sha256, options->extra_token_sha256,
           sizeof admin->extra_token_sha256);
    admin->refusals = refusals_create();
    list_init(&admin->streams);
    list_init(&admin->waits);
    list_init(&admin->idle_waits);
    admin->provider = provider_create(loop);
    admin->server = http_server_create(loop, &server, error);
    if (!admin->server) {
        provider_destroy(admin->provider);
        refusals_destroy(admin->refusals);
        free(admin);
        return NULL;
    }
    admin->slack = slack_create(loop, admin->store, slack_votes_decide, admin);
    admin->feed = feed_create(admin);
    grant_events_observe(admin);
    admin->session_watch = session_watch_create(admin);
    judge_grants(admin);
    return admin;
}

uint16_t admin_port(const struct admin *admin)
{
    return http_server_port(admin->server);
}

void admin_set_notifier(struct admin *admin, const struct notifier *notifier)
{
    admin->notifier = notifier;
}

void admin_set_slack(struct admin *admin, struct config *config)
{
    slack_configure(admin->slack, config);
}

void admin_set_tls(struct admin *admin, struct tls_server *tls)
{
    http_server_set_tls(admin->server, tls);
}

void admin_reloaded(struct admin *admin)
{
    judge_grants(admin);
    events_renew_all(admin);
    results_renew_all(admin);
}

void admin_set_config_error(struct admin *admin, const char *message)
{
    free(admin->config_error);
    admin->config_error = memory_copy_text(message);
}

void admin_announce_leaving(struct admin *admin)
{
    admin->leaving = true;
}

void admin_announce_shut_down(struct admin *admin)
{
    admin->shutting_down = true;
    events_end_all(admin);
    results_end_all(admin);
}

void admin_close(struct admin *admin)
{
    admin->closed = true;
    slack_close(admin->slack);
}

void admin_destroy(struct admin *admin)
{
    if (!admin)
        return;
    /* Its exchanges get `gone`, and their streams end with them. */
    http_server_destroy(admin->server);
    slack_destroy(admin->slack);
    provider_destroy(admin->provider);
    refusals_destroy(admin->refusals);
    session_watch_destroy(admin->session_watch);
    feed_destroy(admin->feed);
    free(admin->config_error);
    MAGIC_CLEAR(admin);
    free(admin);
}
