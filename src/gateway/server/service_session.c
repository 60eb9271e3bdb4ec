/* The messages that open and end a session of the gateway's own. */
#include "service_session.h"

#include <stdlib.h>

#include "state/tool_catalog.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/capabilities.h"

struct str service_session_params(void)
{
    return STR("{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
               "\"clientInfo\":{\"name\":\"taskgate\",\"version\":\"" TASKGATE_VERSION "\"}}");
}

struct str service_session_initialized(void)
{
    return STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
}

bool service_session_is_wanted(struct gateway_worker *worker, const struct config_source *source,
                               const struct headers *headers)
{
    struct mcp_capabilities server;
    catalog_capabilities(worker->gateway->catalog, str_from(source->id), &server);
    return headers_find(headers, "mcp-session-id").length == 0 && !server.lacks_sessions;
}

void service_session_begin(struct headers *headers, const struct config_source *source)
{
    for (size_t i = 0; i < source->header_count; i++)
        headers_set(headers, str_from(source->headers[i].name), str_from(source->headers[i].value));
}

void service_session_opened(struct headers *headers, const struct rpc_call_reply *reply)
{
    struct str result = json_member(reply->message, "result");
    char *version = json_string_text(json_member(result, "protocolVersion"), NULL);
    struct str session = headers_find(reply->headers, "mcp-session-id");
    if (session.length > 0)
        headers_set(headers, STR("mcp-session-id"), session);
    if (version)
        headers_set(headers, STR("mcp-protocol-version"), str_from(version));
    free(version);
}

void service_session_end(struct gateway_worker *worker, struct snapshot *snapshot,
                         const struct config_source *source, const struct headers *headers)
{
    struct rpc_call_options options = {
        .source = source, .snapshot = snapshot, .headers = headers, .method = "DELETE"};
    if (headers_find(headers, "mcp-session-id").length > 0)
        rpc_call_notify(worker, &options);
}
