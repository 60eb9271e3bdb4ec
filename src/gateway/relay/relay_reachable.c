/* A relay notes whether its server can be reached. */
#include "relay_internal.h"
#include "server/rpc_call.h"
#include "state/server_status.h"

/* Noted once a second at most, because every response says the same. */
void relay_note_reachable(struct call *call)
{
    struct gateway_worker *worker = call->worker;
    int64_t now_ms = loop_now_ms(worker->loop);
    if (worker->reachable_until_ms > now_ms &&
        str_equal(buffer_str(&worker->reachable_source), str_from(call->source->id)))
        return;
    server_status_note(worker->gateway->catalog, str_from(call->source->id), true);
    worker->reachable_until_ms = now_ms + 1000;
    buffer_clear(&worker->reachable_source);
    buffer_append_text(&worker->reachable_source, call->source->id);
}

void relay_note_unreachable(struct call *call)
{
    call->worker->reachable_until_ms = 0;
    server_status_note(call->worker->gateway->catalog, str_from(call->source->id), false);
}

/* An idle client learns of a dead server only from its GET stream. A stream may break off for less,
 * so the server is asked whether it is there. */
void relay_ask_if_reachable(const struct call *call)
{
    struct headers headers;
    struct buffer body = {0}, id = {0};
    headers_init(&headers, false);
    headers_from_call(&headers, call);
    rpc_call_write_request(&body, &id, "ping", STR_EMPTY);
    const struct rpc_call_options options = {.source = call->source,
                                             .snapshot = call->snapshot,
                                             .headers = &headers,
                                             .body = buffer_str(&body)};
    rpc_call_notify(call->worker, &options);
    buffer_finish(&id);
    buffer_finish(&body);
    headers_finish(&headers);
}
