/* Health, readiness and metrics: for probes and monitoring, without a token. */
#include "internal.h"

#include <inttypes.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/metrics.h"
#include "taskgate/notify/notify.h"
#include "taskgate/store/replicas.h"

#include "accept.h"
#include "reply.h"

static double uptime_seconds(const struct admin *admin)
{
    return (double)(clock_monotonic_ms() - admin->started_ms) / 1000;
}

void probes_health(const struct request *request)
{
    struct buffer body;
    buffer_init(&body);
    buffer_append_format(&body,
                         "{\"status\":\"healthy\",\"version\":\"" TASKGATE_VERSION
                         "\",\"uptime_seconds\":%.0f}",
                         uptime_seconds(request->admin));
    reply_json(request->exchange, 200, &body);
    buffer_finish(&body);
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
    struct buffer body;
    buffer_init(&body);
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
    buffer_finish(&body);
}

void probes_metrics(const struct request *request)
{
    bool open_metrics = accept_open_metrics(http_header(request->exchange, "accept"));
    metrics_set(METRIC_UPTIME, uptime_seconds(request->admin), NULL);
    metrics_set(METRIC_TASKS_PENDING, (double)store_pending_count(request->admin->store),
                METRIC_LABELS(STR("approval")));
    struct buffer body;
    buffer_init(&body);
    metrics_write(&body, open_metrics);
    reply_text(request->exchange, 200,
               open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                            : "text/plain; version=0.0.4; charset=utf-8",
               buffer_str(&body));
    buffer_finish(&body);
}
