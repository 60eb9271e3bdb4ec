/* One question, and what its answer shows. */
#include "probe.h"

#include "call/call.h"
#include "own.h"
#include "protocol.h"
#include "state/source_eras.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/cacheable.h"
#include "taskgate/mcp/extension.h"

#define PROBE_MS 5000
#define PROBE_MOST_BYTES ((size_t)256 * 1024)

/* Statuses that say something of the caller, or of the moment, and nothing of the server. */
static bool says_nothing(int status)
{
    return status == 401 || status == 403 || status == 407 || status == 408 || status == 429 ||
           status >= 500 || (status >= 300 && status < 400);
}

void era_probe_note_result(struct gateway *gateway, const struct config_source *source,
                           struct str result)
{
    source_eras_note(gateway->eras, source, CONFIG_ERA_MODERN,
                     mcp_discover_lists(result, STR(MCP_VERSION_MODERN)), clock_monotonic_ms());
    source_eras_note_tasks(gateway->eras, source, mcp_discover_offers_tasks(result));
    source_eras_note_directories(
        gateway->eras, source,
        mcp_extension_has_setting(result, MCP_EXTENSION_SKILLS, MCP_DIRECTORY_READ));
}

bool era_probe_note(struct gateway *gateway, const struct config_source *source,
                    const struct exchange_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    struct str error = json_member(reply->message, "error");
    bool is_answer = result.length > 0 || error.length > 0;
    if (reply->result != UPSTREAM_DONE || says_nothing(reply->status) ||
        (reply->status < 300 && !is_answer))
        return false;
    /* A modern server that refuses this version names those that it serves. */
    if (result.length > 0)
        era_probe_note_result(gateway, source, result);
    else
        source_eras_note(
            gateway->eras, source, CONFIG_ERA_MODERN,
            json_has_text(json_path(error, "data", "supported"), STR(MCP_VERSION_MODERN)),
            clock_monotonic_ms());
    return true;
}

static void on_probed(struct call *call, const struct exchange_reply *reply, call_step next)
{
    era_probe_note(call->worker->gateway, call->source, reply);
    next(call);
}

void era_probe_then(struct call *call, call_step next)
{
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    OWNED_HEADERS(headers, false);
    headers_from_call(&headers, call);
    modern_request_set_headers(&headers, "server/discover");
    modern_request_write(&body, &id, "server/discover", STR_EMPTY);
    server_ask(call, &(struct exchange_question){&headers, buffer_str(&body), buffer_str(&id),
                                                 PROBE_MS, PROBE_MOST_BYTES, on_probed, next});
}

const struct server_protocol *server_protocol_of_call(const struct call *call)
{
    return call_server_has_sessions(call) ? &server_legacy : &server_modern;
}

const struct server_protocol *server_protocol_of(struct gateway_worker *worker,
                                                 const struct config_source *source,
                                                 bool repeats_body)
{
    bool is_translated =
        source && source_eras_bridge_down(worker->gateway->eras, source, clock_monotonic_ms());
    return repeats_body && !is_translated ? &server_modern : &server_legacy;
}
