/* List replies: every item judged, what is shown written anew where it must change. */
#include "taskgate/mcp/lists.h"

#include <stdio.h>
#include <string.h>

#include "taskgate/json/text.h"

/* Writes what a client sees of `item`; writes nothing to hide it. */
typedef void (*item_writer)(void *context, struct buffer *out, struct str item);

/* What is no array has no elements to judge: it becomes an empty one. */
static void write_array(struct buffer *out, struct str items, item_writer write, void *context)
{
    buffer_append_char(out, '[');
    size_t position = 0;
    struct str item;
    bool is_first = true;
    while (json_next_element(items, &position, &item)) {
        size_t before = out->length;
        if (!is_first)
            buffer_append_char(out, ',');
        size_t start = out->length;
        write(context, out, item);
        if (out->length == start)
            out->length = before;
        else
            is_first = false;
    }
    buffer_append_char(out, ']');
}

static void rewrite_list(struct buffer *out, struct str result, const char *list, item_writer write,
                         void *context)
{
    struct buffer items, text;
    buffer_init(&items);
    buffer_init(&text);
    struct str present = json_member(result, list);
    if (present.length) {
        write_array(&items, present, write, context);
        json_write_with_member(&text, result, list, buffer_str(&items));
    } else {
        buffer_append(&text, result);
    }
    if (json_type(json_member(buffer_str(&text), "nextCursor")) == JSON_NULL)
        json_write_without_member(out, buffer_str(&text), "nextCursor");
    else
        buffer_append(out, buffer_str(&text));
    buffer_finish(&items);
    buffer_finish(&text);
}

static bool read_annotation(struct str value, enum policy_annotation *annotation)
{
    struct buffer text;
    buffer_init(&text);
    bool is_known =
        json_decode_string(value, &text) && policy_annotation_parse(buffer_str(&text), annotation);
    buffer_finish(&text);
    return is_known;
}

static struct policy_hints read_hints(const struct str values[HINT_COUNT])
{
    struct policy_hints hints = {0, 0};
    for (unsigned i = 0; i < HINT_COUNT; i++) {
        enum json_type type = json_type(values[i]);
        if (type == JSON_TRUE || type == JSON_FALSE)
            hints.given |= 1U << i;
        if (type == JSON_TRUE)
            hints.truth |= 1U << i;
    }
    return hints;
}

/* What is read of a tool: its members, and those of the first two of them. */
enum { TOOL_ANNOTATIONS, TOOL_EXECUTION, TOOL_NAME, TOOL_OUTPUT_SCHEMA, TOOL_MEMBERS };
static const char *const tool_keys[] = {"annotations", "execution", "name", "outputSchema"};
static const char task_support[] = "taskSupport";

struct tool_text {
    struct str members[TOOL_MEMBERS];
    struct str hints[HINT_COUNT];
    struct str annotated, executed; /* taskSupport in annotations, in execution */
};

static void find_text(struct tool_text *text, struct str item)
{
    const char *keys[HINT_COUNT + 1] = {task_support};
    struct str values[HINT_COUNT + 1];
    for (unsigned i = 0; i < HINT_COUNT; i++)
        keys[i + 1] = policy_hint_name((enum policy_hint)i);
    json_members(item, tool_keys, TOOL_MEMBERS, text->members);
    json_members(text->members[TOOL_ANNOTATIONS], keys, HINT_COUNT + 1, values);
    text->annotated = values[0];
    memcpy(text->hints, values + 1, sizeof text->hints);
    text->executed = json_member(text->members[TOOL_EXECUTION], task_support);
}

/* `name` holds the decoded name. False when the item has none that can be read. */
static bool read_tool(struct mcp_tool *tool, const struct tool_text *text, struct str item,
                      struct buffer *name)
{
    if (!json_decode_string(text->members[TOOL_NAME], name))
        return false;
    *tool = (struct mcp_tool){.name = buffer_str(name), .raw = item};
    tool->has_output_schema = json_type(text->members[TOOL_OUTPUT_SCHEMA]) == JSON_OBJECT;
    tool->hints = read_hints(text->hints);
    tool->has_own =
        read_annotation(text->executed, &tool->own) || read_annotation(text->annotated, &tool->own);
    return true;
}

