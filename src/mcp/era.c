/* The era of a request, what a modern one must have, and what is the same in both. */
#include "taskgate/mcp/era.h"

#include <string.h>

#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/method.h"

bool mcp_is_version(struct str text)
{
    static const char form[] = "dddd-dd-dd";
    if (text.length != strlen(form))
        return false;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        if (form[i] == 'd' ? c < '0' || c > '9' : c != form[i])
            return false;
    }
    return true;
}

/* Anything but a date is not known to be modern. */
static bool is_modern_version(struct str version)
{
    return mcp_is_version(version) &&
           memcmp(version.bytes, MCP_VERSION_MODERN, version.length) >= 0;
}

bool mcp_era_is_modern_version(struct str json)
{
    return json_type(json) == JSON_STRING &&
           is_modern_version(str_slice(json.bytes + 1, json.length - 2));
}

enum mcp_claim mcp_era_claim(const struct envelope *envelope, struct str version)
{
    if (envelope->kind == ENVELOPE_RESPONSE)
        return MCP_CLAIM_LEGACY;
    if (envelope->reserved.version.length > 0)
        return MCP_CLAIM_MODERN;
    if (!is_modern_version(str_trim(version)))
        return MCP_CLAIM_LEGACY;
    return envelope->kind == ENVELOPE_NOTIFICATION ? MCP_CLAIM_MODERN : MCP_CLAIM_HALF;
}

static bool era_refuse(struct mcp_era_fault *fault, enum jsonrpc_error error, const char *message)
{
    *fault = (struct mcp_era_fault){.error = error, .message = message};
    return false;
}

static bool refuse_header(struct mcp_era_fault *fault, const char *header,
                          enum mirrored_verdict verdict)
{
    *fault = (struct mcp_era_fault){
        .error = JSONRPC_HEADER_MISMATCH,
        .header = header,
        .message = mirrored_verdict_text(verdict),
    };
    return false;
}

void mcp_era_refuse_half(const struct envelope *envelope, struct mcp_era_fault *fault)
{
    if (str_equal(envelope->method, STR("initialize")))
        refuse_header(fault, "MCP-Protocol-Version", MIRRORED_UNEXPECTED);
    else
        era_refuse(fault, JSONRPC_INCOMPLETE_ENVELOPE,
                   "params._meta lacks io.modelcontextprotocol/protocolVersion");
}

static const struct envelope_member *mirrored_member(const struct envelope *envelope,
                                                     const struct mcp_method *method)
{
    switch (method->mirrored) {
    case MCP_MIRRORED_NAME:
        return &envelope->name;
    case MCP_MIRRORED_URI:
        return &envelope->uri;
    case MCP_MIRRORED_TASK_ID:
        return &envelope->task_id;
    case MCP_MIRRORED_NOTHING:
        break;
    }
    return NULL;
}

/* A body without the member is the handler's to refuse, unless a header makes one up. */
static enum mirrored_verdict compare_name(const struct envelope *envelope,
                                          const struct mcp_method *method,
                                          const struct mirrored_header *header)
{
    const struct envelope_member *member = mirrored_member(envelope, method);
    if (!member)
        return header->count > 1 ? MIRRORED_REPEATED : MIRRORED_SAME;
    if (!member->text.bytes)
        return header->count > 0 ? MIRRORED_UNEXPECTED : MIRRORED_SAME;
    return mirrored_header_compare(header, member->text);
}

/* A name of the table has nothing that a header would carry otherwise: the very bytes are it. */
static enum mirrored_verdict compare_method(const struct envelope *envelope,
                                            const struct mcp_method *method,
                                            const struct mirrored_header *header)
{
    if (header->count == 1 && method->treatment != MCP_UNKNOWN &&
        str_equal(header->value, envelope->method))
        return MIRRORED_SAME;
    return mirrored_header_compare(header, envelope->method);
}

/* Nearly all write it without escapes: then the bytes between the quotes are compared. */
static bool is_version(struct str json, struct str text)
{
    return (json.length == text.length + 2 &&
            memcmp(json.bytes + 1, text.bytes, text.length) == 0) ||
           json_string_equals(json, text);
}

/* The version is in its header as it is, never encoded. */
static enum mirrored_verdict compare_version(const struct mirrored_header *header, struct str json)
{
    if (header->count > 1)
        return MIRRORED_REPEATED;
    return is_version(json, str_trim(header->value)) ? MIRRORED_SAME : MIRRORED_DIFFERENT;
}

