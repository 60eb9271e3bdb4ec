/* Texts in the words of the modern era. */
#include "taskgate/mcp/modern_text.h"

#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/era.h"

#define KEY(name) MCP_RESERVED name
#define URLS_REQUIRED STR("-32042")
#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_empty_object(struct str value)
{
    return json_type(value) == JSON_OBJECT && json_count(value) == 0;
}

/* ---- requests ---- */

void modern_text_write_capabilities(struct buffer *out, struct str declared)
{
    static const char *const keys[] = {"elicitation", "experimental", "extensions", "roots",
                                       "sampling"};
    struct str values[COUNT(keys)];
    json_members(declared, keys, COUNT(keys), values);
    buffer_append_char(out, '{');
    if (json_type(values[0]) == JSON_OBJECT)
        json_add_value(out, keys[0], is_empty_object(values[0]) ? STR("{\"form\":{}}") : values[0]);
    if (json_type(values[1]) == JSON_OBJECT)
        json_add_value(out, keys[1], values[1]);
    mcp_add_other_extensions(out, values[2]);
    if (json_type(values[3]) == JSON_OBJECT)
        json_add_value(out, keys[3], STR("{}")); /* there is no listChanged any more */
    if (json_type(values[4]) == JSON_OBJECT)
        json_add_value(out, keys[4], values[4]);
    buffer_append_char(out, '}');
}

static void modern_text_write_meta(struct buffer *out, struct str meta,
                                   const struct modern_envelope *envelope)
{
    OWNED_BUFFER(own);
    json_write_members_outside(&own, meta, STR(MCP_RESERVED));
    buffer_append(out, str_slice(own.bytes, own.length - 1)); /* without the brace */
    json_add_value(out, KEY("protocolVersion"), STR("\"" MCP_VERSION_MODERN "\""));
    json_add_value(out, KEY("clientCapabilities"), envelope->capabilities);
    if (json_type(envelope->info) == JSON_OBJECT)
        json_add_value(out, KEY("clientInfo"), envelope->info);
    if (envelope->log_level.length > 0)
        json_add_value(out, KEY("logLevel"), envelope->log_level);
    buffer_append_char(out, '}');
}

/* `task` asks the gateway for one; the others would answer what this client was never asked. */
void modern_text_write_params(struct buffer *out, struct str params,
                              const struct modern_envelope *envelope)
{
    static const char *const others[] = {"_meta", "task", "inputResponses", "requestState"};
    OWNED_BUFFER(own);
    OWNED_BUFFER(meta);
    json_write_other_members(&own, params, others, COUNT(others));
    modern_text_write_meta(&meta, json_member(params, "_meta"), envelope);
    buffer_append(out, str_slice(own.bytes, own.length - 1)); /* without the brace */
    json_add_value(out, "_meta", buffer_str(&meta));
    buffer_append_char(out, '}');
}

void modern_text_write_with_tasks(struct buffer *out, struct str capabilities)
{
    json_write_with_inner(out, capabilities, "extensions", MODERN_TASKS_EXTENSION, STR("{}"));
}

/* ---- questions ---- */

/* Params without the members that the modern form does not have: a task of the server's, its
 * reserved keys, and the id of a URL's completion, for which nobody waits. */
static void write_question_params(struct buffer *out, struct str params)
{
    static const char *const left_out[] = {"task", "elicitationId"};
    mcp_write_bare_params(out, params, left_out, COUNT(left_out));
}

void modern_text_write_question(struct buffer *out, struct str message)
{
    struct str params = json_member(message, "params");
    buffer_append_char(out, '{');
    json_add_value(out, "method", json_member(message, "method"));
    if (json_type(params) == JSON_OBJECT) {
        json_add_key(out, "params");
        write_question_params(out, params);
    }
    buffer_append_char(out, '}');
}

bool modern_text_write_urls(struct buffer *out, struct str error)
{
    struct str elicitations = json_path(error, "data", "elicitations"), one;
    unsigned number = 0;
    if (!str_equal(json_member(error, "code"), URLS_REQUIRED) || json_count(elicitations) == 0)
        return false;
    for (size_t position = 0; json_next_element(elicitations, &position, &one);) {
        buffer_append_format(out, "%s\"r0.%u\":{\"method\":\"elicitation/create\",\"params\":",
                             number == 0 ? "{" : ",", number + 1);
        write_question_params(out, one);
        buffer_append_char(out, '}');
        number++;
    }
    buffer_append_char(out, '}');
    return true;
}

/* ---- results ---- */

/* A server capability as it is announced: listeners are notified of a changed configuration,
 * whatever the server does; of all else they are notified only where the gateway can listen. */
static void add_capability(struct buffer *out, struct str key, struct str value, bool can_listen)
{
    static const char *const of_notifications[] = {"listChanged", "subscribe"};
    OWNED_BUFFER(name);
    OWNED_BUFFER(announced);
    buffer_append(&name, key);
    buffer_append_char(&name, '\0');
    bool is_object = json_type(value) == JSON_OBJECT;
    if (is_object && str_equal(key, STR("tools")))
        json_write_with_member(&announced, value, "listChanged", STR("true"));
    else if (is_object && !can_listen)
        json_write_other_members(&announced, value, of_notifications, COUNT(of_notifications));
    else
        buffer_append(&announced, value);
    json_add_value(out, name.bytes, buffer_str(&announced));
}

