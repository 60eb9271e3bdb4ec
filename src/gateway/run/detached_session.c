/* The end of a session in which promoted calls run. The server would end them with it, so it is
 * notified after the last of them. */
#include <string.h>

#include "detached_call_internal.h"
#include "request/broadcast.h"
#include "request/client_profile.h"
#include "state/quota.h"
#include "taskgate/core/log.h"

#define ENDING_MS 10000

static bool session_key(const struct detached_call *detached, char key[CLIENT_KEY_BYTES])
{
    client_key_of_session(detached->base.source, detached->base.session, key);
    return detached->base.session[0];
}

void detached_session_enter(const struct detached_call *detached)
{
    char key[CLIENT_KEY_BYTES];
    if (session_key(detached, key))
        quota_take(detached->base.worker->gateway->promoted_in, str_from(key), INT64_MAX,
                   INT64_MAX);
}

static void end_at_server(const struct detached_call *detached)
{
    struct rpc_call_options options = invocation_rpc_options(&detached->base);
    options.method = "DELETE";
    options.silence_ms = options.total_ms = ENDING_MS;
    log_info("A session ends after the last of its promoted calls",
             LOG_TEXT("source", detached->base.source->id));
    rpc_call_notify(detached->base.worker, &options);
}

void detached_session_leave(const struct detached_call *detached)
{
    struct gateway *gateway = detached->base.worker->gateway;
    char key[CLIENT_KEY_BYTES];
    if (!session_key(detached, key))
        return;
    quota_give_back(gateway->promoted_in, str_from(key));
    if (!quota_has(gateway->promoted_in, str_from(key)) &&
        quota_has(gateway->ended_sessions, str_from(key))) {
        quota_give_back(gateway->ended_sessions, str_from(key));
        end_at_server(detached);
    }
}

/* The mark comes before the look, so that a last call that ends meanwhile finds it. */
bool detached_calls_hold_session(const struct call *call)
{
    struct gateway *gateway = call->worker->gateway;
    char key[CLIENT_KEY_BYTES];
    if (!call->session[0] || call_is_stranger(call))
        return false;
    client_key_of_session(call->source, call->session, key);
    bool is_first = quota_take(gateway->ended_sessions, str_from(key), 1, INT64_MAX);
    bool holds = quota_has(gateway->promoted_in, str_from(key));
    if (is_first && !holds)
        quota_give_back(gateway->ended_sessions, str_from(key));
    return holds;
}

/* ---- no client is asked any more ---- */

static void deliver_end(struct gateway_worker *worker, const void *message)
{
    struct str key = ((const struct client_broadcast *)message)->key;
    LIST_FOR_EACH_SAFE (node, next, &worker->detached) {
        struct detached_call *detached = LIST_ENTRY(node, struct detached_call, node);
        struct input_audience *audience = &detached->base.audience;
        if (str_equal(str_from(audience->key), key))
            memset(audience->can, 0, sizeof audience->can);
    }
}

static const struct broadcast_kind end_kind = CLIENT_BROADCAST_KIND(deliver_end);

void detached_calls_end_session(struct gateway *gateway, struct str key)
{
    broadcast_send(gateway, &end_kind, &(struct client_broadcast){key});
}
