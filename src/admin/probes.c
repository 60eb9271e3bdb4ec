/* Health, readiness and metrics: for probes and monitoring, without a token. */
#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "taskgate/admin/admin.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/notify/notify.h"
#include "taskgate/store/replicas.h"

#include "accept.h"
#include "query.h"
#include "reply.h"

#define WAITS_MOST 16
#define WAIT_MOST_S 3600
#define QUIET_MS 1000 /* without a new request: an agent's next one is on its way until then */
#define LOOK_MS 50

struct idle_wait {
    uint32_t magic;   /* IDLE_WAIT_MAGIC */
    struct list node; /* in admin->idle_waits */
    struct admin *admin;
    struct http_exchange *exchange;
    struct loop_timer timer;
    uint64_t arrived; /* requests when it looked last */
    int64_t quiet_since_ms, until_ms;
};
#define IDLE_WAIT_MAGIC 0x1d1e0a17

static struct idle_wait *idle_wait_from(void *context)
{
    return MAGIC_CAST(struct idle_wait, IDLE_WAIT_MAGIC, context);
}

/* Connections close with their answers while somebody waits: agents then come again by a new
 * connection, to another pod where there is one. */
static void say_whether_closing(const struct admin *admin)
{
    if (admin->close_after_answers)
        admin->close_after_answers(admin->context, admin->idle_wait_count > 0);
}

static void idle_destroy(struct idle_wait *wait)
{
    struct admin *admin = wait->admin;
    ASSERT_NUMBERS(admin->idle_wait_count, >, 0);
    list_remove(&wait->node);
    loop_timer_stop(&wait->timer);
    MAGIC_CLEAR(wait);
    free(wait);
    ASSERT_NUMBERS(admin->idle_wait_count, >, 0);
    if (--admin->idle_wait_count == 0)
        say_whether_closing(admin);
}

static void idle_client_gone(void *context)
{
    idle_destroy(idle_wait_from(context));
}

static void idle_answer(struct idle_wait *wait, bool is_idle)
{
    OWNED_BUFFER(body);
    buffer_append_format(&body, "{\"idle\":%s}", is_idle ? "true" : "false");
    http_on_gone(wait->exchange, NULL, NULL);
    reply_json(wait->exchange, 200, &body);
    idle_destroy(wait);
}

static void idle_look(void *context)
{
    struct idle_wait *wait = idle_wait_from(context);
    const struct admin *admin = wait->admin;
    int64_t now_ms = clock_monotonic_ms();
    struct admin_traffic traffic = {0};
    if (admin->traffic)
        traffic = admin->traffic(admin->context);
    if (traffic.answering > 0 || traffic.arrived != wait->arrived)
        wait->quiet_since_ms = now_ms;
    wait->arrived = traffic.arrived;
    bool is_idle = now_ms - wait->quiet_since_ms >= QUIET_MS;
    if (is_idle || now_ms >= wait->until_ms)
        idle_answer(wait, is_idle);
    else
        loop_timer_start(&wait->timer, LOOK_MS);
}

static bool idle_read_seconds(struct str query, uint64_t *seconds, struct error *error)
{
    OWNED_BUFFER(text);
    *seconds = 0;
    bool is_good = query_parse_single(&text, query, "wait", error);
    if (is_good && text.length > 0 &&
        (!str_to_u64(buffer_str(&text), seconds) || *seconds > WAIT_MOST_S))
        is_good = error_set(error, "wait is not a number of seconds from 0 to %d", WAIT_MOST_S);
    return is_good;
}

void idle_wait(const struct request *request)
{
    struct admin *admin = request->admin;
    struct error error = {""};
    uint64_t seconds;
    if (!idle_read_seconds(http_query(request->exchange), &seconds, &error)) {
        reply_error(request->exchange, REPLY_INVALID_REQUEST, error.message, NULL);
        return;
    }
    if (admin->idle_wait_count >= WAITS_MOST) {
        reply_error(request->exchange, REPLY_UNAVAILABLE, "too many wait here already", NULL);
        return;
    }
    struct idle_wait *wait = memory_alloc(sizeof *wait);
    MAGIC_SET(wait, IDLE_WAIT_MAGIC);
    wait->admin = admin;
    wait->exchange = request->exchange;
    wait->quiet_since_ms = clock_monotonic_ms();
    wait->until_ms = wait->quiet_since_ms + (int64_t)seconds * 1000;
    if (admin->traffic)
        wait->arrived = admin->traffic(admin->context).arrived;
    list_append(&admin->idle_waits, &wait->node);
    loop_timer_init(&wait->timer, admin->loop, idle_look, wait);
    http_on_gone(request->exchange, idle_client_gone, wait);
    if (++admin->idle_wait_count == 1)
        say_whether_closing(admin);
    idle_look(wait);
}