static void modern_text_write_server_capabilities(struct buffer *out, struct str present,
                                                  bool can_listen)
{
    struct str key, value;
    OWNED_BUFFER(extensions);
    buffer_append_char(out, '{');
    for (size_t position = 0; json_next_member(present, &position, &key, &value);) {
        if (!str_equal(key, STR("tasks")) && !str_equal(key, STR("extensions")))
            add_capability(out, key, value, can_listen);
    }
    json_write_with_member(&extensions, json_member(present, "extensions"), MODERN_TASKS_EXTENSION,
                           STR("{}"));
    json_add_value(out, "extensions", buffer_str(&extensions));
    buffer_append_char(out, '}');
}

static void add_cacheable(struct buffer *out)
{
    json_add_value(out, "ttlMs", STR("0"));
    json_add_value(out, "cacheScope", STR("\"private\""));
}

/* `meta` without the reserved keys, but with the server's name if there is one. */
static void add_result_meta(struct buffer *out, struct str meta, struct str server_info)
{
    OWNED_BUFFER(own);
    OWNED_BUFFER(whole);
    json_write_members_outside(&own, meta, STR(MCP_RESERVED));
    buffer_append(&whole, str_slice(own.bytes, own.length - 1)); /* without the brace */
    if (json_type(server_info) == JSON_OBJECT)
        json_add_value(&whole, KEY("serverInfo"), server_info);
    buffer_append_char(&whole, '}');
    if (json_count(buffer_str(&whole)) > 0)
        json_add_value(out, "_meta", buffer_str(&whole));
}

void modern_text_write_discover(struct buffer *out, struct str initialized, bool can_listen)
{
    struct str instructions = json_member(initialized, "instructions");
    buffer_append_text(out, "{\"resultType\":\"complete\",\"supportedVersions\":"
                            "[\"" MCP_VERSION_MODERN "\"],\"capabilities\":");
    modern_text_write_server_capabilities(out, json_member(initialized, "capabilities"),
                                          can_listen);
    if (json_type(instructions) == JSON_STRING)
        json_add_value(out, "instructions", instructions);
    add_cacheable(out);
    add_result_meta(out, STR_EMPTY, json_member(initialized, "serverInfo"));
    buffer_append_char(out, '}');
}

bool modern_text_write_result(struct buffer *out, struct str result, bool is_cacheable,
                              struct str server_info)
{
    static const char *const made[] = {"resultType", "_meta", "ttlMs", "cacheScope"};
    OWNED_BUFFER(others);
    if (json_type(result) != JSON_OBJECT)
        return false;
    json_write_other_members(&others, result, made, is_cacheable ? COUNT(made) : 2);
    buffer_append(out, str_slice(others.bytes, others.length - 1)); /* without the brace */
    json_add_value(out, "resultType", STR("\"complete\""));
    if (is_cacheable)
        add_cacheable(out);
    add_result_meta(out, json_member(result, "_meta"), server_info);
    buffer_append_char(out, '}');
    return true;
}

/* ---- errors ---- */

/* -32002 and the codes that the modern specification has taken for itself. */
static bool means_something_else(struct str code)
{
    uint64_t number;
    if (!str_starts_with(code, STR("-")) ||
        !str_to_u64(str_slice(code.bytes + 1, code.length - 1), &number))
        return false;
    return number == 32002 || (number >= 32020 && number <= 32099);
}

static void write_error_urls(struct buffer *out, struct str error)
{
    struct str elicitations = json_path(error, "data", "elicitations"), one;
    OWNED_BUFFER(message);
    buffer_append_text(&message, "The call requires that these URLs are opened:");
    for (size_t position = 0; json_next_element(elicitations, &position, &one);) {
        buffer_append_char(&message, ' ');
        json_decode_string(json_member(one, "url"), &message);
    }
    buffer_append_text(out, "{\"code\":-32602,\"message\":");
    buffer_append_json_string(out, buffer_str(&message));
    buffer_append_char(out, '}');
}

void modern_text_write_error(struct buffer *out, struct str error, bool is_read)
{
    struct str code = json_member(error, "code");
    if (str_equal(code, STR("-32002")) && is_read) {
        json_write_with_member(out, error, "code", STR("-32602"));
    } else if (str_equal(code, URLS_REQUIRED)) {
        write_error_urls(out, error);
    } else if (means_something_else(code)) {
        buffer_append_text(out, "{\"code\":-32603,\"message\":");
        buffer_append(out, json_type(json_member(error, "message")) == JSON_STRING
                               ? json_member(error, "message")
                               : STR("\"Internal error\""));
        buffer_append_text(out, ",\"data\":{\"original\":");
        buffer_append(out, error);
        buffer_append_text(out, "}}");
    } else {
        buffer_append(out, error);
    }
}
