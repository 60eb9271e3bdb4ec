/* Between a legacy client and a modern server. */
#include "taskgate/mcp/legacy_bridge.h"

#include <string.h>

#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect_modern.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/parameter_headers.h"

#define RESERVED "io.modelcontextprotocol/"
#define KEY(name) RESERVED name
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const legacy_versions[] = {"2024-11-05", "2025-03-26", "2025-06-18",
                                              MCP_VERSION_LEGACY};

static bool is_empty_object(struct str value)
{
    return json_type(value) == JSON_OBJECT && json_count(value) == 0;
}

static void legacy_bridge_add_value(struct buffer *out, const char *key, struct str value)
{
    json_add_key(out, key);
    buffer_append(out, value);
}

/* Adds `value` without the tasks extension, unless nothing is left. */
static void add_extensions(struct buffer *out, struct str value)
{
    static const char *const tasks[] = {MODERN_TASKS_EXTENSION};
    OWNED_BUFFER(left);
    if (json_type(value) != JSON_OBJECT)
        return;
    json_write_other_members(&left, value, tasks, 1);
    if (!is_empty_object(buffer_str(&left)))
        legacy_bridge_add_value(out, "extensions", buffer_str(&left));
}

/* ---- the handshake ---- */

void legacy_bridge_write_capabilities(struct buffer *out, struct str declared)
{
    static const char *const keys[] = {"elicitation", "experimental", "extensions", "roots",
                                       "sampling"};
    struct str values[COUNT(keys)];
    json_members(declared, keys, COUNT(keys), values);
    buffer_append_char(out, '{');
    if (json_type(values[0]) == JSON_OBJECT)
        legacy_bridge_add_value(out, keys[0],
                                is_empty_object(values[0]) ? STR("{\"form\":{}}") : values[0]);
    if (json_type(values[1]) == JSON_OBJECT)
        legacy_bridge_add_value(out, keys[1], values[1]);
    add_extensions(out, values[2]);
    if (json_type(values[3]) == JSON_OBJECT)
        legacy_bridge_add_value(out, keys[3], STR("{}")); /* there is no listChanged any more */
    if (json_type(values[4]) == JSON_OBJECT)
        legacy_bridge_add_value(out, keys[4], values[4]);
    buffer_append_char(out, '}');
}

static struct str negotiated(struct str asked)
{
    for (size_t i = 0; i < COUNT(legacy_versions); i++) {
        if (json_string_equals(asked, str_from(legacy_versions[i])))
            return asked;
    }
    return STR("\"" MCP_VERSION_LEGACY "\"");
}

static bool has_tasks(struct str capabilities)
{
    return json_type(json_path(capabilities, "extensions", MODERN_TASKS_EXTENSION)) == JSON_OBJECT;
}

/* The extension is what the legacy era calls tasks: the server makes one of a call if it likes, and
 * its states are sent on the gateway's stream. */
static void legacy_bridge_write_server_capabilities(struct buffer *out, struct str offered)
{
    static const char *const others[] = {"extensions", "tasks", "notifications"};
    OWNED_BUFFER(rest);
    json_write_other_members(&rest, offered, others, COUNT(others));
    buffer_append(out, str_slice(rest.bytes, rest.length - 1)); /* without the brace */
    add_extensions(out, json_member(offered, "extensions"));
    if (has_tasks(offered))
        legacy_bridge_add_value(
            out, "tasks",
            STR("{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}"));
    if (has_tasks(offered))
        legacy_bridge_add_value(out, "notifications", STR("{\"tasks\":{\"status\":{}}}"));
    buffer_append_char(out, '}');
}

void legacy_bridge_write_initialize(struct buffer *out, struct str discovered, struct str asked,
                                    const char *name)
{
    struct str info = json_path(discovered, "_meta", KEY("serverInfo"));
    struct str instructions = json_member(discovered, "instructions");
    bool has_name = json_type(json_member(info, "name")) == JSON_STRING &&
                    json_type(json_member(info, "version")) == JSON_STRING;
    buffer_append_char(out, '{');
    legacy_bridge_add_value(out, "protocolVersion", negotiated(asked));
    json_add_key(out, "capabilities");
    legacy_bridge_write_server_capabilities(out, json_member(discovered, "capabilities"));
    json_add_key(out, "serverInfo");
    if (has_name) {
        buffer_append(out, info);
    } else {
        buffer_append_char(out, '{');
        json_add_text(out, "name", name);
        json_add_text(out, "version", "0");
        buffer_append_char(out, '}');
    }
    if (json_type(instructions) == JSON_STRING)
        legacy_bridge_add_value(out, "instructions", instructions);
    buffer_append_char(out, '}');
}

