/* The members that count, and their form for people. */
#include "taskgate/mcp/definition.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

#define MOST_MEMBERS 6

static const char *const members[DEFINITION_KINDS][MOST_MEMBERS + 1] = {
    [DEFINITION_TOOL] = {"name", "title", "description", "inputSchema", "outputSchema",
                         "annotations"},
    [DEFINITION_PROMPT] = {"name", "title", "description", "arguments"},
    [DEFINITION_SKILL] = {"frontmatter"},
};

/* ---- the files of a skill: a set ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *file_of(struct str entry)
{
    static const char *const keys[] = {"uri", "digest", "size"};
    struct str values[3] = {STR_EMPTY, STR_EMPTY, STR_EMPTY};
    struct buffer object, text;
    buffer_init(&object);
    buffer_init(&text);
    json_members(entry, keys, 3, values);
    buffer_append_char(&object, '{');
    for (size_t i = 0; i < 3; i++) {
        if (values[i].length == 0)
            continue;
        json_add_key(&object, keys[i]);
        buffer_append(&object, values[i]);
    }
    buffer_append_char(&object, '}');
    canonical_write(buffer_str(&object), &text);
    buffer_finish(&object);
    return buffer_take(&text, NULL);
}

static void write_files(struct buffer *out, struct str resources)
{
    size_t count = 0, position = 0;
    struct str entry;
    json_add_key(out, "resources");
    if (json_type(resources) != JSON_ARRAY) {
        buffer_append(out, resources);
        return;
    }
    char **files = memory_alloc_array(json_count(resources) + 1, sizeof *files);
    while (json_next_element(resources, &position, &entry))
        files[count++] = file_of(entry);
    qsort(files, count, sizeof *files, compare);
    buffer_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        buffer_append_text(out, files[i]);
        free(files[i]);
    }
    buffer_append_char(out, ']');
    free(files);
}

/* ---- the text ---- */

/* A line for each member and element. */
static void break_lines(struct buffer *out, struct str canonical)
{
    bool is_quoted = false;
    for (size_t i = 0; i < canonical.length; i++) {
        char c = canonical.bytes[i];
        buffer_append_char(out, c);
        if (is_quoted && c == '\\')
            buffer_append_char(out, canonical.bytes[++i]);
        else if (c == '"')
            is_quoted = !is_quoted;
        else if (!is_quoted && (c == ',' || c == '{' || c == '['))
            buffer_append_char(out, '\n');
    }
}

void mcp_definition_read(struct mcp_definition *definition, enum definition_kind kind,
                         struct str raw)
{
    struct str values[MOST_MEMBERS];
    struct buffer object, canonical;
    const char *const *keys = members[kind];
    size_t count = 0;
    while (keys[count])
        values[count++] = STR_EMPTY;
    json_members(raw, keys, count, values);
    buffer_init(&object);
    buffer_init(&canonical);
    buffer_init(&definition->text);
    buffer_append_char(&object, '{');
    for (size_t i = 0; i < count; i++) {
        if (values[i].length == 0)
            continue;
        json_add_key(&object, keys[i]);
        buffer_append(&object, values[i]);
    }
    if (kind == DEFINITION_SKILL && json_member(raw, "resources").length > 0)
        write_files(&object, json_member(raw, "resources"));
    buffer_append_char(&object, '}');
    canonical_write(buffer_str(&object), &canonical);
    digest_sha256_hex(buffer_str(&canonical), definition->digest);
    struct str description = kind == DEFINITION_SKILL ? json_path(raw, "frontmatter", "description")
                                                      : json_member(raw, "description");
    definition->flags = mcp_definition_flags(buffer_str(&canonical), description);
    break_lines(&definition->text, buffer_str(&canonical));
    buffer_finish(&object);
    buffer_finish(&canonical);
}

void mcp_definition_finish(struct mcp_definition *definition)
{
    buffer_finish(&definition->text);
}