static bool era_is_integer(struct str json)
{
    bool is_number = json_type(json) == JSON_NUMBER;
    for (size_t i = 0; is_number && i < json.length; i++)
        is_number = json.bytes[i] == '-' || (json.bytes[i] >= '0' && json.bytes[i] <= '9');
    return is_number;
}

/* The members that a client may leave out (2026-07-28 basic "_meta"): NULL, or the fault of one.
 * The gateway itself goes by these, and may be the server that answers. */
static const char *optional_fault(const struct envelope *envelope)
{
    struct str token = envelope->progress_token, level = envelope->reserved.log_level;
    struct str info = envelope->reserved.client_info;
    if (token.length > 0 && json_type(token) != JSON_STRING && !era_is_integer(token))
        return "progressToken in params._meta is neither a string nor an integer";
    if (level.length > 0 && mcp_log_level(level) < 0)
        return "io.modelcontextprotocol/logLevel in params._meta is no log level";
    if (info.length > 0 && json_type(info) != JSON_OBJECT)
        return "io.modelcontextprotocol/clientInfo in params._meta is not an object";
    return NULL;
}

bool mcp_era_check(const struct envelope *envelope, const struct mcp_mirrored_headers *headers,
                   struct mcp_era_fault *fault)
{
    struct str version = envelope->reserved.version;
    enum mirrored_verdict verdict = MIRRORED_SAME;
    if (json_type(version) != JSON_STRING)
        return era_refuse(
            fault, JSONRPC_INCOMPLETE_ENVELOPE,
            "io.modelcontextprotocol/protocolVersion in params._meta is not a string");
    if (json_type(envelope->reserved.client_capabilities) != JSON_OBJECT)
        return era_refuse(
            fault, JSONRPC_INCOMPLETE_ENVELOPE,
            "params._meta lacks an object io.modelcontextprotocol/clientCapabilities");
    if (headers->version.count > 0)
        verdict = compare_version(&headers->version, version);
    if (verdict != MIRRORED_SAME)
        return refuse_header(fault, "MCP-Protocol-Version", verdict);
    if (!is_version(version, STR(MCP_VERSION_MODERN)))
        return era_refuse(fault, JSONRPC_UNSUPPORTED_VERSION, "");
    if (headers->version.count == 0)
        return refuse_header(fault, "MCP-Protocol-Version", MIRRORED_MISSING);
    const struct mcp_method *method = mcp_method_find(envelope->method, MCP_ERA_MODERN);
    verdict = compare_method(envelope, method, &headers->method);
    if (verdict != MIRRORED_SAME)
        return refuse_header(fault, "Mcp-Method", verdict);
    verdict = compare_name(envelope, method, &headers->name);
    if (verdict != MIRRORED_SAME)
        return refuse_header(fault, "Mcp-Name", verdict);
    const char *wrong = optional_fault(envelope);
    return !wrong || era_refuse(fault, JSONRPC_INCOMPLETE_ENVELOPE, wrong);
}

void mcp_add_other_extensions(struct buffer *out, struct str extensions)
{
    static const char *const tasks[] = {MODERN_TASKS_EXTENSION};
    OWNED_BUFFER(left);
    json_write_other_members(&left, extensions, tasks, 1);
    if (json_count(buffer_str(&left)) > 0)
        json_add_value(out, "extensions", buffer_str(&left));
}

void mcp_write_bare_params(struct buffer *out, struct str params, const char *const *left_out,
                           size_t count)
{
    OWNED_BUFFER(rest);
    OWNED_BUFFER(meta);
    json_write_other_members(&rest, params, left_out, count);
    json_write_members_outside(&meta, json_member(params, "_meta"), STR(MCP_RESERVED));
    if (json_count(buffer_str(&meta)) > 0)
        json_write_with_member(out, buffer_str(&rest), "_meta", buffer_str(&meta));
    else
        json_write_without_member(out, buffer_str(&rest), "_meta");
}

void mcp_write_bare_notification(struct buffer *out, struct str message)
{
    struct str params = json_member(message, "params");
    OWNED_BUFFER(left);
    if (params.length > 0)
        mcp_write_bare_params(&left, params, NULL, 0);
    if (json_member(params, "_meta").length == 0)
        buffer_append(out, message);
    else if (json_count(buffer_str(&left)) > 0)
        json_write_with_member(out, message, "params", buffer_str(&left));
    else
        json_write_without_member(out, message, "params");
}

int mcp_log_level(struct str level)
{
    static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (json_string_equals(level, str_from(levels[i])))
            return (int)i;
    }
    return -1;
}
