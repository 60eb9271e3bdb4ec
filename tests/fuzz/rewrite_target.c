/*
 * Rewriting upstream's replies: for any answer of an upstream the client gets strict JSON with the
 * gateway's capabilities, with every listed tool announced as it was judged, and without hidden
 * tools. And no text makes an error that is not JSON.
 */
#include <string.h>

#include "fuzz.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/capabilities.h"
#include "taskgate/mcp/dialect.h"
#include "taskgate/mcp/jsonrpc.h"
#include "taskgate/mcp/lists.h"

/* Rewriting adds three levels at most: a text near the limit may go over it. */
static bool is_deep(struct str text)
{
    size_t open = 0;
    for (size_t i = 0; i < text.length; i++)
        open += text.bytes[i] == '{' || text.bytes[i] == '[';
    return open > 100;
}

static enum policy_annotation judged_as(struct str name)
{
    return (enum policy_annotation)(name.length % 3);
}

static bool is_hidden(struct str name)
{
    return name.length > 0 && name.bytes[0] == 'h';
}

static bool judge(void *context, const struct mcp_tool *tool, enum policy_annotation *announce)
{
    size_t *shown = context;
    *announce = judged_as(tool->name);
    *shown += !is_hidden(tool->name);
    return !is_hidden(tool->name);
}

static bool judge_name(void *context, struct str name, struct str entry)
{
    return !is_hidden(name);
}

static bool expect_announced(void *context, const struct mcp_tool *tool,
                             enum policy_annotation *ignored)
{
    size_t *seen = context;
    struct str text = str_from(policy_annotation_name(judged_as(tool->name)));
    FUZZ_EXPECT(!is_hidden(tool->name));
    FUZZ_EXPECT(json_string_equals(json_path(tool->raw, "execution", "taskSupport"), text));
    FUZZ_EXPECT(json_string_equals(json_path(tool->raw, "annotations", "taskSupport"), text));
    (*seen)++;
    return true;
}

static void check_tools(struct str result)
{
    struct buffer out;
    size_t shown = 0, seen = 0;
    buffer_init(&out);
    mcp_tools_rewrite(&out, result, judge, &shown);
    FUZZ_EXPECT(json_check(buffer_str(&out), NULL));
    mcp_tools_read(buffer_str(&out), expect_announced, &seen);
    FUZZ_EXPECT(seen == shown);
    if (json_type(result) == JSON_OBJECT && json_member(result, "tools").length)
        FUZZ_EXPECT(json_count(json_member(buffer_str(&out), "tools")) == shown);
    FUZZ_EXPECT(json_type(json_member(buffer_str(&out), "nextCursor")) != JSON_NULL);
    buffer_finish(&out);
}

static void write_more(void *context, struct buffer *out)
{
    buffer_append(out, STR("{\"name\":\"more\"},{\"name\":\"still more\"}"));
}

/* Members written behind the list are there, and the rest is as without them. */
static void check_more(struct str result)
{
    struct buffer out, plain;
    size_t shown = 0;
    const struct mcp_list list = mcp_list_find(result, "tools");
    buffer_init(&out);
    buffer_init(&plain);
    mcp_tools_rewrite_with(
        &out, &list,
        &(struct mcp_tools_rewriting){.judge = judge, .more = write_more, .context = &shown});
    FUZZ_EXPECT(json_check(buffer_str(&out), NULL));
    FUZZ_EXPECT(json_count(json_member(buffer_str(&out), "tools")) == shown + 2);
    mcp_tools_rewrite(&plain, result, judge, &shown);
    struct str before = json_member(buffer_str(&plain), "tools");
    if (before.length > 2)
        FUZZ_EXPECT(memmem(out.bytes, out.length, before.bytes, before.length - 1) != NULL);
    buffer_finish(&plain);
    buffer_finish(&out);
}

static void check_list(struct str result, const char *list, const char *key)
{
    struct buffer out;
    struct str item;
    buffer_init(&out);
    mcp_list_filter(&out, result, list, key, judge_name, NULL);
    FUZZ_EXPECT(json_check(buffer_str(&out), NULL));
    struct str items = json_member(buffer_str(&out), list);
    for (size_t at = 0; json_type(items) == JSON_ARRAY && json_next_element(items, &at, &item);) {
        struct buffer name;
        buffer_init(&name);
        FUZZ_EXPECT(json_decode_string(json_member(item, key), &name));
        FUZZ_EXPECT(!is_hidden(buffer_str(&name)));
        buffer_finish(&name);
    }
    buffer_finish(&out);
}

static void check_capabilities(struct str result)
{
    struct mcp_capabilities upstream, announced;
    struct buffer once, twice;
    buffer_init(&once);
    buffer_init(&twice);
    mcp_capabilities_detect(result, &upstream);
    mcp_capabilities_inject(&once, result, &upstream);
    FUZZ_EXPECT(json_check(buffer_str(&once), NULL));
    mcp_capabilities_detect(buffer_str(&once), &announced);
    FUZZ_EXPECT(announced.tasks && announced.tasks_list && announced.tasks_cancel);
    FUZZ_EXPECT(announced.task_status == upstream.task_status);
    FUZZ_EXPECT(announced.resources == upstream.resources);
    mcp_capabilities_inject(&twice, buffer_str(&once), &announced);
    FUZZ_EXPECT(str_equal(buffer_str(&once), buffer_str(&twice)));
    buffer_finish(&once);
    buffer_finish(&twice);
}

static void check_progress(struct str message)
{
    struct buffer out;
    buffer_init(&out);
    dialect_rewrite_progress(&out, message, STR("\"token\""), STR("tg_x"));
    FUZZ_EXPECT(json_check(buffer_str(&out), NULL));
    struct str token = json_path(buffer_str(&out), "params", "progressToken");
    FUZZ_EXPECT(json_string_equals(token, STR("token")));
    buffer_finish(&out);
}

/* C0 and C1 controls and characters that turn the direction of text, as UTF-8. */
static bool misleads_a_terminal(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        const unsigned char *at = (const unsigned char *)text.bytes + i;
        size_t left = text.length - i;
        if (at[0] < 0x20)
            return true;
        if (left > 2 && at[0] == 0xE2 && at[1] == 0x80 &&
            (at[2] == 0x8E || at[2] == 0x8F || (at[2] >= 0xA8 && at[2] <= 0xAE)))
            return true;
        if (left > 2 && at[0] == 0xE2 && at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9)
            return true;
    }
    return false;
}

static void check_error(struct str text)
{
    const struct jsonrpc_error_data data = {.tool = text, .reason = text, .details = text};
    struct buffer out;
    buffer_init(&out);
    jsonrpc_write_error(&out, STR("7"), JSONRPC_POLICY_DENIED, text, &data);
    FUZZ_EXPECT(json_check(buffer_str(&out), NULL));
    FUZZ_EXPECT(!misleads_a_terminal(buffer_str(&out)));
    buffer_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = str_slice((const char *)data, size);
    check_error(text);
    if (is_deep(text) || !json_check(text, NULL))
        return 0;
    check_tools(str_trim(text));
    check_more(str_trim(text));
    check_list(str_trim(text), "resources", "uri");
    check_list(str_trim(text), "prompts", "name");
    check_capabilities(str_trim(text));
    if (json_type(str_trim(text)) == JSON_OBJECT)
        check_progress(str_trim(text));
    return 0;
}
