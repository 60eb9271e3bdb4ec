/* The proof that a request comes from another replica. */
#include "relayed.h"

#include "call/broadcast.h"
#include "call/deferred_response.h"
#include "call/headers.h"
#include "relay_signature.h"
#include "replicas.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"

static void refuse(struct http_exchange *exchange, int status, struct str refusal)
{
    const struct http_header header = {.name = STR(RELAY_SIGNATURE_HEADER), .value = refusal};
    http_respond(exchange, status, &header, 1, STR_EMPTY);
}

/* One answer for all, which says nothing of what the request names. */
static bool refuse_unsigned(struct http_exchange *exchange, const char *why)
{
    log_warn("A request on the port for replicas was refused", LOG_TEXT("reason", why),
             LOG_STR("peer", http_peer(exchange)));
    metrics_count(METRIC_RELAYED_REQUESTS, STR("unsigned"));
    refuse(exchange, 403, STR(RELAYED_REFUSED));
    return false;
}

/* The headers as the other replica has sent them, but for those of the connection. */
static void relayed_take_headers(struct headers *headers, const struct http_exchange *exchange)
{
    size_t count = http_header_count(exchange);
    for (size_t i = 0; i < count; i++) {
        struct http_header item = http_header_at(exchange, i);
        unsigned flags = http_name_flags(http_name_of(&item));
        if (!(flags & (HTTP_NAME_HOP_BY_HOP | HTTP_NAME_NOT_SENT_UP)))
            headers_add(headers, item.name, item.value);
    }
}

/* NULL: it is good. */
static const char *judge(const struct replicas *replicas, const struct http_exchange *exchange,
                         struct relay_signed *request)
{
    struct http_header room[HEADERS_ROOM];
    struct headers headers;
    struct str signature, value = http_header_known(exchange, HTTP_NAME_TASKGATE_RELAY);
    if (!value.bytes || http_header_is_repeated(exchange, HTTP_NAME_TASKGATE_RELAY) ||
        !relay_signature_read(value, request, &signature))
        return "it has no signature";
    OWNED_BUFFER(target);
    relay_target_write(http_path(exchange), http_query(exchange), &target);
    headers_init_in(&headers, room, HEADERS_ROOM);
    relayed_take_headers(&headers, exchange);
    request->method = http_method(exchange);
    request->target = buffer_str(&target);
    request->body = http_body(exchange);
    request->headers = headers.items;
    request->header_count = headers.count;
    bool is_good = relay_signature_is_good(str_from(replicas->key), request, signature);
    headers_finish(&headers);
    if (!is_good)
        return "its signature is wrong";
    if (!relay_signature_is_in_time(request, clock_now_ms()))
        return "it was signed too long ago, or the clocks differ";
    if (!str_equal(request->to, str_from(store_replica_id(replicas->store))))
        return "it is for another replica";
    return nonce_cache_take(replicas->nonces, request->nonce, request->time_ms,
                            clock_monotonic_ms())
               ? NULL
               : "it has come before, or may have: the clock was set back";
}

bool relayed_is_good(struct gateway_worker *worker, struct http_exchange *exchange)
{
    const struct gateway *gateway = worker->gateway;
    struct relay_signed request = {0};
    if (!gateway->replicas)
        return refuse_unsigned(exchange, "nothing is relayed here");
    const char *wrong = judge(gateway->replicas, exchange, &request);
    if (wrong)
        return refuse_unsigned(exchange, wrong);
    atomic_store(&gateway->replicas->relayed_ms, clock_monotonic_ms());
    if (request.epoch == store_replica_epoch(gateway->store) &&
        !atomic_load(&gateway->shutting_down))
        return true;
    refuse(exchange, 421, STR(RELAYED_NOT_HERE));
    return false;
}

/* ---- a sender that ends ---- */

static struct str sender_of(const struct http_exchange *exchange)
{
    struct relay_signed request = {0};
    struct str signature, value = http_header_known(exchange, HTTP_NAME_TASKGATE_RELAY);
    return relay_signature_read(value, &request, &signature) ? request.from : STR_EMPTY;
}

static void deliver_leaving(struct gateway_worker *worker, const void *message)
{
    const struct str *sender = message;
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        if (call->is_relayed && deferred_response_is_held(call) &&
            str_equal(sender_of(call->exchange), *sender))
            deferred_response_stop(call);
    }
}

static const struct broadcast_kind leaving_kind = {
    .bytes = sizeof(struct str), .texts = 1, .deliver = deliver_leaving};

void relayed_end_held(struct gateway_worker *worker, struct http_exchange *exchange)
{
    const struct str sender = sender_of(exchange);
    broadcast_send(worker->gateway, &leaving_kind, &sender);
}
