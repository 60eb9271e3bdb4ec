/* `subscriptions/listen`: a stream of notifications, one to one with the server's, but for news of
 * resources that the client may not see (MCP 2026-07-28, patterns/subscriptions). */
#include "listen.h"

#include <stdlib.h>

#include "methods.h"
#include "relay/relay.h"
#include "request/call_part.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/identity/identity.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/method.h"

#define ACKNOWLEDGED "notifications/subscriptions/acknowledged"
#define RESOURCE_UPDATED "notifications/resources/updated"

struct listening {
    uint32_t magic; /* LISTENING_MAGIC */
    struct call_part part;
    struct call *call;
    struct loop_timer end; /* when the token ends that the request was let in with */
    bool hears_of_tools;   /* the server has acknowledged toolsListChanged */
};
#define LISTENING_MAGIC 0x4757580e

static inline struct listening *listening_from(void *context)
{
    return MAGIC_CAST(struct listening, LISTENING_MAGIC, context);
}

static void drop(struct call *call, void *object)
{
    struct listening *listening = listening_from(object);
    (void)call;
    loop_timer_stop(&listening->end);
    MAGIC_CLEAR(listening);
    free(listening);
}

static const struct call_part_kind listening_kind = CALL_PART_KIND(struct listening, drop);

static bool is_hidden(const struct call *call, struct str message)
{
    struct buffer uri;
    buffer_init(&uri);
    bool is_hidden = !json_decode_string(json_path(message, "params", "uri"), &uri) ||
                     !policy_is_uri_visible(call->snapshot->policy, call->source, buffer_str(&uri));
    buffer_finish(&uri);
    return is_hidden;
}

/* The snapshot is that of the request: a listener of before a reload is told that lists changed,
 * and listens anew. */
static bool take_message(struct call *call, struct str message)
{
    struct listening *listening = call_part_get(call, &listening_kind);
    struct str method = json_member(message, "method");
    if (json_string_equals(method, STR(ACKNOWLEDGED)))
        listening->hears_of_tools = json_type(json_path(message, "params", "notifications",
                                                        "toolsListChanged")) == JSON_TRUE;
    return json_string_equals(method, STR(RESOURCE_UPDATED)) && is_hidden(call, message);
}

static void end_gracefully(struct call *call)
{
    struct buffer message;
    buffer_init(&message);
    buffer_append_text(&message, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(&message, call->envelope.id);
    buffer_append_text(&message, ",\"result\":{\"resultType\":\"complete\",\"_meta\":{"
                                 "\"io.modelcontextprotocol/subscriptionId\":");
    buffer_append(&message, call->envelope.id);
    buffer_append_text(&message, "}}}");
    relay_end_with(call, buffer_str(&message));
    buffer_finish(&message);
}

static void on_token_end(void *context)
{
    const struct listening *listening = listening_from(context);
    if (relay_is_under_way(listening->call))
        end_gracefully(listening->call);
}

void listen_handle(struct call *call)
{
    const struct relay_options options = {.take_message = take_message};
    if (json_type(call->envelope.notifications) != JSON_OBJECT) {
        modern_refuse_params(call, "params.notifications must be an object");
        return;
    }
    struct listening *listening = memory_alloc(sizeof *listening);
    MAGIC_SET(listening, LISTENING_MAGIC);
    listening->call = call;
    listening->hears_of_tools = false;
    loop_timer_init(&listening->end, call->worker->loop, on_token_end, listening);
    if (call->identity)
        loop_timer_start(&listening->end, call->identity->until_ms - clock_now_ms());
    call_part_add(call, &listening->part, &listening_kind);
    relay_start(call, &options);
}

/* ---- the gateway's own news ---- */

static void tell_of_tools(struct call *call)
{
    struct buffer message;
    buffer_init(&message);
    buffer_append_text(&message, "{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_TOOLS_CHANGED
                                 "\",\"params\":{\"_meta\":{"
                                 "\"io.modelcontextprotocol/subscriptionId\":");
    buffer_append(&message, call->envelope.id);
    buffer_append_text(&message, "}}}");
    relay_pass(call, buffer_str(&message));
    buffer_finish(&message);
}

void listen_tell_of_tools(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        const struct listening *listening = call_part_find(call, &listening_kind);
        if (listening && listening->hears_of_tools && relay_is_under_way(call))
            tell_of_tools(call);
    }
}

void listen_end_all(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->calls) {
        struct call *call = LIST_ENTRY(node, struct call, node);
        if (call_part_find(call, &listening_kind) && relay_is_under_way(call))
            end_gracefully(call);
    }
}
