/* JSON-RPC answers of the gateway's own: results, errors, and the table of errors. */
#include "taskgate/mcp/jsonrpc.h"

#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/markdown.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"

struct error_row {
    const char *symbol;
    int code;
    const char *type, *message, *when;
};

static const struct error_row errors[] = {
#define ERROR_ROW(symbol, code, type, message, when) {#symbol, code, type, message, when},
#include "taskgate/mcp/error_table.h"
#undef ERROR_ROW
};

struct str mcp_text_cut(struct str text)
{
    if (text.length <= MCP_TEXT_MAX_BYTES)
        return text;
    size_t length = MCP_TEXT_MAX_BYTES;
    /* At most three continuation bytes belong to a character; bytes that are no UTF-8 at all
     * are not worth going back further for. */
    for (int i = 0; i < 3 && ((unsigned char)text.bytes[length] & 0xC0) == 0x80; i++)
        length--;
    return str_slice(text.bytes, length);
}

int jsonrpc_error_code(enum jsonrpc_error error)
{
    ASSERT_NUMBERS(error, <, JSONRPC_ERROR_COUNT);
    return errors[error].code;
}

const char *jsonrpc_error_type(enum jsonrpc_error error)
{
    ASSERT_NUMBERS(error, <, JSONRPC_ERROR_COUNT);
    return errors[error].type;
}

const char *jsonrpc_error_message(enum jsonrpc_error error)
{
    ASSERT_NUMBERS(error, <, JSONRPC_ERROR_COUNT);
    return errors[error].message;
}

/* Counted from 1: how many errors up to this one have its type. */
static size_t ordinal_of(size_t error)
{
    size_t ordinal = 1;
    for (size_t i = 0; i < error; i++)
        ordinal += strcmp(errors[i].type, errors[error].type) == 0;
    return ordinal;
}

void jsonrpc_write_error_reference(struct buffer *out)
{
    OWNED_BUFFER(item);
    for (size_t i = 0; i < JSONRPC_ERROR_COUNT; i++) {
        size_t ordinal = ordinal_of(i);
        buffer_clear(&item);
        buffer_append_format(&item, "<a id=\"%s", errors[i].type);
        if (ordinal > 1)
            buffer_append_format(&item, "-%zu", ordinal);
        buffer_append_format(&item, "\"></a>**%d** `%s` “%s”: %s", errors[i].code, errors[i].type,
                             errors[i].message, errors[i].when);
        markdown_append_item(out, buffer_str(&item));
    }
}

static void jsonrpc_write_data(struct buffer *out, enum jsonrpc_error error,
                               const struct jsonrpc_error_data *data)
{
    static const struct jsonrpc_error_data nothing = {.retry_after = 0};
    const struct jsonrpc_error_data *given = data ? data : &nothing;
    const struct {
        struct str key;
        struct str value;
        bool is_json;
    } texts[] = {
        {STR("\"tool\":"), given->tool, false},
        {STR("\"reason\":"), given->reason, false},
        {STR("\"hint\":"), given->hint, false},
        {STR("\"alternative\":"), given->alternative, true},
        {STR("\"gate\":"), given->gate, false},
        {STR("\"details\":"), given->details, false},
        {STR("\"requiredCapabilities\":"), given->required_capabilities, true},
        {STR("\"supported\":"), given->supported, true},
        {STR("\"requested\":"), given->requested, true},
    };
    buffer_append_char(out, '{');
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].value.length == 0)
            continue;
        buffer_append(out, texts[i].key);
        if (texts[i].is_json)
            buffer_append(out, texts[i].value);
        else
            buffer_append_json_string(out, texts[i].value);
        buffer_append_char(out, ',');
    }
    if (given->retry_after > 0)
        buffer_append_format(out, "\"retry_after\":%lld,", (long long)given->retry_after);
    if (given->is_retryable)
        buffer_append_text(out, "\"retryable\":true,");
    char correlation_id[RANDOM_UUID_BYTES];
    random_uuid(correlation_id);
    buffer_append_text(out, "\"error_type\":\"");
    buffer_append_text(out, jsonrpc_error_type(error));
    buffer_append_text(out, "\",\"correlation_id\":\"");
    buffer_append_text(out, correlation_id);
    buffer_append_text(out, "\"}");
}

void jsonrpc_write_error_object(struct buffer *out, enum jsonrpc_error error, struct str message,
                                const struct jsonrpc_error_data *data)
{
    struct str text = message.length ? message : str_from(jsonrpc_error_message(error));
    /* Every code is negative. */
    char digits[STR_U64_BYTES];
    buffer_append_text(out, "{\"code\":-");
    buffer_append(out, str_from_u64((uint64_t)-jsonrpc_error_code(error), digits));
    buffer_append_text(out, ",\"message\":");
    buffer_append_json_string(out, mcp_text_cut(text));
    buffer_append_text(out, ",\"data\":");
    jsonrpc_write_data(out, error, data);
    buffer_append_char(out, '}');
}

/* Everything up to the value of `member`. Official clients refuse `"id": null`. */
static void write_head(struct buffer *out, struct str id, struct str member)
{
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",");
    if (id.length) {
        buffer_append_text(out, "\"id\":");
        buffer_append(out, id);
        buffer_append_char(out, ',');
    }
    buffer_append(out, member);
}

void jsonrpc_write_error(struct buffer *out, struct str id, enum jsonrpc_error error,
                         struct str message, const struct jsonrpc_error_data *data)
{
    write_head(out, id, STR("\"error\":"));
    jsonrpc_write_error_object(out, error, message, data);
    buffer_append_char(out, '}');
}

void jsonrpc_write_result(struct buffer *out, struct str id, struct str result)
{
    buffer_reserve(out, id.length + result.length + 64);
    write_head(out, id, STR("\"result\":"));
    buffer_append(out, result);
    buffer_append_char(out, '}');
}

void jsonrpc_write_error_text(struct buffer *out, struct str id, struct str error)
{
    write_head(out, id, STR("\"error\":"));
    buffer_append(out, error);
    buffer_append_char(out, '}');
}

void jsonrpc_write_cancelled(struct buffer *out, struct str request_id, const char *reason)
{
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",\"method\":\"" MCP_CANCELLED "\","
                            "\"params\":{\"requestId\":");
    buffer_append(out, request_id);
    buffer_append_format(out, ",\"reason\":\"%s\"}}", reason);
}