/* ---- results ---- */

void legacy_bridge_write_result(struct buffer *out, struct str result)
{
    static const char *const modern[] = {"resultType", "ttlMs", "cacheScope", "_meta"};
    struct str meta = json_member(result, "_meta");
    OWNED_BUFFER(rest);
    OWNED_BUFFER(left);
    json_write_other_members(&rest, result, modern, COUNT(modern));
    json_write_members_outside(&left, meta, STR(RESERVED));
    if (meta.length == 0 || is_empty_object(buffer_str(&left)))
        buffer_append(out, buffer_str(&rest));
    else
        json_write_with_member(out, buffer_str(&rest), "_meta", buffer_str(&left));
}

bool legacy_bridge_wraps(struct str output_schema)
{
    return output_schema.length > 0 &&
           !json_string_equals(json_member(output_schema, "type"), STR("object"));
}

/* References begin at the root of a schema, so definitions move there as well. */
static void write_wrapped_schema(struct buffer *out, struct str schema)
{
    static const char *const of_root[] = {"$schema", "$defs", "definitions"};
    buffer_append_text(out, "{\"type\":\"object\",\"properties\":{\"result\":");
    buffer_append(out, schema);
    buffer_append_text(out, "},\"required\":[\"result\"]");
    for (size_t i = 0; i < COUNT(of_root); i++) {
        struct str value = json_member(schema, of_root[i]);
        if (value.length > 0)
            legacy_bridge_add_value(out, of_root[i], value);
    }
    buffer_append_char(out, '}');
}

static void legacy_bridge_write_tool(struct buffer *out, struct str tool)
{
    struct str schema = json_member(tool, "outputSchema");
    OWNED_BUFFER(wrapped);
    if (!legacy_bridge_wraps(schema)) {
        buffer_append(out, tool);
        return;
    }
    write_wrapped_schema(&wrapped, schema);
    json_write_with_member(out, tool, "outputSchema", buffer_str(&wrapped));
}

static bool has_good_headers(struct str tool)
{
    struct parameter_headers *headers;
    enum parameter_headers_status status =
        parameter_headers_create(json_member(tool, "inputSchema"), &headers, NULL);
    parameter_headers_destroy(headers);
    return status != PARAMETER_HEADERS_INVALID;
}

void legacy_bridge_write_tools(struct buffer *out, struct str result)
{
    struct str tools = json_member(result, "tools"), tool;
    OWNED_BUFFER(list);
    OWNED_BUFFER(changed);
    if (json_type(tools) != JSON_ARRAY) {
        legacy_bridge_write_result(out, result);
        return;
    }
    buffer_append_char(&list, '[');
    for (size_t position = 0; json_next_element(tools, &position, &tool);) {
        if (!has_good_headers(tool))
            continue;
        if (list.length > 1)
            buffer_append_char(&list, ',');
        legacy_bridge_write_tool(&list, tool);
    }
    buffer_append_char(&list, ']');
    json_write_with_member(&changed, result, "tools", buffer_str(&list));
    legacy_bridge_write_result(out, buffer_str(&changed));
}

void legacy_bridge_write_call_result(struct buffer *out, struct str result, bool is_wrapped)
{
    struct str content = json_member(result, "structuredContent");
    OWNED_BUFFER(plain);
    OWNED_BUFFER(wrapped);
    if (content.length == 0 || (!is_wrapped && json_type(content) == JSON_OBJECT)) {
        legacy_bridge_write_result(out, result);
        return;
    }
    legacy_bridge_write_result(&plain, result);
    buffer_append_text(&wrapped, "{\"result\":");
    buffer_append(&wrapped, content);
    buffer_append_char(&wrapped, '}');
    json_write_with_member(out, buffer_str(&plain), "structuredContent", buffer_str(&wrapped));
}