static double uptime_seconds(const struct admin *admin)
{
    return (double)(clock_monotonic_ms() - admin->started_ms) / 1000;
}

void probes_health(const struct request *request)
{
    OWNED_BUFFER(body);
    buffer_append_format(&body,
                         "{\"status\":\"healthy\",\"version\":\"" TASKGATE_VERSION
                         "\",\"uptime_seconds\":%.0f}",
                         uptime_seconds(request->admin));
    reply_json(request->exchange, 200, &body);
}

/* ---- readiness ---- */

/* A shared database that is down is every replica's fault. If all were unready, a load balancer
 * would have nobody for the calls that go on without it. Behaviour 10.10. */
static const char *reason_of(const struct admin *admin)
{
    if (admin->leaving || admin->shutting_down)
        return "shutting_down";
    switch (store_condition(admin->store)) {
    case STORE_WORKS:
        return NULL;
    case STORE_HELD:
        return "store_lacks_commits";
    case STORE_OUT:
        return store_is_shared(admin->store) ? NULL : "store";
    case STORE_NOT_REACHED:
        break;
    }
    return "store";
}

static bool write_peer(void *context, const struct store_peer *peer)
{
    struct buffer *out = context;
    if (out->bytes[out->length - 1] != '[')
        buffer_append_char(out, ',');
    buffer_append(out, STR("{\"id\":"));
    buffer_append_json_string(out, str_from(peer->id));
    buffer_append_format(out, ",\"state\":\"%s\"}", store_peer_state_name(peer->state));
    return true;
}

static void write_replica(const struct admin *admin, struct buffer *out)
{
    buffer_append(out, STR(",\"replica\":{\"id\":"));
    buffer_append_json_string(out, str_from(store_replica_id(admin->store)));
    buffer_append_format(out, ",\"epoch\":%" PRId64 ",\"peers\":[",
                         store_replica_epoch(admin->store));
    store_visit_peers(admin->store, write_peer, out);
    buffer_append(out, STR("]}"));
}

/* Upstream may be down and the gateway is still ready: it answers for itself, with an error that
 * says so. Behaviour 2.12. */
void probes_ready(const struct request *request)
{
    const struct admin *admin = request->admin;
    bool store = store_condition(admin->store) == STORE_WORKS;
    bool upstream = admin->upstream_reachable && admin->upstream_reachable(admin->context);
    const char *reason = reason_of(admin);
    OWNED_BUFFER(body);
    buffer_append_format(&body,
                         "{\"status\":\"%s\",\"checks\":{\"config_loaded\":true,\"store\":%s,"
                         "\"upstream_reachable\":%s",
                         reason ? "not_ready" : "ready", store ? "true" : "false",
                         upstream ? "true" : "false");
    if (admin->notifier && notifier_has_endpoints(admin->notifier))
        buffer_append_format(&body, ",\"notifiers\":%s",
                             notifier_is_failing(admin->notifier) ? "false" : "true");
    buffer_append_char(&body, '}');
    if (admin->notifier && notifier_is_failing(admin->notifier)) {
        buffer_append_text(&body, ",\"failing_notifiers\":");
        notifier_write_failing(admin->notifier, &body);
    }
    if (store_is_shared(admin->store))
        write_replica(admin, &body);
    if (reason)
        buffer_append_format(&body, ",\"reason\":\"%s\"", reason);
    if (admin->config_error) {
        buffer_append(&body, STR(",\"config_error\":"));
        buffer_append_json_string(&body, str_from(admin->config_error));
    }
    buffer_append_char(&body, '}');
    reply_json(request->exchange, reason ? 503 : 200, &body);
}

void probes_metrics(const struct request *request)
{
    bool open_metrics = accept_open_metrics(http_header(request->exchange, "accept"));
    metrics_set(METRIC_UPTIME, uptime_seconds(request->admin), NULL);
    metrics_set(METRIC_TASKS_PENDING, (double)store_pending_count(request->admin->store),
                METRIC_LABELS(STR("approval")));
    OWNED_BUFFER(body);
    metrics_write(&body, open_metrics);
    reply_text(request->exchange, 200,
               open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                            : "text/plain; version=0.0.4; charset=utf-8",
               buffer_str(&body));
}
