/* Texts in the words of the legacy era. */
#include "taskgate/mcp/legacy_text.h"

#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/parameter_headers.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const legacy_versions[] = {"2024-11-05", "2025-03-26", "2025-06-18",
                                              MCP_VERSION_LEGACY};

/* ---- the handshake ---- */

/* Begins an object with the members of `object` but these and the tasks extension, which means
 * nothing in this era. */
static void begin_capabilities(struct buffer *out, struct str object, const char *const *others,
                               size_t count)
{
    OWNED_BUFFER(rest);
    json_write_other_members(&rest, object, others, count);
    buffer_append(out, str_slice(rest.bytes, rest.length - 1)); /* without the brace */
    mcp_add_other_extensions(out, json_member(object, "extensions"));
}

void legacy_text_write_initialize(struct buffer *out, struct str capabilities,
                                  struct str client_info)
{
    static const char *const others[] = {"extensions", "tasks"};
    buffer_append_text(out, "{\"protocolVersion\":\"" MCP_VERSION_LEGACY "\",\"capabilities\":");
    begin_capabilities(out, capabilities, others, COUNT(others));
    buffer_append_char(out, '}');
    json_add_value(out, "clientInfo",
                   json_type(client_info) == JSON_OBJECT
                       ? client_info
                       : STR("{\"name\":\"unnamed\",\"version\":\"0\"}"));
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
static void legacy_text_write_server_capabilities(struct buffer *out, struct str offered)
{
    static const char *const others[] = {"extensions", "tasks", "notifications"};
    begin_capabilities(out, offered, others, COUNT(others));
    if (has_tasks(offered)) {
        json_add_value(out, "tasks",
                       STR("{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}"));
        json_add_value(out, "notifications", STR("{\"tasks\":{\"status\":{}}}"));
    }
    buffer_append_char(out, '}');
}

void legacy_text_write_initialized(struct buffer *out, struct str discovered, struct str asked,
                                   const char *name)
{
    struct str info = json_path(discovered, "_meta", MCP_RESERVED "serverInfo");
    struct str instructions = json_member(discovered, "instructions");
    bool has_name = json_type(json_member(info, "name")) == JSON_STRING &&
                    json_type(json_member(info, "version")) == JSON_STRING;
    buffer_append_char(out, '{');
    json_add_value(out, "protocolVersion", negotiated(asked));
    json_add_key(out, "capabilities");
    legacy_text_write_server_capabilities(out, json_member(discovered, "capabilities"));
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
        json_add_value(out, "instructions", instructions);
    buffer_append_char(out, '}');
}

/* ---- results ---- */

void legacy_text_write_result(struct buffer *out, struct str result)
{
    static const char *const modern[] = {"resultType", "ttlMs", "cacheScope", "_meta"};
    struct str meta = json_member(result, "_meta");
    OWNED_BUFFER(rest);
    OWNED_BUFFER(left);
    json_write_other_members(&rest, result, modern, COUNT(modern));
    json_write_members_outside(&left, meta, STR(MCP_RESERVED));
    if (meta.length == 0 || json_count(buffer_str(&left)) == 0)
        buffer_append(out, buffer_str(&rest));
    else
        json_write_with_member(out, buffer_str(&rest), "_meta", buffer_str(&left));
}

bool legacy_text_wraps(struct str output_schema)
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
            json_add_value(out, of_root[i], value);
    }
    buffer_append_char(out, '}');
}

static void legacy_text_write_tool(struct buffer *out, struct str tool)
{
    struct str schema = json_member(tool, "outputSchema");
    OWNED_BUFFER(wrapped);
    if (!legacy_text_wraps(schema)) {
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

void legacy_text_write_tools(struct buffer *out, struct str result)
{
    struct str tools = json_member(result, "tools"), tool;
    OWNED_BUFFER(list);
    OWNED_BUFFER(changed);
    if (json_type(tools) != JSON_ARRAY) {
        legacy_text_write_result(out, result);
        return;
    }
    buffer_append_char(&list, '[');
    for (size_t position = 0; json_next_element(tools, &position, &tool);) {
        if (!has_good_headers(tool))
            continue;
        if (list.length > 1)
            buffer_append_char(&list, ',');
        legacy_text_write_tool(&list, tool);
    }
    buffer_append_char(&list, ']');
    json_write_with_member(&changed, result, "tools", buffer_str(&list));
    legacy_text_write_result(out, buffer_str(&changed));
}

void legacy_text_write_call_result(struct buffer *out, struct str result, bool is_wrapped)
{
    struct str content = json_member(result, "structuredContent");
    OWNED_BUFFER(plain);
    OWNED_BUFFER(wrapped);
    if (content.length == 0 || (!is_wrapped && json_type(content) == JSON_OBJECT)) {
        legacy_text_write_result(out, result);
        return;
    }
    legacy_text_write_result(&plain, result);
    buffer_append_text(&wrapped, "{\"result\":");
    buffer_append(&wrapped, content);
    buffer_append_char(&wrapped, '}');
    json_write_with_member(out, buffer_str(&plain), "structuredContent", buffer_str(&wrapped));
}

/* ---- requests ---- */

void legacy_text_write_request(struct buffer *out, const struct envelope *envelope, struct str id)
{
    static const char *const left_out[] = {"task", "requestState", "inputResponses"};
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(out, id);
    buffer_append_text(out, ",\"method\":");
    buffer_append_json_string(out, envelope->method);
    buffer_append_text(out, ",\"params\":");
    mcp_write_bare_params(out, envelope->params, left_out, COUNT(left_out));
    buffer_append_char(out, '}');
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

void legacy_text_write_question(struct buffer *out, struct str id, struct str request)
{
    buffer_append_format(out, "{\"jsonrpc\":\"2.0\",\"id\":\"%.*s\",\"method\":%.*s,\"params\":",
                         STR_ARGS(id), STR_ARGS(json_member(request, "method")));
    write_request_params(out, json_member(request, "params"));
    buffer_append_char(out, '}');
}
