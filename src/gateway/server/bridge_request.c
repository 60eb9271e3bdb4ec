/* Modern requests in the place of a legacy client's. */
#include "bridge_request.h"

#include <stdlib.h>
#include <string.h>

#include "call/headers.h"
#include "call/request_parts.h"
#include "state/tool_catalog.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/modern_text.h"
#include "taskgate/mcp/parameter_headers.h"

void bridge_request_envelope(const struct call *call, struct modern_envelope *envelope)
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

static void bridge_request_write_body(struct str method, struct str params, struct buffer *body,
                                      struct buffer *id)
{
    char uuid[RANDOM_UUID_BYTES];
    random_uuid(uuid);
    buffer_append_format(id, "\"tg:%s\"", uuid);
    buffer_append_format(body, "{\"jsonrpc\":\"2.0\",\"id\":\"tg:%s\",\"method\":", uuid);
    buffer_append_json_string(body, method);
    buffer_append_text(body, ",\"params\":");
    buffer_append(body, params);
    buffer_append_char(body, '}');
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
    struct buffer with_tasks;
    buffer_init(&with_tasks);
    bridge_request_envelope(call, &envelope);
    if (may_become_task(call)) {
        modern_text_write_with_tasks(&with_tasks, envelope.capabilities);
        envelope.capabilities = buffer_str(&with_tasks);
    }
    modern_text_write_params(out, params, &envelope);
    buffer_finish(&with_tasks);
}

/* ---- headers ---- */

static struct str bridge_request_name_of(const struct call *call, const struct mcp_method *method)
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
    char *header = memory_format(PARAMETER_HEADER_PREFIX "%.*s", STR_ARGS(name));
    headers_add(parameters->headers, str_from(header), value);
    free(header);
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

void bridge_request_write(const struct call *call, struct headers *headers, struct buffer *body,
                          struct buffer *id)
{
    const struct mcp_method *modern = mcp_method_find(call->envelope.method, MCP_ERA_MODERN);
    char *method = memory_copy_str(call->envelope.method);
    struct buffer params;
    buffer_init(&params);
    write_params(call, call->envelope.params, &params);
    bridge_request_write_body(call->envelope.method, buffer_str(&params), body, id);
    headers_from_call(headers, call);
    mirrored_headers_set(headers, method, bridge_request_name_of(call, modern));
    if (modern->treatment == MCP_TOOLS_CALL)
        add_parameters(call->worker->gateway->catalog, call->source->id, str_from(call->owner),
                       &call->envelope, headers);
    buffer_finish(&params);
    free(method);
}

void bridge_request_write_own(const struct call *call, const char *method, struct str members,
                              struct headers *headers, struct buffer *body, struct buffer *id)
{
    struct buffer params;
    buffer_init(&params);
    write_params(call, members, &params);
    bridge_request_write_body(str_from(method), buffer_str(&params), body, id);
    headers_from_call(headers, call);
    mirrored_headers_set(headers, method, STR_EMPTY);
    buffer_finish(&params);
}

static void bridge_request_bind(struct task *task, struct str body)
{
    struct envelope envelope;
    struct request_parts parts;
    envelope_read(&envelope, body, NULL);
    request_parts_read(&parts, &envelope);
    task_set_text(&task->meta, buffer_str(&parts.meta));
    task_set_text(&task->other_params, buffer_str(&parts.other_params));
    memcpy(task->request_digest, parts.digest, sizeof task->request_digest);
    request_parts_finish(&parts);
    envelope_finish(&envelope);
}

void bridge_request_digest(const struct call *call, char digest[DIGEST_HEX_BYTES])
{
    struct envelope envelope;
    struct headers headers;
    struct buffer body = {0}, id = {0};
    headers_init(&headers, true);
    bridge_request_write(call, &headers, &body, &id);
    envelope_read(&envelope, buffer_str(&body), NULL);
    request_parts_digest(&envelope, digest);
    envelope_finish(&envelope);
    buffer_finish(&id);
    buffer_finish(&body);
    headers_finish(&headers);
}

static void keep(struct task *task, const struct headers *headers, struct str body)
{
    OWNED_BUFFER(lines);
    mirrored_headers_write_made(headers, &lines);
    task_set_request(task, body);
    bridge_request_bind(task, body);
    task_set_text(&task->mirrored_headers, buffer_str(&lines));
}

void bridge_request_keep(const struct call *call, struct task *task)
{
    struct headers headers;
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    headers_init(&headers, true);
    bridge_request_write(call, &headers, &body, &id);
    keep(task, &headers, buffer_str(&body));
    headers_finish(&headers);
}

/* The gateway follows the tasks of servers, and can be asked nothing. */
void bridge_request_keep_own(struct catalog *catalog, const struct config_source *source,
                             const struct envelope *envelope, struct task *task)
{
    OWNED_BUFFER(capabilities);
    OWNED_BUFFER(params);
    OWNED_BUFFER(body);
    OWNED_BUFFER(id);
    struct headers headers;
    headers_init(&headers, true);
    modern_text_write_with_tasks(&capabilities, STR("{}"));
    const struct modern_envelope declared = {
        .capabilities = buffer_str(&capabilities),
        .info = STR("{\"name\":\"taskgate\",\"version\":\"" TASKGATE_VERSION "\"}")};
    modern_text_write_params(&params, envelope->params, &declared);
    bridge_request_write_body(envelope->method, buffer_str(&params), &body, &id);
    mirrored_headers_set(&headers, "tools/call", envelope->name.text);
    add_parameters(catalog, source->id, CATALOG_GATEWAY, envelope, &headers);
    keep(task, &headers, buffer_str(&body));
    headers_finish(&headers);
}
