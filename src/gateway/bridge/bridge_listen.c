/* Listening for a bridged client. */
#include "bridge_listen.h"

#include <stdlib.h>

#include "bridge_request.h"
#include "server/catalogue.h"
#include "server/http.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"

#define RESOURCE_UPDATED "notifications/resources/updated"

struct bridge_listen {
    uint32_t magic; /* BRIDGE_LISTEN_MAGIC */
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source; /* of the snapshot */
    struct exchange *exchange;
    struct bridge_listen_callbacks callbacks;
    void *context;
    struct buffer honoured; /* JSON object; empty: not acknowledged yet */
    bool is_inside;         /* a message of the server is being told */
    bool is_stopped;        /* during that */
    struct loop_timer end;  /* then it ends after it */
};
#define BRIDGE_LISTEN_MAGIC 0x47574c12

static inline struct bridge_listen *bridge_listen_from(void *context)
{
    return MAGIC_CAST(struct bridge_listen, BRIDGE_LISTEN_MAGIC, context);
}

static void destroy(struct bridge_listen *listen)
{
    loop_timer_stop(&listen->end);
    buffer_finish(&listen->honoured);
    snapshot_unref(listen->snapshot);
    MAGIC_CLEAR(listen);
    free(listen);
}

static void end(void *context)
{
    struct bridge_listen *listen = bridge_listen_from(context);
    exchange_abandon(listen->exchange);
    destroy(listen);
}

void bridge_listen_stop(struct bridge_listen *listen)
{
    if (!listen || listen->is_stopped)
        return;
    listen->is_stopped = true;
    if (listen->is_inside)
        loop_timer_start(&listen->end, 0);
    else
        end(listen);
}

bool bridge_listen_covers(const struct bridge_listen *listen, struct str uri)
{
    struct str uris = json_member(buffer_str(&listen->honoured), "resourceSubscriptions"), one;
    for (size_t position = 0; json_next_element(uris, &position, &one);) {
        if (json_string_equals(one, uri))
            return true;
    }
    return false;
}

bool bridge_listen_is_empty(const struct bridge_listen *listen)
{
    struct str honoured = buffer_str(&listen->honoured), key, value;
    for (size_t position = 0; json_next_member(honoured, &position, &key, &value);) {
        if (json_type(value) == JSON_TRUE || json_count(value) > 0)
            return false;
    }
    return honoured.length > 0;
}

/* ---- what the server says ---- */

static bool is_hidden(const struct bridge_listen *listen, struct str message)
{
    struct buffer uri;
    buffer_init(&uri);
    bool is_hidden =
        !json_decode_string(json_path(message, "params", "uri"), &uri) ||
        !policy_is_uri_visible(listen->snapshot->policy, listen->source, buffer_str(&uri));
    buffer_finish(&uri);
    return is_hidden;
}

static bool is_told(const struct bridge_listen *listen, struct str method, struct str message)
{
    static const char *const told[] = {MCP_TOOLS_CHANGED, "notifications/prompts/list_changed",
                                       "notifications/resources/list_changed"};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        if (json_string_equals(method, str_from(told[i])))
            return true;
    }
    return json_string_equals(method, STR(RESOURCE_UPDATED)) && !is_hidden(listen, message);
}

static void tell(struct bridge_listen *listen, struct str method, struct str message)
{
    struct buffer legacy;
    if (!is_told(listen, method, message))
        return;
    if (json_string_equals(method, STR(MCP_TOOLS_CHANGED)))
        tools_fetch_changed(listen->worker->gateway, str_from(listen->source->id));
    buffer_init(&legacy);
    legacy_bridge_write_notification(&legacy, message);
    listen->callbacks.news(listen->context, method, buffer_str(&legacy));
    buffer_finish(&legacy);
}

static void on_message(void *context, struct str message)
{
    struct bridge_listen *listen = bridge_listen_from(context);
    struct str method = json_member(message, "method");
    if (listen->is_stopped)
        return;
    listen->is_inside = true;
    if (listen->honoured.length > 0) {
        tell(listen, method, message);
    } else if (json_string_equals(method, STR("notifications/subscriptions/acknowledged"))) {
        struct str honoured = json_path(message, "params", "notifications");
        buffer_append(&listen->honoured, json_type(honoured) == JSON_OBJECT ? honoured : STR("{}"));
        listen->callbacks.acknowledged(listen->context, buffer_str(&listen->honoured));
    }
    listen->is_inside = false;
}

static void on_reply(void *context, const struct exchange_reply *reply)
{
    struct bridge_listen *listen = bridge_listen_from(context);
    bool was_stopped = listen->is_stopped;
    listen->is_stopped = true; /* the owner need not stop it any more */
    if (!was_stopped)
        listen->callbacks.ended(listen->context, listen, json_member(reply->message, "error"));
    destroy(listen);
}

static void on_dropped(void *context)
{
    struct bridge_listen *listen = bridge_listen_from(context);
    bool was_stopped = listen->is_stopped;
    listen->is_stopped = true;
    if (!was_stopped && listen->callbacks.dropped)
        listen->callbacks.dropped(listen->context);
    destroy(listen);
}

struct bridge_listen *bridge_listen_start(const struct call *call, struct str filter,
                                          const struct bridge_listen_callbacks *callbacks,
                                          void *context)
{
    static const struct exchange_events events = {
        .reply = on_reply, .server_message = on_message, .dropped = on_dropped};
    struct bridge_listen *listen = memory_alloc(sizeof *listen);
    struct headers headers;
    struct buffer body = {0}, id = {0}, members = {0};
    MAGIC_SET(listen, BRIDGE_LISTEN_MAGIC);
    listen->worker = call->worker;
    listen->snapshot = snapshot_ref(call->snapshot);
    listen->source = call->source;
    listen->callbacks = *callbacks;
    listen->context = context;
    loop_timer_init(&listen->end, call->worker->loop, end, listen);
    headers_init(&headers, true);
    buffer_append_format(&members, "{\"notifications\":%.*s}", STR_ARGS(filter));
    bridge_request_write_own(call, "subscriptions/listen", buffer_str(&members), &headers, &body,
                             &id);
    const struct sending sending = {
        .source = call->source,
        .snapshot = call->snapshot,
        .headers = &headers,
        .body = buffer_str(&body),
        .id = buffer_str(&id),
        .most_bytes = (size_t)call->snapshot->config->limits.result_bytes,
    };
    listen->exchange = exchange_send(call->worker, &sending, &events, listen);
    buffer_finish(&members);
    buffer_finish(&id);
    buffer_finish(&body);
    headers_finish(&headers);
    return listen;
}
