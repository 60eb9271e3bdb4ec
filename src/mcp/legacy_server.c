/* Requests and results between a modern client and a legacy server. */
#include "taskgate/mcp/legacy_server.h"

#include <string.h>

#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/version.h"

#define RESERVED STR("io.modelcontextprotocol/")
#define URLS_REQUIRED STR("-32042")

/* ---- up ---- */

/* Appends a member to an object that is being written; `before` is '{' for the first one. */
static void legacy_server_append_member(struct buffer *out, char *before, struct str key,
                                        struct str value)
{
    buffer_append_char(out, *before);
    *before = ',';
    buffer_append_char(out, '"');
    buffer_append(out, key);
    buffer_append_text(out, "\":");
    buffer_append(out, value);
}

static void end_object(struct buffer *out, char before)
{
    buffer_append_text(out, before == '{' ? "{}" : "}");
}

/* SEP-1686 tasks are not the extension, and the extension means nothing in this era. */
static void legacy_server_write_capabilities(struct buffer *out, struct str declared)
{
    OWNED_BUFFER(extensions);
    OWNED_BUFFER(without);
    struct str present = json_member(declared, "extensions");
    json_write_without_member(&without, declared, "tasks");
    json_write_without_member(&extensions, present, MODERN_TASKS_EXTENSION);
    if (json_type(present) == JSON_OBJECT && json_count(buffer_str(&extensions)) > 0)
        json_write_with_member(out, buffer_str(&without), "extensions", buffer_str(&extensions));
    else
        json_write_without_member(out, buffer_str(&without), "extensions");
}

void legacy_server_write_initialize(struct buffer *out, struct str capabilities,
                                    struct str client_info)
{
    buffer_append_text(out, "{\"protocolVersion\":\"" MCP_VERSION_LEGACY "\",\"capabilities\":");
    legacy_server_write_capabilities(out, capabilities);
    buffer_append_text(out, ",\"clientInfo\":");
    if (json_type(client_info) == JSON_OBJECT)
        buffer_append(out, client_info);
    else
        buffer_append_text(out, "{\"name\":\"unnamed\",\"version\":\"0\"}");
    buffer_append_char(out, '}');
}

/* `_meta` without the reserved keys. false: nothing is left, and nothing is written. */
static bool legacy_server_write_meta(struct buffer *out, struct str meta)
{
    OWNED_BUFFER(left);
    json_write_members_outside(&left, meta, RESERVED);
    bool has_any = left.length > strlen("{}");
    if (has_any)
        buffer_append(out, buffer_str(&left));
    return has_any;
}

/* Params without these members, and with the rest of `_meta`. Keys count as they are decoded. */
static void legacy_server_write_params(struct buffer *out, struct str params,
                                       const char *const *left_out, size_t count)
{
    OWNED_BUFFER(rest);
    OWNED_BUFFER(meta);
    json_write_other_members(&rest, params, left_out, count);
    if (legacy_server_write_meta(&meta, json_member(params, "_meta")))
        json_write_with_member(out, buffer_str(&rest), "_meta", buffer_str(&meta));
    else
        json_write_without_member(out, buffer_str(&rest), "_meta");
}

void legacy_server_write_request(struct buffer *out, const struct envelope *envelope, struct str id)
{
    static const char *const left_out[] = {"task", "requestState", "inputResponses"};
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",\"id\":");
    buffer_append(out, id);
    buffer_append_text(out, ",\"method\":");
    buffer_append_json_string(out, envelope->method);
    buffer_append_text(out, ",\"params\":");
    legacy_server_write_params(out, envelope->params, left_out, sizeof left_out / sizeof *left_out);
    buffer_append_char(out, '}');
}

/* Params without the members that the modern form does not have: a task of the server's, its
 * reserved keys, and the id of a URL's completion, of which nobody would hear. */
static void write_question_params(struct buffer *out, struct str params)
{
    static const char *const left_out[] = {"task", "elicitationId"};
    legacy_server_write_params(out, params, left_out, sizeof left_out / sizeof *left_out);
}

void legacy_server_write_question(struct buffer *out, struct str message)
{
    struct str params = json_member(message, "params");
    buffer_append_text(out, "{\"method\":");
    buffer_append(out, json_member(message, "method"));
    if (json_type(params) == JSON_OBJECT) {
        buffer_append_text(out, ",\"params\":");
        write_question_params(out, params);
    }
    buffer_append_char(out, '}');
}

/* ---- down ---- */

/* A server capability without what it says of notifications. */
static void append_quiet(struct buffer *out, char *before, struct str key, struct str value)
{
    OWNED_BUFFER(without);
    OWNED_BUFFER(quiet);
    json_write_without_member(&without, value, "listChanged");
    json_write_without_member(&quiet, buffer_str(&without), "subscribe");
    legacy_server_append_member(out, before, key, buffer_str(&quiet));
}

