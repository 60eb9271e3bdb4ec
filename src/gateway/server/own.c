/* Requests of the gateway's own to servers of either era, and its own sessions. */
#include "own.h"

#include <stdlib.h>
#include <string.h>

#include "call/headers.h"
#include "call/request_parts.h"
#include "state/tool_catalog.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/capabilities.h"
#include "taskgate/mcp/modern_text.h"
#include "taskgate/mcp/parameter_headers.h"

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
    OWNED char *version = json_string_text(json_member(result, "protocolVersion"), NULL);
    struct str session = headers_find(reply->headers, "mcp-session-id");
    if (session.length > 0)
        headers_set(headers, STR("mcp-session-id"), session);
    if (version)
        headers_set(headers, STR("mcp-protocol-version"), str_from(version));
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
    OWNED_BUFFER(text);
    buffer_append_format(&text, "%s\n", source->url);
    for (size_t i = 0; i < source->header_count; i++)
        buffer_append_format(&text, "%s:%s\n", source->headers[i].name, source->headers[i].value);
    digest_sha256_hex(buffer_str(&text), digest);
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
    OWNED_BUFFER(params);
    buffer_append_char(&params, '{');
    if (members.length > 0) {
        buffer_append(&params, members);
        buffer_append_char(&params, ',');
    }
    buffer_append_text(&params, META "}");
    exchange_write_request(body, id, method, buffer_str(&params));
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
    buffer_append_format(meta, "%s\"io.modelcontextprotocol/%s\":", meta->length > 0 ? "," : "",
                         key);
    buffer_append(meta, value);
}

void client_request_write(const struct client_request *request, struct headers *headers,
                          struct buffer *body, struct buffer *id)
{
    OWNED_BUFFER(meta);
    OWNED_BUFFER(params);
    OWNED_ENVELOPE(kept);
    envelope_read(&kept, request->kept, NULL);
    append_member(&meta, "protocolVersion", kept.reserved.version);
    append_member(&meta, "clientInfo", kept.reserved.client_info);
    append_member(&meta, "clientCapabilities", kept.reserved.client_capabilities);
    buffer_append_format(&params, "{%.*s,\"_meta\":{", STR_ARGS(request->members));
    buffer_append(&params, buffer_str(&meta));
    buffer_append_text(&params, "}}");
    exchange_write_request(body, id, request->method, buffer_str(&params));
    mirrored_headers_set(headers, request->method, request->name);
}

/* ---- a request of a client of the other era, as this one has it ---- */

void client_request_declared(const struct call *call, struct modern_envelope *envelope)
{
    static const char *const keys[] = {"capabilities", "clientInfo", "logLevel"};
    struct str values[3];
    json_members(buffer_str(&call->declared), keys, 3, values);
    *envelope = (struct modern_envelope){
        .capabilities = values[0].length > 0 ? values[0] : STR("{}"),
        .info = values[1],
        .log_level = values[2],
    };
}

/* The server may make a task of a call whose client has asked for one: never of a plain call, whose
 * client could not follow it. */
static bool may_become_task(const struct call *call)
{
    return call->method && call->method->treatment == MCP_TOOLS_CALL &&
           call->envelope.task.raw.length > 0 && call->facts.server.has_tasks;
}

static void write_params(const struct call *call, struct str params, struct buffer *out)
{
    struct modern_envelope envelope;
    OWNED_BUFFER(with_tasks);
    client_request_declared(call, &envelope);
    if (may_become_task(call)) {
        modern_text_write_with_tasks(&with_tasks, envelope.capabilities);
        envelope.capabilities = buffer_str(&with_tasks);
    }
    modern_text_write_params(out, params, &envelope);
    buffer_finish(&with_tasks);
}

/* ---- headers ---- */

static struct str mirrored_name_of(const struct call *call, const struct mcp_method *method)
{
    switch (method->mirrored) {
    case MCP_MIRRORED_NAME:
        return call->envelope.name.text;
    case MCP_MIRRORED_URI:
        return call->envelope.uri.text;
    case MCP_MIRRORED_TASK_ID:
        return call->envelope.task_id.text;
    case MCP_MIRRORED_NOTHING:
        break;
    }
    return STR_EMPTY;
}

