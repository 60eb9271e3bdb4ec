/* The handshake of a bridged client: `server/discover` up, the result of `initialize` down. */
#include <stdlib.h>

#include "bridge/bridge_request.h"
#include "bridge_check.h"
#include "bridged.h"
#include "call/call_part.h"
#include "initialize.h"
#include "mcp_client/era_probe.h"
#include "mcp_client/rpc_call.h"
#include "methods.h"
#include "relay/relay_bridged.h"
#include "state/bridged_sessions.h"
#include "state/source_eras.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/legacy_bridge.h"

#define DISCOVER_MOST_BYTES ((size_t)256 * 1024)

struct discovery {
    struct call_part part;
    struct call *call;
    struct rpc_call *rpc;
};

static void drop(struct call *call, void *object)
{
    struct discovery *discovery = object;
    (void)call;
    rpc_call_cancel(discovery->rpc);
    free(discovery);
}

static const struct call_part_kind discovery_kind = CALL_PART_KIND(struct discovery, drop);

/* Keeps the capabilities that the session declares. False when they are larger than is kept. */
static bool read_client(struct call *call)
{
    struct str params = call->envelope.params, info = json_member(params, "clientInfo");
    struct buffer *said = &call->bridged;
    buffer_clear(said);
    buffer_append_char(said, '{');
    json_add_key(said, "capabilities");
    legacy_bridge_write_capabilities(said, json_member(params, "capabilities"));
    if (json_type(info) == JSON_OBJECT) {
        json_add_key(said, "clientInfo");
        buffer_append(said, info);
    }
    if (call->token[0] && bridged_binds_sessions(call))
        json_add_text(said, BRIDGED_SESSION_TOKEN, call->token);
    buffer_append_char(said, '}');
    return said->length <= BRIDGED_SESSION_BYTES / 2;
}

static void answer(struct call *call, struct str session, struct str result)
{
    struct http_exchange *exchange = call->exchange;
    const struct http_header headers[] = {{STR("content-type"), STR("application/json")},
                                          {STR("mcp-session-id"), session}};
    struct buffer message;
    buffer_init(&message);
    jsonrpc_write_result(&message, call->envelope.id, result);
    http_on_gone(exchange, NULL, NULL);
    call_ref(call);
    call_ended(call);
    http_respond(exchange, 200, headers, 2, buffer_str(&message));
    call_unref(call);
    buffer_finish(&message);
}

static void open_session(struct call *call, struct str discovered)
{
    char digest[DIGEST_HEX_BYTES];
    struct buffer session, result, injected;
    buffer_init(&session);
    buffer_init(&result);
    buffer_init(&injected);
    bridge_check_write_session(&session);
    call_digest_session(call, buffer_str(&session), digest);
    bridged_sessions_put(call->worker->gateway->bridged_sessions, str_from(call->source->id),
                         str_from(digest), buffer_str(&call->bridged),
                         call->snapshot->config->limits.sessions);
    legacy_bridge_write_initialize(&result, discovered,
                                   json_member(call->envelope.params, "protocolVersion"),
                                   call->source->id);
    initialize_take_result(call, buffer_str(&result), digest, &injected);
    log_info("A legacy client is bridged to a modern server", LOG_TEXT("source", call->source->id),
             LOG_TEXT("client", call->facts.client.name));
    answer(call, buffer_str(&session), buffer_str(&injected));
    buffer_finish(&injected);
    buffer_finish(&result);
    buffer_finish(&session);
}

/* It was a modern server, and is none now. */
static void go_on_as_legacy(struct call *call)
{
    source_eras_note(call->worker->gateway->eras, call->source, CONFIG_ERA_LEGACY, true,
                     loop_now_ms(call->worker->loop));
    call->is_bridged = false;
    initialize_handle(call);
}

static void on_discovered(void *context, const struct rpc_call_reply *reply)
{
    struct discovery *discovery = context;
    struct call *call = discovery->call;
    struct str result = json_member(reply->message, "result");
    unsigned served;
    call_part_remove(&discovery->part);
    free(discovery);
    bool is_shown = era_probe_note(call->worker->gateway, call->source, reply);
    source_eras_find(call->worker->gateway->eras, call->source, loop_now_ms(call->worker->loop),
                     &served);
    if (result.length > 0 && mcp_discover_lists(result, STR(MCP_VERSION_MODERN)))
        open_session(call, result);
    else if (is_shown && call->source->eras == CONFIG_ERA_AUTO && !(served & CONFIG_ERA_MODERN))
        go_on_as_legacy(call);
    else
        relay_bridged_answer_failure(call, reply);
}

void bridged_initialize(struct call *call)
{
    static const struct rpc_call_callbacks callbacks = {.reply = on_discovered};
    int64_t limit_ms = call->snapshot->config->times.tools_fetch_timeout_ms;
    struct headers headers;
    struct buffer body = {0}, id = {0};
    call_identify(call);
    initialize_read_declarations(call);
    if (!read_client(call)) {
        call_answer_error(call, JSONRPC_INVALID_PARAMS,
                          STR("params.capabilities and params.clientInfo are longer than is kept"),
                          NULL);
        return;
    }
    headers_init(&headers, true);
    bridge_request_write_own(call, "server/discover", STR_EMPTY, &headers, &body, &id);
    const struct rpc_call_question question = {&headers, buffer_str(&body), buffer_str(&id),
                                               limit_ms, DISCOVER_MOST_BYTES};
    struct discovery *discovery = memory_alloc(sizeof *discovery);
    discovery->call = call;
    call_part_add(call, &discovery->part, &discovery_kind);
    discovery->rpc = rpc_call_ask(call, &question, &callbacks, discovery);
    buffer_finish(&id);
    buffer_finish(&body);
    headers_finish(&headers);
}
