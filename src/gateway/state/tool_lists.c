/* Definitions of tools by their text, and lists by their tools. */
#include "tool_lists.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/definition.h"
#include "taskgate/mcp/legacy_text.h"
#include "taskgate/mcp/parameter_headers.h"

#define KEY_TEXT_BYTES ((size_t)2048) /* the digest of a longer definition is its key */
#define SCHEMA_BYTES_MAX ((size_t)64 * 1024)
#define SLOTS_LEAST 8
#define TEXT_BYTES ((size_t)16 * 1024)

struct known_tools {
    struct map *tools; /* key -> struct known_tool */
    size_t bytes;
};

struct known_tools *known_tools_create(void)
{
    struct known_tools *tools = memory_alloc(sizeof *tools);
    tools->tools = map_create();
    return tools;
}

void known_tools_destroy(struct known_tools *tools)
{
    map_destroy(tools->tools, NULL);
    free(tools);
}

size_t known_tools_bytes(const struct known_tools *tools)
{
    return tools->bytes;
}

/* ---- definitions ---- */

static bool has_text_as_key(struct str raw)
{
    return raw.length <= KEY_TEXT_BYTES;
}

void known_tool_write_key(struct buffer *key, const struct mcp_tool *tool)
{
    buffer_append(key, tool->name);
    buffer_append_char(key, '\0');
    if (has_text_as_key(tool->raw)) {
        buffer_append(key, tool->raw);
    } else {
        char digest[DIGEST_HEX_BYTES];
        digest_sha256_hex(tool->raw, digest);
        buffer_append_text(key, digest);
    }
}

struct str known_tool_name(const struct known_tool *tool)
{
    return str_slice(tool->key, tool->name_length);
}

static _Atomic(size_t) tools_with_parameters;

bool known_tools_have_parameters(void)
{
    return atomic_load_explicit(&tools_with_parameters, memory_order_relaxed) > 0;
}

/* Clients drop a tool whose schema is wrong in this. Of one that still calls it nothing is
 * compared here: the server judges. */
static struct parameter_headers *read_parameters(const struct mcp_tool *tool)
{
    static const char mark[] = "\"x-mcp-header\"";
    struct parameter_headers *parameters = NULL;
    struct error error;
    if (!memmem(tool->raw.bytes, tool->raw.length, mark, strlen(mark)) ||
        parameter_headers_create(json_member(tool->raw, "inputSchema"), &parameters, &error) !=
            PARAMETER_HEADERS_SOME)
        return NULL;
    atomic_fetch_add(&tools_with_parameters, 1);
    return parameters;
}

/* For the people who decide about calls of the tool. */
static char *tool_lists_describe(struct str definition)
{
    struct buffer out, text;
    struct str annotations = json_member(definition, "annotations");
    buffer_init(&out);
    buffer_init(&text);
    if (json_decode_string(json_member(definition, "description"), &text)) {
        struct str shown = str_utf8_cut(buffer_str(&text), CATALOG_DESCRIPTION_BYTES);
        if (shown.length < text.length) {
            text.length = shown.length;
            buffer_append_text(&text, "…");
        }
        json_add_str(&out, "toolDescription", buffer_str(&text));
    }
    buffer_clear(&text);
    if (json_type(annotations) == JSON_OBJECT)
        canonical_write(annotations, &text);
    if (text.length > 0 && text.length <= CATALOG_DESCRIPTION_BYTES) {
        json_add_value(&out, "toolAnnotations", buffer_str(&text));
    }
    buffer_finish(&text);
    return buffer_take(&out, NULL);
}

/* The map has a copy of the key. */
size_t known_tool_bytes(const struct known_tool *tool)
{
    return sizeof *tool + 2 * tool->key_length + strlen(tool->described) +
           tool->input_schema_length + (tool->text ? strlen(tool->text) : 0);
}

void known_tool_write_text(const struct known_tool *tool, struct buffer *out)
{
    struct mcp_definition definition;
    size_t name = tool->name_length + 1;
    if (tool->text) {
        buffer_append_text(out, tool->text);
        return;
    }
    mcp_definition_read(&definition, DEFINITION_TOOL,
                        str_slice(tool->key + name, tool->key_length - name));
    buffer_append(out, buffer_str(&definition.text));
    mcp_definition_finish(&definition);
}

struct str known_tool_input_schema(const struct known_tool *tool)
{
    size_t name = tool->name_length + 1;
    if (tool->input_schema)
        return str_slice(tool->input_schema, tool->input_schema_length);
    if (!tool->has_text)
        return STR_EMPTY;
    return json_member(str_slice(tool->key + name, tool->key_length - name), "inputSchema");
}

static void keep_input_schema(struct known_tool *known, const struct mcp_tool *tool)
{
    struct str schema = json_member(tool->raw, "inputSchema");
    known->has_text = has_text_as_key(tool->raw);
    if (known->has_text || schema.length == 0 || schema.length > SCHEMA_BYTES_MAX)
        return;
    known->input_schema = memory_copy_str(schema);
    known->input_schema_length = schema.length;
}

struct known_tool *known_tool_ref(struct known_tool *tool)
{
    tool->references++;
    return tool;
}

struct known_tool *known_tool_find(struct known_tools *tools, struct str key)
{
    struct known_tool *tool = map_get(tools->tools, key);
    return tool ? known_tool_ref(tool) : NULL;
}

