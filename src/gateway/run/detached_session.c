/* The end of a session in which promoted calls run. The server would end them with it, so it is
 * notified after the last of them. */
#include <stdlib.h>
#include <string.h>

#include "call/broadcast.h"
#include "call/client_profile.h"
#include "detached_call_internal.h"
#include "state/quota.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

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

/* The client may have had a newer token at its end than when it called. */
static void end_at_server(const struct detached_call *detached)
{
    struct sending sending = invocation_sending(&detached->base);
    struct headers headers;
    headers_init(&headers, false);
    headers_add_all(&headers, sending.headers);
    if (detached->end_authorization)
        headers_set(&headers, STR("authorization"), str_from(detached->end_authorization));
    sending.headers = &headers;
    sending.method = "DELETE";
    sending.silence_ms = sending.total_ms = ENDING_MS;
    log_info("A session ends after the last of its promoted calls",
             LOG_TEXT("source", detached->base.source->id));
    exchange_notify(detached->base.worker, &sending);
    headers_finish(&headers);
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

/* The mark comes before the look, so that a last call that ends meanwhile finds it. The
 * calls must not end either where the session is ended again. */
bool detached_calls_hold_session(const struct call *call)
{
    struct gateway *gateway = call->worker->gateway;
    char key[CLIENT_KEY_BYTES];
    if (!call->session[0])
        return false;
    client_key_of_session(call->source, call->session, key);
    if (call_is_stranger(call))
        return quota_has(gateway->ended_sessions, str_from(key));
    bool is_first = quota_take(gateway->ended_sessions, str_from(key), 1, INT64_MAX);
    bool holds = quota_has(gateway->promoted_in, str_from(key));
    if (is_first && !holds)
        quota_give_back(gateway->ended_sessions, str_from(key));
    return holds;
}

/* ---- the calls learn of it ---- */

struct session_end {
    struct str key, authorization; /* the last empty: the client has none */
};

static void own_end(void *message)
{
    struct session_end *end = message;
    end->key = broadcast_copy(end->key);
    end->authorization = broadcast_copy(end->authorization);
}

static void finish_end(void *message)
{
    struct session_end *end = message;
    broadcast_release(end->key);
    broadcast_release(end->authorization);
}

static void deliver_end(struct gateway_worker *worker, const void *message)
{
    const struct session_end *end = message;
    LIST_FOR_EACH_SAFE (node, next, &worker->detached) {
        struct detached_call *detached = LIST_ENTRY(node, struct detached_call, node);
        struct question_audience *audience = &detached->base.audience;
        if (!str_equal(str_from(audience->key), end->key))
            continue;
        if (owner_is_session(audience->owner))
            memset(audience->can, 0, sizeof audience->can);
        free(detached->end_authorization);
        detached->end_authorization =
            end->authorization.length > 0 ? memory_copy_str(end->authorization) : NULL;
    }
}

static const struct broadcast_kind end_kind = {.bytes = sizeof(struct session_end),
                                               .own = own_end,
                                               .finish = finish_end,
                                               .deliver = deliver_end};

void detached_calls_end_session(const struct call *call, struct str key)
{
    struct headers headers;
    headers_init(&headers, true);
    if (call->exchange)
        headers_from_call(&headers, call);
    const struct session_end end = {key, headers_find(&headers, "authorization")};
    broadcast_send(call->worker->gateway, &end_kind, &end);
    headers_finish(&headers);
}
