/* List replies: every item judged, what is shown written anew where it must change. */
#include "taskgate/mcp/lists.h"

#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

/* ---- lists ---- */

struct mcp_list mcp_list_find(struct str result, const char *name)
{
    const char *const keys[] = {name, "nextCursor"};
    struct str values[2];
    json_members(result, keys, 2, values);
    return (struct mcp_list){result, name, values[0], values[1]};
}

bool mcp_list_is_last(const struct mcp_list *list)
{
    return list->next_cursor.length == 0 || json_type(list->next_cursor) == JSON_NULL;
}

/* Writes what a client sees of the items. A value that is no array has none. */
typedef void (*items_writer)(void *context, struct buffer *out, struct str items);

static void lists_append_span(struct buffer *out, const char *from, const char *to)
{
    buffer_append(out, str_slice(from, (size_t)(to - from)));
}

static void lists_write_array(struct buffer *out, const struct mcp_list *list, items_writer write,
                              mcp_items_writer more, void *context)
{
    buffer_append_char(out, '[');
    size_t start = out->length;
    write(context, out, list->items);
    size_t behind = out->length;
    if (behind > start)
        buffer_append_char(out, ',');
    size_t before = out->length;
    if (more)
        more(context, out);
    if (out->length == before)
        out->length = behind;
    buffer_append_char(out, ']');
}

/* A list that is not there is begun only where there is something to write. */
static void write_absent(struct buffer *out, const struct mcp_list *list, mcp_items_writer more,
                         void *context)
{
    OWNED_BUFFER(items);
    buffer_append_char(&items, '[');
    if (more)
        more(context, &items);
    bool is_empty = items.length == 1;
    buffer_append_char(&items, ']');
    if (is_empty)
        buffer_append(out, list->result);
    else
        json_write_with_member(out, list->result, list->name, buffer_str(&items));
}

static void lists_write_list(struct buffer *out, const struct mcp_list *list, items_writer write,
                             mcp_items_writer more, void *context)
{
    struct str result = list->result, items = list->items;
    if (items.length == 0) {
        write_absent(out, list, more, context);
        return;
    }
    buffer_reserve(out, result.length + result.length / 2);
    lists_append_span(out, result.bytes, items.bytes);
    lists_write_array(out, list, write, more, context);
    lists_append_span(out, items.bytes + items.length, result.bytes + result.length);
}

static void rewrite_list(struct buffer *out, const struct mcp_list *list, items_writer write,
                         mcp_items_writer more, void *context)
{
    if (json_type(list->next_cursor) != JSON_NULL) {
        lists_write_list(out, list, write, more, context);
        return;
    }
    OWNED_BUFFER(text);
    lists_write_list(&text, list, write, more, context);
    json_write_without_member(out, buffer_str(&text), "nextCursor");
}

/* ---- tools ---- */