struct known_tool *known_tool_obtain(struct known_tools *tools, struct str key,
                                     const struct mcp_tool *tool, const char *digest,
                                     const struct mcp_definition *definition)
{
    struct known_tool *known = known_tool_find(tools, key);
    if (known)
        return known;
    known = memory_alloc(sizeof *known + key.length);
    known->references = 1;
    known->hash = str_hash(tool->name);
    known->name_length = tool->name.length;
    known->key_length = key.length;
    memcpy(known->key, key.bytes, key.length);
    known->facts = (struct catalog_tool){
        .known = true,
        .has_own = tool->has_own,
        .own = tool->own,
        .has_output_schema = tool->has_output_schema,
        .wraps_output = legacy_text_wraps(json_member(tool->raw, "outputSchema")),
        .hints = tool->hints};
    memcpy(known->facts.digest, digest, sizeof known->facts.digest);
    memcpy(known->facts.definition, definition->digest, sizeof known->facts.definition);
    known->flags = definition->flags;
    if (!has_text_as_key(tool->raw))
        known->text = memory_copy_str(str_utf8_cut(buffer_str(&definition->text), TEXT_BYTES));
    known->parameters = read_parameters(tool);
    known->described = tool_lists_describe(tool->raw);
    keep_input_schema(known, tool);
    map_put(tools->tools, key, known);
    tools->bytes += known_tool_bytes(known);
    return known;
}

void known_tool_unref(struct known_tools *tools, struct known_tool *tool)
{
    ASSERT_NUMBERS(tool->references, >, 0);
    if (--tool->references > 0)
        return;
    ASSERT_NUMBERS(tools->bytes, >=, known_tool_bytes(tool));
    tools->bytes -= known_tool_bytes(tool);
    map_remove(tools->tools, str_slice(tool->key, tool->key_length));
    if (tool->parameters)
        atomic_fetch_sub(&tools_with_parameters, 1);
    parameter_headers_destroy(tool->parameters);
    free(tool->described);
    free(tool->input_schema);
    free(tool->text);
    free(tool);
}

/* ---- lists ---- */

static size_t size_of_list(const struct tool_list *list)
{
    return sizeof *list + list->room * sizeof *list->items + list->slot_count * sizeof *list->slots;
}

struct tool_list *tool_list_create(struct known_tools *tools, size_t room)
{
    room = room < LIST_TOOLS_MOST ? room : LIST_TOOLS_MOST;
    struct tool_list *list = memory_alloc(sizeof *list + room * sizeof *list->items);
    list->references = 1;
    list->room = room;
    list->slot_count = SLOTS_LEAST;
    while (list->slot_count < 2 * room)
        list->slot_count *= 2;
    list->slots = memory_alloc_array(list->slot_count, sizeof *list->slots);
    tools->bytes += size_of_list(list);
    return list;
}

/* The slot of the name, or the free one where it would go. */
static uint32_t *find_slot(const struct tool_list *list, struct str name, uint64_t hash)
{
    size_t mask = list->slot_count - 1, i = (size_t)hash & mask;
    while (list->slots[i] > 0) {
        const struct known_tool *tool = list->items[list->slots[i] - 1].tool;
        if (tool->hash == hash && str_equal(known_tool_name(tool), name))
            break;
        i = (i + 1) & mask;
    }
    return &list->slots[i];
}

void tool_list_put(struct known_tools *tools, struct tool_list *list, struct known_tool *tool,
                   bool gone)
{
    uint32_t *slot = find_slot(list, known_tool_name(tool), tool->hash);
    if (*slot > 0) {
        known_tool_unref(tools, list->items[*slot - 1].tool);
    } else if (list->count < list->room) {
        *slot = (uint32_t)++list->count;
    } else {
        return;
    }
    list->items[*slot - 1] = (struct tool_list_item){known_tool_ref(tool), gone};
}

const struct tool_list_item *tool_list_find(const struct tool_list *list, struct str name,
                                            uint64_t hash)
{
    const uint32_t *slot = list ? find_slot(list, name, hash) : NULL;
    return slot && *slot > 0 ? &list->items[*slot - 1] : NULL;
}

static uint64_t hash_of(const struct tool_list *list)
{
    uint64_t hash = list->count;
    for (size_t i = 0; i < list->count; i++) {
        const struct tool_list_item *item = &list->items[i];
        const struct {
            const void *tool;
            uint64_t gone;
        } text = {item->tool, item->gone};
        hash += str_hash(str_slice((const char *)&text, sizeof text));
    }
    return hash;
}

static bool are_equal(const struct tool_list *a, const struct tool_list *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++) {
        const struct tool_list_item *item = &a->items[i], *other;
        other = tool_list_find(b, known_tool_name(item->tool), item->tool->hash);
        equal = other && other->tool == item->tool && other->gone == item->gone;
    }
    return equal;
}

static struct str tool_lists_key_of(const struct tool_list *list)
{
    return str_slice((const char *)&list->hash, sizeof list->hash);
}

struct tool_list *tool_list_intern(struct known_tools *tools, struct map *interned,
                                   struct tool_list *list)
{
    ASSERT(!list->is_interned && list->references == 1); /* its maker's still */
    list->hash = hash_of(list);
    struct tool_list *same = map_get(interned, tool_lists_key_of(list));
    if (!same) {
        list->is_interned = true;
        map_put(interned, tool_lists_key_of(list), list);
        return list;
    }
    if (!are_equal(list, same))
        return list;
    same->references++;
    tool_list_unref(tools, interned, list);
    return same;
}

void tool_list_unref(struct known_tools *tools, struct map *interned, struct tool_list *list)
{
    if (!list || --list->references > 0)
        return;
    if (list->is_interned)
        map_remove(interned, tool_lists_key_of(list));
    for (size_t i = 0; i < list->count; i++)
        known_tool_unref(tools, list->items[i].tool);
    ASSERT_NUMBERS(tools->bytes, >=, size_of_list(list));
    tools->bytes -= size_of_list(list);
    free(list->slots);
    free(list);
}