/* Listeners also hear of a changed configuration, whatever the server notifies. */
static void append_loud(struct buffer *out, char *before, struct str key, struct str value)
{
    struct buffer loud = {0};
    json_write_with_member(&loud, value, "listChanged", STR("true"));
    legacy_server_append_member(out, before, key, buffer_str(&loud));
    buffer_finish(&loud);
}

static void write_extensions(struct buffer *out, char *before, struct str present)
{
    OWNED_BUFFER(extensions);
    json_write_with_member(&extensions, present, MODERN_TASKS_EXTENSION, STR("{}"));
    legacy_server_append_member(out, before, STR("extensions"), buffer_str(&extensions));
}

static void legacy_server_write_server_capabilities(struct buffer *out, struct str present,
                                                    bool can_listen)
{
    struct str key, value;
    size_t position = 0;
    char before = '{';
    while (json_next_member(present, &position, &key, &value)) {
        if (str_equal(key, STR("tasks")) || str_equal(key, STR("extensions")))
            continue;
        if (str_equal(key, STR("tools")) && json_type(value) == JSON_OBJECT)
            append_loud(out, &before, key, value);
        else if (can_listen || json_type(value) != JSON_OBJECT)
            legacy_server_append_member(out, &before, key, value);
        else
            append_quiet(out, &before, key, value);
    }
    write_extensions(out, &before, json_member(present, "extensions"));
    end_object(out, before);
}

static void append_server_info(struct buffer *out, struct str server_info)
{
    buffer_append_text(out, "\"io.modelcontextprotocol/serverInfo\":");
    buffer_append(out, server_info);
}

void legacy_server_write_discover(struct buffer *out, struct str initialized, bool can_listen)
{
    struct str instructions = json_member(initialized, "instructions");
    struct str server_info = json_member(initialized, "serverInfo");
    buffer_append_text(out, "{\"resultType\":\"complete\",\"supportedVersions\":"
                            "[\"" MCP_VERSION_MODERN "\"],\"capabilities\":");
    legacy_server_write_server_capabilities(out, json_member(initialized, "capabilities"),
                                            can_listen);
    if (json_type(instructions) == JSON_STRING) {
        buffer_append_text(out, ",\"instructions\":");
        buffer_append(out, instructions);
    }
    buffer_append_text(out, ",\"ttlMs\":0,\"cacheScope\":\"private\"");
    if (json_type(server_info) == JSON_OBJECT) {
        buffer_append_text(out, ",\"_meta\":{");
        append_server_info(out, server_info);
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, '}');
}

static void append_result_meta(struct buffer *out, struct str meta, struct str server_info)
{
    struct buffer others;
    buffer_init(&others);
    bool has_others = json_type(meta) == JSON_OBJECT && legacy_server_write_meta(&others, meta);
    bool has_info = json_type(server_info) == JSON_OBJECT;
    if (has_others || has_info)
        buffer_append_text(out, ",\"_meta\":");
    if (has_others && has_info) {
        buffer_append(out, str_slice(others.bytes, others.length - 1));
        buffer_append_char(out, ',');
        append_server_info(out, server_info);
        buffer_append_char(out, '}');
    } else if (has_others) {
        buffer_append(out, buffer_str(&others));
    } else if (has_info) {
        buffer_append_char(out, '{');
        append_server_info(out, server_info);
        buffer_append_char(out, '}');
    }
    buffer_finish(&others);
}

bool legacy_server_write_result(struct buffer *out, struct str result, bool is_cacheable,
                                struct str server_info)
{
    static const char *const made[] = {"resultType", "_meta", "ttlMs", "cacheScope"};
    OWNED_BUFFER(others);
    if (json_type(result) != JSON_OBJECT)
        return false;
    json_write_other_members(&others, result, made, is_cacheable ? 4 : 2);
    buffer_append(out, str_slice(others.bytes, others.length - 1));
    buffer_append_text(out, others.length > 2 ? ",\"resultType\":\"complete\""
                                              : "\"resultType\":\"complete\"");
    if (is_cacheable)
        buffer_append_text(out, ",\"ttlMs\":0,\"cacheScope\":\"private\"");
    append_result_meta(out, json_member(result, "_meta"), server_info);
    buffer_append_char(out, '}');
    return true;
}

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

void legacy_server_write_error(struct buffer *out, struct str error, bool is_read)
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

bool legacy_server_write_urls(struct buffer *out, struct str error)
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

/* ---- notifications ---- */

void legacy_server_write_notification(struct buffer *out, struct str message)
{
    struct str params = json_member(message, "params");
    OWNED_BUFFER(changed);
    if (json_member(params, "_meta").length == 0) {
        buffer_append(out, message);
        return;
    }
    legacy_server_write_params(&changed, params, NULL, 0);
    json_write_with_member(out, message, "params", buffer_str(&changed));
}

int legacy_server_level(struct str level)
{
    static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (json_string_equals(level, str_from(levels[i])))
            return (int)i;
    }
    return -1;
}