/* Writes `item` with taskSupport set in both places; what is no object there becomes one. */
static void write_announced(struct buffer *out, const struct tool_text *text, struct str item,
                            struct str value)
{
    const struct json_change annotated = {task_support, text->annotated, value},
                             executed = {task_support, text->executed, value};
    struct buffer annotations, execution;
    buffer_init(&annotations);
    buffer_init(&execution);
    json_write_changed(&annotations, text->members[TOOL_ANNOTATIONS], &annotated, 1);
    json_write_changed(&execution, text->members[TOOL_EXECUTION], &executed, 1);
    const struct json_change changes[] = {
        {tool_keys[TOOL_ANNOTATIONS], text->members[TOOL_ANNOTATIONS], buffer_str(&annotations)},
        {tool_keys[TOOL_EXECUTION], text->members[TOOL_EXECUTION], buffer_str(&execution)},
    };
    json_write_changed(out, item, changes, sizeof changes / sizeof *changes);
    buffer_finish(&annotations);
    buffer_finish(&execution);
}

struct tool_judgement {
    mcp_tool_judge judge;
    mcp_tool_hider hides; /* or NULL */
    void *context;
};

static void write_tool(void *context, struct buffer *out, struct str item)
{
    const struct tool_judgement *judgement = context;
    struct buffer name;
    buffer_init(&name);
    struct mcp_tool tool;
    struct tool_text text;
    enum policy_annotation announce = ANNOTATION_FORBIDDEN;
    find_text(&text, item);
    if (read_tool(&tool, &text, item, &name) &&
        judgement->judge(judgement->context, &tool, &announce)) {
        char value[16];
        int length = snprintf(value, sizeof value, "\"%s\"", policy_annotation_name(announce));
        bool hides = tool.has_output_schema && judgement->hides &&
                     judgement->hides(judgement->context, &tool);
        struct buffer announced;
        buffer_init(&announced);
        write_announced(hides ? &announced : out, &text, item, str_slice(value, (size_t)length));
        if (hides)
            json_write_without_member(out, buffer_str(&announced), tool_keys[TOOL_OUTPUT_SCHEMA]);
        buffer_finish(&announced);
    }
    buffer_finish(&name);
}

void mcp_tools_rewrite(struct buffer *out, struct str result, mcp_tool_judge judge, void *context)
{
    mcp_tools_rewrite_hiding(out, result, judge, NULL, context);
}

void mcp_tools_rewrite_hiding(struct buffer *out, struct str result, mcp_tool_judge judge,
                              mcp_tool_hider hides, void *context)
{
    rewrite_list(out, result, "tools", write_tool, &(struct tool_judgement){judge, hides, context});
}

bool mcp_tools_read(struct str result, mcp_tool_judge judge, void *context)
{
    struct str tools = json_member(result, "tools"), item;
    if (json_type(tools) != JSON_ARRAY)
        return false;
    struct buffer name;
    buffer_init(&name);
    for (size_t position = 0; json_next_element(tools, &position, &item);) {
        struct mcp_tool tool;
        enum policy_annotation ignored = ANNOTATION_FORBIDDEN;
        struct tool_text text;
        buffer_clear(&name);
        find_text(&text, item);
        if (read_tool(&tool, &text, item, &name))
            judge(context, &tool, &ignored);
    }
    buffer_finish(&name);
    return true;
}

struct name_judgement {
    const char *key;
    mcp_name_judge judge;
    void *context;
};

static void write_named(void *context, struct buffer *out, struct str item)
{
    const struct name_judgement *judgement = context;
    struct buffer name;
    buffer_init(&name);
    if (json_decode_string(json_member(item, judgement->key), &name) &&
        judgement->judge(judgement->context, buffer_str(&name)))
        buffer_append(out, item);
    buffer_finish(&name);
}

void mcp_list_filter(struct buffer *out, struct str result, const char *list, const char *key,
                     mcp_name_judge judge, void *context)
{
    rewrite_list(out, result, list, write_named, &(struct name_judgement){key, judge, context});
}

void mcp_list_append(struct buffer *out, struct str result, const char *list, struct str items)
{
    struct buffer whole;
    struct str present = json_member(result, list);
    buffer_init(&whole);
    if (json_type(present) == JSON_ARRAY && json_count(present) > 0) {
        buffer_append(&whole, str_slice(present.bytes, present.length - 1));
        buffer_append_char(&whole, ',');
    } else {
        buffer_append_char(&whole, '[');
    }
    buffer_append(&whole, items);
    buffer_append_char(&whole, ']');
    json_write_with_member(out, result, list, buffer_str(&whole));
    buffer_finish(&whole);
}

struct str mcp_next_cursor(struct str result)
{
    struct str cursor = json_member(result, "nextCursor");
    return json_type(cursor) == JSON_NULL ? STR_EMPTY : cursor;
}
