/* The envelope of the gateway's own requests. */
#include "modern_request.h"

#include "rpc_call.h"
#include "taskgate/mcp/era.h"

#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" MCP_VERSION_MODERN "\","           \
    "\"io.modelcontextprotocol/"                                                                   \
    "clientInfo\":{\"name\":\"taskgate\",\"version\":\"" TASKGATE_VERSION                          \
    "\"},\"io.modelcontextprotocol/clientCapabilities\":{}}"

void modern_request_write(struct buffer *body, struct buffer *id, const char *method,
                          struct str members)
{
    struct buffer params;
    buffer_init(&params);
    buffer_append_char(&params, '{');
    if (members.length > 0) {
        buffer_append(&params, members);
        buffer_append_char(&params, ',');
    }
    buffer_append_text(&params, META "}");
    rpc_call_write_request(body, id, method, buffer_str(&params));
    buffer_finish(&params);
}

void modern_request_set_headers(struct headers *headers, const char *method)
{
    headers_drop(headers, HTTP_NAME_MIRRORS_BODY | HTTP_NAME_OF_SESSION);
    headers_set(headers, STR("mcp-protocol-version"), STR(MCP_VERSION_MODERN));
    headers_add(headers, STR("mcp-method"), str_from(method));
}

bool modern_request_has_headers(const struct headers *headers)
{
    return headers_known(headers, HTTP_NAME_MCP_METHOD).bytes != NULL;
}
