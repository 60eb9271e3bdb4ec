/* Requests of the gateway's own to servers of either era, and its own sessions. */
#include "own.h"

#include <stdlib.h>
#include <string.h>

#include "call/headers.h"
#include "state/tool_catalog.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/capabilities.h"
#include "taskgate/mcp/era.h"

struct str service_session_params(void)
{
    return STR("{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
               "\"clientInfo\":{\"name\":\"taskgate\",\"version\":\"" TASKGATE_VERSION "\"}}");
}

struct str service_session_initialized(void)
{
    return STR("{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_INITIALIZED "\"}");
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

void service_session_opened(struct headers *headers, const struct exchange_reply *reply)
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
    struct sending sending = {
        .source = source, .snapshot = snapshot, .headers = headers, .method = "DELETE"};
    if (headers_find(headers, "mcp-session-id").length > 0)
        exchange_notify(worker, &sending);
}

/* ---- sessions that their server refuses to end ---- */

#define MOST_PARKED 64 /* of a worker: sessions of earlier configurations are never taken */
#define PATIENCE_MS 10000
#define MOST_BYTES 65536

struct parked_session {
    uint32_t magic;   /* PARKED_SESSION_MAGIC */
    struct list node; /* in the worker's */
    struct gateway_worker *worker;
    char server[DIGEST_HEX_BYTES]; /* its address and static headers */
    struct headers headers;
};
#define PARKED_SESSION_MAGIC 0x47575050

static struct parked_session *parked_session_from(void *context)
{
    return MAGIC_CAST(struct parked_session, PARKED_SESSION_MAGIC, context);
}

static void digest_server(const struct config_source *source, char digest[DIGEST_HEX_BYTES])
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s\n", source->url);
    for (size_t i = 0; i < source->header_count; i++)
        buffer_append_format(&text, "%s:%s\n", source->headers[i].name, source->headers[i].value);
    digest_sha256_hex(buffer_str(&text), digest);
    buffer_finish(&text);
}

static void destroy(void *context)
{
    struct parked_session *session = parked_session_from(context);
    headers_finish(&session->headers);
    MAGIC_CLEAR(session);
    free(session);
}

static void own_forget(struct parked_session *session)
{
    list_remove(&session->node);
    session->worker->parked_session_count--;
    destroy(session);
}

static void on_ended(void *context, const struct exchange_reply *reply)
{
    struct parked_session *session = parked_session_from(context);
    struct gateway_worker *worker = session->worker;
    if (reply->status < 400 || reply->status == 404) {
        destroy(session);
        return;
    }
    list_append(&worker->parked_sessions, &session->node);
    if (++worker->parked_session_count > MOST_PARKED)
        own_forget(LIST_ENTRY(worker->parked_sessions.next, struct parked_session, node));
}

void parked_sessions_end(struct gateway_worker *worker, struct snapshot *snapshot,
                         const struct config_source *source, const struct headers *headers)
{
    static const struct exchange_events events = {.reply = on_ended, .dropped = destroy};
    if (headers_find(headers, "mcp-session-id").length == 0)
        return;
    struct parked_session *session = memory_alloc(sizeof *session);
    MAGIC_SET(session, PARKED_SESSION_MAGIC);
    session->worker = worker;
    digest_server(source, session->server);
    headers_init(&session->headers, true);
    headers_add_all(&session->headers, headers);
    const struct sending sending = {.source = source,
                                    .snapshot = snapshot,
                                    .headers = headers,
                                    .method = "DELETE",
                                    .total_ms = PATIENCE_MS,
                                    .most_bytes = MOST_BYTES};
    exchange_send(worker, &sending, &events, session);
}

bool parked_sessions_take(struct gateway_worker *worker, const struct config_source *source,
                          struct headers *headers)
{
    char server[DIGEST_HEX_BYTES];
    digest_server(source, server);
    LIST_FOR_EACH_SAFE (node, next, &worker->parked_sessions) {
        struct parked_session *session = LIST_ENTRY(node, struct parked_session, node);
        if (strcmp(session->server, server) != 0)
            continue;
        headers_finish(headers);
        headers_add_all(headers, &session->headers);
        own_forget(session);
        return true;
    }
    return false;
}

void parked_sessions_finish(struct gateway_worker *worker)
{
    LIST_FOR_EACH_SAFE (node, next, &worker->parked_sessions)
        own_forget(LIST_ENTRY(node, struct parked_session, node));
}

/* ---- modern requests ---- */

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
    exchange_write_request(body, id, method, buffer_str(&params));
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

/* ---- modern requests for a client ---- */

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
    exchange_write_request(body, id, request->method, buffer_str(&params));
    mirrored_headers_set(headers, request->method, request->name);
    buffer_finish(&params);
}
