/* The gateway's own requests to a modern server. */
#include "client_request.h"

#include "call/headers.h"
#include "rpc_call.h"

static void append_member(struct buffer *meta, const char *key, struct str value)
{
    if (value.length == 0)
        return;
    buffer_append_format(meta, "%s\"io.modelcontextprotocol/%s\":", meta->length > 1 ? "," : "",
                         key);
    buffer_append(meta, value);
}

void client_request_write_meta(struct buffer *meta, const struct envelope *envelope)
{
    struct buffer own;
    buffer_init(&own);
    buffer_append_char(&own, '{');
    append_member(&own, "protocolVersion", envelope->reserved.version);
    append_member(&own, "clientInfo", envelope->reserved.client_info);
    append_member(&own, "clientCapabilities", envelope->reserved.client_capabilities);
    buffer_append_char(&own, '}');
    buffer_append(meta, buffer_str(&own));
    buffer_finish(&own);
}

void client_request_read_meta(struct buffer *meta, struct str body)
{
    struct envelope envelope;
    envelope_read(&envelope, body, NULL);
    client_request_write_meta(meta, &envelope);
    envelope_finish(&envelope);
}

void client_request_write(const struct client_request *request, struct headers *headers,
                          struct buffer *body, struct buffer *id)
{
    struct buffer params;
    buffer_init(&params);
    buffer_append_char(&params, '{');
    buffer_append(&params, request->members);
    buffer_append_text(&params, request->members.length > 0 ? ",\"_meta\":" : "\"_meta\":");
    buffer_append(&params, request->meta);
    buffer_append_char(&params, '}');
    rpc_call_write_request(body, id, request->method, buffer_str(&params));
    mirrored_headers_set(headers, request->method, request->name);
    buffer_finish(&params);
}
