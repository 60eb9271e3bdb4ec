/* The table of extensions, and the members of `capabilities.extensions`. */
#include "taskgate/mcp/extension.h"

#include "taskgate/core/assert.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

enum bridged { ALL = true, LEGACY = false };

static const struct mcp_extension extensions[] = {
#define MCP_EXTENSION_ROW(symbol, name, clients) {name, clients},
#include "taskgate/mcp/extension_table.h"
#undef MCP_EXTENSION_ROW
};

const struct mcp_extension *mcp_extension_get(enum mcp_extension_id id)
{
    ASSERT_NUMBERS(id, <, sizeof extensions / sizeof *extensions);
    return &extensions[id];
}

const struct mcp_extension *mcp_extension_find(struct str name)
{
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        if (str_equal(name, str_from(extensions[i].name)))
            return &extensions[i];
    }
    return NULL;
}

/* The key as it is between its quotes, which may have escapes. */
static bool extension_is_kept(struct str key, mcp_name_judge judge, void *context)
{
    OWNED_BUFFER(name);
    struct str quoted = str_slice(key.bytes - 1, key.length + 2);
    return json_decode_string(quoted, &name) && judge(context, buffer_str(&name), STR_EMPTY);
}

/* Writes the object of those that are kept. Whether one was left out. */
static bool write_kept(struct buffer *out, struct str offered, mcp_name_judge judge, void *context)
{
    struct str key, value;
    bool is_changed = false;
    buffer_append_char(out, '{');
    for (size_t position = 0; json_next_member(offered, &position, &key, &value);) {
        if (!extension_is_kept(key, judge, context)) {
            is_changed = true;
            continue;
        }
        if (out->length > 1)
            buffer_append_char(out, ',');
        buffer_append_format(out, "\"%.*s\":", STR_ARGS(key));
        buffer_append(out, value);
    }
    buffer_append_char(out, '}');
    return is_changed;
}

void mcp_extensions_filter(struct buffer *out, struct str result, mcp_name_judge judge,
                           void *context)
{
    struct str capabilities = json_member(result, "capabilities");
    struct str offered = json_member(capabilities, "extensions");
    bool is_object = json_type(offered) == JSON_OBJECT;
    OWNED_BUFFER(kept);
    if (offered.length > 0 && !is_object)
        json_write_without_member(&kept, capabilities, "extensions");
    if (kept.length > 0)
        buffer_append_replaced(out, result, capabilities, buffer_str(&kept));
    else if (is_object && write_kept(&kept, offered, judge, context))
        buffer_append_replaced(out, result, offered, buffer_str(&kept));
    else
        buffer_append(out, result);
}

bool mcp_extension_has_setting(struct str result, enum mcp_extension_id id, const char *setting)
{
    struct str value =
        json_path(result, "capabilities", "extensions", extensions[id].name, setting);
    return json_type(value) == JSON_TRUE;
}