/* ---- notifications ---- */

void legacy_bridge_write_notification(struct buffer *out, struct str message)
{
    struct str params = json_member(message, "params"), meta = json_member(params, "_meta");
    OWNED_BUFFER(left);
    OWNED_BUFFER(changed);
    json_write_members_outside(&left, meta, STR(RESERVED));
    if (meta.length > 0 && is_empty_object(buffer_str(&left)))
        json_write_without_member(&changed, params, "_meta");
    else if (meta.length > 0)
        json_write_with_member(&changed, params, "_meta", buffer_str(&left));
    else
        buffer_append(&changed, params);
    if (params.length > 0 && is_empty_object(buffer_str(&changed)))
        json_write_without_member(out, message, "params");
    else if (params.length > 0)
        json_write_with_member(out, message, "params", buffer_str(&changed));
    else
        buffer_append(out, message);
}

/* ---- requests ---- */

static void legacy_bridge_write_meta(struct buffer *out, struct str meta,
                                     const struct legacy_bridge_envelope *envelope)
{
    OWNED_BUFFER(own);
    json_write_members_outside(&own, meta, STR(RESERVED));
    buffer_append(out, str_slice(own.bytes, own.length - 1)); /* without the brace */
    legacy_bridge_add_value(out, KEY("protocolVersion"), STR("\"" MCP_VERSION_MODERN "\""));
    legacy_bridge_add_value(out, KEY("clientCapabilities"), envelope->capabilities);
    if (json_type(envelope->info) == JSON_OBJECT)
        legacy_bridge_add_value(out, KEY("clientInfo"), envelope->info);
    if (envelope->log_level.length > 0)
        legacy_bridge_add_value(out, KEY("logLevel"), envelope->log_level);
    buffer_append_char(out, '}');
}

/* `task` asks the gateway for one; the others would answer what this client was never asked. */
void legacy_bridge_write_params(struct buffer *out, struct str params,
                                const struct legacy_bridge_envelope *envelope)
{
    static const char *const others[] = {"_meta", "task", "inputResponses", "requestState"};
    OWNED_BUFFER(own);
    OWNED_BUFFER(meta);
    json_write_other_members(&own, params, others, COUNT(others));
    legacy_bridge_write_meta(&meta, json_member(params, "_meta"), envelope);
    buffer_append(out, str_slice(own.bytes, own.length - 1)); /* without the brace */
    legacy_bridge_add_value(out, "_meta", buffer_str(&meta));
    buffer_append_char(out, '}');
}

void legacy_bridge_write_with_tasks(struct buffer *out, struct str capabilities)
{
    OWNED_BUFFER(extensions);
    json_write_with_member(&extensions, json_member(capabilities, "extensions"),
                           MODERN_TASKS_EXTENSION, STR("{}"));
    json_write_with_member(out, capabilities, "extensions", buffer_str(&extensions));
}

static void write_request_params(struct buffer *out, struct str params)
{
    char uuid[RANDOM_UUID_BYTES];
    OWNED_BUFFER(id);
    if (!json_string_equals(json_member(params, "mode"), STR("url"))) {
        buffer_append(out, json_type(params) == JSON_OBJECT ? params : STR("{}"));
        return;
    }
    random_uuid(uuid);
    buffer_append_format(&id, "\"%s\"", uuid);
    json_write_with_member(out, params, "elicitationId", buffer_str(&id));
}

void legacy_bridge_write_request(struct buffer *out, struct str id, struct str request)
{
    buffer_append_format(out, "{\"jsonrpc\":\"2.0\",\"id\":\"%.*s\",\"method\":%.*s,\"params\":",
                         STR_ARGS(id), STR_ARGS(json_member(request, "method")));
    write_request_params(out, json_member(request, "params"));
    buffer_append_char(out, '}');
}

bool legacy_bridge_is_log_level(struct str level)
{
    static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
    for (size_t i = 0; i < COUNT(levels); i++) {
        if (json_string_equals(level, str_from(levels[i])))
            return true;
    }
    return false;
}