struct parameters {
    struct headers *headers;
};

static void put_parameter(void *context, struct str name, struct str value)
{
    const struct parameters *parameters = context;
    OWNED char *header = memory_format(PARAMETER_HEADER_PREFIX "%.*s", STR_ARGS(name));
    headers_add(parameters->headers, str_from(header), value);
}

/* By the definition of the tool that the owner was shown. */
static void add_parameters(struct catalog *catalog, const char *source, struct str owner,
                           const struct envelope *envelope, struct headers *headers)
{
    if (!known_tools_have_parameters())
        return;
    struct known_tool *held =
        catalog_hold_parameters(catalog, str_from(source), owner, envelope->name.text);
    if (!held)
        return;
    parameter_headers_write(catalog_parameters(held), envelope->arguments.raw, put_parameter,
                            &(struct parameters){headers});
    catalog_release_parameters(catalog, held);
}

/* ---- requests ---- */

void client_request_write_call(const struct call *call, struct headers *headers,
                               struct buffer *body, struct buffer *id)
{
    const struct mcp_method *modern = mcp_method_find(call->envelope.method, MCP_ERA_MODERN);
    OWNED char *method = memory_copy_str(call->envelope.method);
    OWNED_BUFFER(params);
    write_params(call, call->envelope.params, &params);
    exchange_write_request(body, id, method, buffer_str(&params));
    headers_from_call(headers, call);
    mirrored_headers_set(headers, method, mirrored_name_of(call, modern));
    if (modern->treatment == MCP_TOOLS_CALL)
        add_parameters(call->worker->gateway->catalog, call->source->id, str_from(call->owner),
                       &call->envelope, headers);
}

void client_request_write_own(const struct call *call, const char *method, struct str members,
                              struct headers *headers, struct buffer *body, struct buffer *id)
{
    OWNED_BUFFER(params);
    write_params(call, members, &params);
    exchange_write_request(body, id, method, buffer_str(&params));
    headers_from_call(headers, call);
    mirrored_headers_set(headers, method, STR_EMPTY);
}

void client_request_digest(const struct call *call, char digest[DIGEST_HEX_BYTES])
{
    OWNED_ENVELOPE(envelope);
    OWNED_HEADERS(headers, true);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    client_request_write_call(call, &headers, &body, &id);
    envelope_read(&envelope, buffer_str(&body), NULL);
    request_parts_digest(&envelope, digest);
}

static void own_keep(struct task *task, const struct headers *headers, struct str body)
{
    OWNED_BUFFER(lines);
    OWNED_ENVELOPE(envelope);
    mirrored_headers_write_made(headers, &lines);
    task_set_request(task, body);
    envelope_read(&envelope, body, NULL);
    request_parts_bind(task, &envelope);
    task_set_text(&task->mirrored_headers, buffer_str(&lines));
}

void client_request_keep(const struct call *call, struct task *task)
{
    OWNED_HEADERS(headers, true);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    client_request_write_call(call, &headers, &body, &id);
    own_keep(task, &headers, buffer_str(&body));
}

/* The gateway follows the tasks of servers, and can be asked nothing. */
void client_request_keep_own(struct catalog *catalog, const struct config_source *source,
                             const struct envelope *envelope, struct task *task)
{
    OWNED_BUFFER(capabilities);
    OWNED_BUFFER(params);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    OWNED_HEADERS(headers, true);
    modern_text_write_with_tasks(&capabilities, STR("{}"));
    const struct modern_envelope declared = {
        .capabilities = buffer_str(&capabilities),
        .info = STR("{\"name\":\"taskgate\",\"version\":\"" TASKGATE_VERSION "\"}")};
    modern_text_write_params(&params, envelope->params, &declared);
    exchange_write_request(&body, &id, "tools/call", buffer_str(&params));
    mirrored_headers_set(&headers, "tools/call", envelope->name.text);
    add_parameters(catalog, source->id, CATALOG_GATEWAY, envelope, &headers);
    own_keep(task, &headers, buffer_str(&body));
}