static bool read_annotation(struct str value, enum policy_annotation *annotation)
{
    OWNED_BUFFER(text);
    return json_decode_string(value, &text) &&
           policy_annotation_parse(buffer_str(&text), annotation);
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

/* The members of a tool that are read, and the members of the first two of them. */
enum { TOOL_ANNOTATIONS, TOOL_EXECUTION, TOOL_NAME, TOOL_OUTPUT_SCHEMA, TOOL_MEMBERS };
static const char *const tool_keys[] = {"annotations", "execution", "name", "outputSchema"};
static const char task_support[] = "taskSupport";

struct tool_text {
    struct str members[TOOL_MEMBERS];
    struct str hints[HINT_COUNT];
    struct str annotated, executed; /* taskSupport in annotations, in execution */
};

/* A walk over the tools of a list. */
struct tool_walk {
    struct str items;
    size_t position;
    struct str item;
    struct tool_text text;
    struct mcp_tool tool;
    struct buffer name; /* one that had escapes */
};

/* The values of the members that have been found. */
static void find_inside(struct tool_text *text)
{
    const char *keys[HINT_COUNT + 1] = {task_support};
    struct str values[HINT_COUNT + 1];
    for (unsigned i = 0; i < HINT_COUNT; i++)
        keys[i + 1] = policy_hint_name((enum policy_hint)i);
    json_members(text->members[TOOL_ANNOTATIONS], keys, HINT_COUNT + 1, values);
    text->annotated = values[0];
    memcpy(text->hints, values + 1, sizeof text->hints);
    text->executed = json_member(text->members[TOOL_EXECUTION], task_support);
}

/* False when the item has no name that can be read. */
static bool lists_read_name(struct tool_walk *walk)
{
    struct str raw = walk->text.members[TOOL_NAME];
    if (json_type(raw) != JSON_STRING)
        return false;
    walk->tool.name = str_slice(raw.bytes + 1, raw.length - 2);
    if (!memchr(raw.bytes, '\\', raw.length))
        return true;
    buffer_clear(&walk->name);
    json_decode_string(raw, &walk->name);
    walk->tool.name = buffer_str(&walk->name);
    return true;
}

/* Goes on to the next item that has a readable name. */
static bool next_tool(struct tool_walk *walk)
{
    struct tool_text *text = &walk->text;
    while (json_next_element_members(walk->items, &walk->position, &walk->item, tool_keys,
                                     TOOL_MEMBERS, text->members)) {
        struct mcp_tool *tool = &walk->tool;
        *tool = (struct mcp_tool){.raw = walk->item};
        if (!lists_read_name(walk))
            continue;
        find_inside(text);
        tool->has_output_schema = json_type(text->members[TOOL_OUTPUT_SCHEMA]) == JSON_OBJECT;
        tool->hints = read_hints(text->hints);
        tool->has_own = read_annotation(text->executed, &tool->own) ||
                        read_annotation(text->annotated, &tool->own);
        return true;
    }
    return false;
}

struct announcement {
    struct str value, object; /* the word; what has nothing but the word */
};

static struct announcement announcement_of(enum policy_annotation annotation)
{
#define ANNOUNCEMENT(word)                                                                         \
    {                                                                                              \
        STR("\"" word "\""), STR("{\"taskSupport\":\"" word "\"}")                                 \
    }
    static const struct announcement announcements[] = {
        [ANNOTATION_FORBIDDEN] = ANNOUNCEMENT("forbidden"),
        [ANNOTATION_OPTIONAL] = ANNOUNCEMENT("optional"),
        [ANNOTATION_REQUIRED] = ANNOUNCEMENT("required"),
    };
#undef ANNOUNCEMENT
    ASSERT_NUMBERS(annotation, <, sizeof announcements / sizeof *announcements);
    return announcements[annotation];
}

/* `object` with taskSupport set; what is no object becomes one. */
static struct str with_support(struct buffer *room, struct str object, struct str old,
                               const struct announcement *announcement)
{
    const struct json_change change = {task_support, old, announcement->value};
    if (json_type(object) != JSON_OBJECT)
        return announcement->object;
    json_write_changed(room, object, &change, 1);
    return buffer_str(room);
}

/* Writes `item` with taskSupport set in both places. */
static void write_announced(struct buffer *out, const struct tool_text *text, struct str item,
                            enum policy_annotation annotation)
{
    const struct announcement announcement = announcement_of(annotation);
    struct str annotations = text->members[TOOL_ANNOTATIONS],
               execution = text->members[TOOL_EXECUTION];
    OWNED_BUFFER(annotated);
    OWNED_BUFFER(executed);
    const struct json_change changes[] = {
        {tool_keys[TOOL_ANNOTATIONS], annotations,
         with_support(&annotated, annotations, text->annotated, &announcement)},
        {tool_keys[TOOL_EXECUTION], execution,
         with_support(&executed, execution, text->executed, &announcement)},
    };
    json_write_changed(out, item, changes, sizeof changes / sizeof *changes);
}

static void write_announced_once(struct buffer *out, const struct tool_text *text, struct str item,
                                 enum policy_annotation annotation)
{
    const struct announcement announcement = announcement_of(annotation);
    struct str execution = text->members[TOOL_EXECUTION];
    OWNED_BUFFER(executed);
    const struct json_change change = {
        tool_keys[TOOL_EXECUTION], execution,
        with_support(&executed, execution, text->executed, &announcement)};
    json_write_changed(out, item, &change, 1);
}

static void write_silent(struct buffer *out, const struct tool_text *text, struct str item)
{
    if (text->members[TOOL_EXECUTION].length > 0)
        json_write_without_member(out, item, tool_keys[TOOL_EXECUTION]);
    else
        buffer_append(out, item);
}

static void write_announcement(struct buffer *out, const struct tool_walk *walk,
                               enum mcp_announcing announcing, enum policy_annotation annotation)
{
    if (announcing == MCP_ANNOUNCE_TWICE)
        write_announced(out, &walk->text, walk->item, annotation);
    else if (announcing == MCP_ANNOUNCE_ONCE && annotation != ANNOTATION_FORBIDDEN)
        write_announced_once(out, &walk->text, walk->item, annotation);
    else
        write_silent(out, &walk->text, walk->item);
}

static void lists_write_tool(struct buffer *out, const struct tool_walk *walk,
                             const struct mcp_tools_rewriting *how,
                             enum policy_annotation annotation)
{
    bool hides =
        walk->tool.has_output_schema && how->hides && how->hides(how->context, &walk->tool);
    OWNED_BUFFER(schema);
    OWNED_BUFFER(announced);
    OWNED_BUFFER(changed);
    bool changes = how->schema && how->schema(how->context, &walk->tool, &schema);
    if (!hides && !changes) {
        write_announcement(out, walk, how->announcing, annotation);
        return;
    }
    write_announcement(&announced, walk, how->announcing, annotation);
    if (changes)
        json_write_with_member(hides ? &changed : out, buffer_str(&announced), "inputSchema",
                               buffer_str(&schema));
    if (hides)
        json_write_without_member(out, buffer_str(changes ? &changed : &announced),
                                  tool_keys[TOOL_OUTPUT_SCHEMA]);
}

struct tools_writing {
    const struct mcp_tools_rewriting *how;
};

static void lists_write_tools(void *context, struct buffer *out, struct str items)
{
    const struct mcp_tools_rewriting *rewriting = ((const struct tools_writing *)context)->how;
    struct tool_walk walk = {.items = items};
    bool is_first = true;
    while (next_tool(&walk)) {
        enum policy_annotation announce = ANNOTATION_FORBIDDEN;
        if (!rewriting->judge(rewriting->context, &walk.tool, &announce))
            continue;
        if (!is_first)
            buffer_append_char(out, ',');
        is_first = false;
        lists_write_tool(out, &walk, rewriting, announce);
    }
    buffer_finish(&walk.name);
}

static void write_more(void *context, struct buffer *out)
{
    const struct mcp_tools_rewriting *rewriting = ((const struct tools_writing *)context)->how;
    if (rewriting->more)
        rewriting->more(rewriting->context, out);
}

void mcp_tools_rewrite_with(struct buffer *out, const struct mcp_list *list,
                            const struct mcp_tools_rewriting *rewriting)
{
    rewrite_list(out, list, lists_write_tools, write_more, &(struct tools_writing){rewriting});
}

void mcp_tools_rewrite(struct buffer *out, struct str result, mcp_tool_judge judge, void *context)
{
    const struct mcp_list list = mcp_list_find(result, "tools");
    mcp_tools_rewrite_with(out, &list,
                           &(struct mcp_tools_rewriting){.judge = judge, .context = context});
}

bool mcp_tools_read(struct str result, mcp_tool_judge judge, void *context)
{
    struct tool_walk walk = {.items = json_member(result, "tools")};
    if (json_type(walk.items) != JSON_ARRAY)
        return false;
    while (next_tool(&walk)) {
        enum policy_annotation ignored = ANNOTATION_FORBIDDEN;
        judge(context, &walk.tool, &ignored);
    }
    buffer_finish(&walk.name);
    return true;
}

/* ---- what has but a name ---- */

struct name_judgement {
    const char *key;
    mcp_name_judge judge;
    void *context;
};

static void lists_write_named(void *context, struct buffer *out, struct str items)
{
    const struct name_judgement *judgement = context;
    OWNED_BUFFER(name);
    struct str item, value;
    size_t start = out->length;
    for (size_t position = 0;
         json_next_element_members(items, &position, &item, &judgement->key, 1, &value);) {
        buffer_clear(&name);
        if (!json_decode_string(value, &name) ||
            !judgement->judge(judgement->context, buffer_str(&name), item))
            continue;
        if (out->length > start)
            buffer_append_char(out, ',');
        buffer_append(out, item);
    }
}

void mcp_list_filter(struct buffer *out, struct str result, const char *list, const char *key,
                     mcp_name_judge judge, void *context)
{
    const struct mcp_list found = mcp_list_find(result, list);
    rewrite_list(out, &found, lists_write_named, NULL,
                 &(struct name_judgement){key, judge, context});
}

/* ---- entries with resources ---- */

struct entry_judgement {
    mcp_name_judge judge;
    void *context;
    struct buffer uri; /* room for one */
};

static bool passes_uri(struct entry_judgement *judgement, struct str value, struct str entry)
{
    buffer_clear(&judgement->uri);
    return json_decode_string(value, &judgement->uri) &&
           judgement->judge(judgement->context, buffer_str(&judgement->uri), entry);
}

/* In the order resources, uri. */
static bool passes(struct entry_judgement *judgement, struct str entry, const struct str members[2])
{
    static const char *const key = "uri";
    struct str item, value;
    enum json_type type = json_type(members[0]);
    bool passes = passes_uri(judgement, members[1], entry) &&
                  (type == JSON_NONE || type == JSON_ARRAY || type == JSON_STRING);
    for (size_t position = 0;
         passes && type == JSON_ARRAY &&
         json_next_element_members(members[0], &position, &item, &key, 1, &value);)
        passes = passes_uri(judgement, value, STR_EMPTY);
    return passes;
}

static const char *const entry_keys[] = {"resources", "uri"};

bool mcp_entry_passes(struct str entry, mcp_name_judge judge, void *context)
{
    struct entry_judgement judgement = {.judge = judge, .context = context};
    struct str members[2];
    json_members(entry, entry_keys, 2, members);
    bool is_good = passes(&judgement, entry, members);
    buffer_finish(&judgement.uri);
    return is_good;
}

static void write_entries(void *context, struct buffer *out, struct str items)
{
    struct str item, members[2];
    size_t start = out->length;
    for (size_t position = 0;
         json_next_element_members(items, &position, &item, entry_keys, 2, members);) {
        if (!passes(context, item, members))
            continue;
        if (out->length > start)
            buffer_append_char(out, ',');
        buffer_append(out, item);
    }
}

void mcp_entries_filter(struct buffer *out, struct str result, const char *list,
                        mcp_name_judge judge, void *context)
{
    const struct mcp_list found = mcp_list_find(result, list);
    struct entry_judgement judgement = {.judge = judge, .context = context};
    rewrite_list(out, &found, write_entries, NULL, &judgement);
    buffer_finish(&judgement.uri);
}

void mcp_list_append(struct buffer *out, struct str result, const char *list, struct str items)
{
    OWNED_BUFFER(whole);
    struct str present = json_member(result, list);
    if (json_type(present) == JSON_ARRAY && json_count(present) > 0) {
        buffer_append(&whole, str_slice(present.bytes, present.length - 1));
        buffer_append_char(&whole, ',');
    } else {
        buffer_append_char(&whole, '[');
    }
    buffer_append(&whole, items);
    buffer_append_char(&whole, ']');
    json_write_with_member(out, result, list, buffer_str(&whole));
}

struct str mcp_next_cursor(struct str result)
{
    struct str cursor = json_member(result, "nextCursor");
    return json_type(cursor) == JSON_NULL ? STR_EMPTY : cursor;
}
