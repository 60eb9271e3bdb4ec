/* One walk over the text of a value, beside the paths that still fit where it is. */
#include "taskgate/notify/redact.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

struct paths {
    struct str *items; /* what is left of each path here */
    size_t count;
};

static void append_compact(struct buffer *out, struct str value)
{
    bool in_string = false;
    for (size_t i = 0; i < value.length; i++) {
        char c = value.bytes[i];
        if (in_string) {
            buffer_append_char(out, c);
            if (c == '\\' && i + 1 < value.length)
                buffer_append_char(out, value.bytes[++i]);
            else if (c == '"')
                in_string = false;
        } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            buffer_append_char(out, c);
            in_string = c == '"';
        }
    }
}

/* The paths that go on below the member `key`; *hidden when one of them ends there. */
static struct paths below(const struct paths *paths, struct str key, bool *hidden)
{
    struct paths left = {memory_alloc_array(paths->count, sizeof *left.items), 0};
    struct str quoted = str_slice(key.bytes - 1, key.length + 2); /* the key is raw text */
    *hidden = false;
    for (size_t i = 0; i < paths->count; i++) {
        struct str segment, rest;
        bool more = str_cut(paths->items[i], '.', &segment, &rest);
        if (!json_string_equals(quoted, segment))
            continue;
        if (more)
            left.items[left.count++] = rest;
        else
            *hidden = true;
    }
    return left;
}

static void write_value(struct buffer *out, struct str value, const struct paths *paths);

static void write_object(struct buffer *out, struct str object, const struct paths *paths)
{
    size_t position = 0;
    struct str key, value;
    char before = '{';
    if (json_count(object) == 0)
        buffer_append_char(out, '{');
    while (json_next_member(object, &position, &key, &value)) {
        bool hidden;
        struct paths left = below(paths, key, &hidden);
        buffer_append_char(out, before);
        before = ',';
        buffer_append(out, str_slice(key.bytes - 1, key.length + 2));
        buffer_append_char(out, ':');
        if (hidden)
            buffer_append(out, STR("\"[REDACTED]\""));
        else
            write_value(out, value, &left);
        free(left.items);
    }
    buffer_append_char(out, '}');
}

static void write_array(struct buffer *out, struct str array, const struct paths *paths)
{
    size_t position = 0;
    struct str element;
    char before = '[';
    if (json_count(array) == 0)
        buffer_append_char(out, '[');
    while (json_next_element(array, &position, &element)) {
        buffer_append_char(out, before);
        before = ',';
        write_value(out, element, paths);
    }
    buffer_append_char(out, ']');
}

static void write_value(struct buffer *out, struct str value, const struct paths *paths)
{
    enum json_type type = paths->count ? json_type(value) : JSON_NONE;
    if (type == JSON_OBJECT)
        write_object(out, value, paths);
    else if (type == JSON_ARRAY)
        write_array(out, value, paths);
    else
        append_compact(out, value);
}

static void add_paths(struct paths *paths, const struct config_workflow *workflow)
{
    const struct config_strings *fields = &workflow->redact_fields;
    paths->items =
        memory_grow_array(paths->items, paths->count + fields->count, sizeof *paths->items);
    for (size_t i = 0; i < fields->count; i++)
        paths->items[paths->count++] = str_from(fields->items[i]);
}

void redact_write(struct buffer *out, struct str value, const struct config *config,
                  const char *workflow_name)
{
    struct paths paths = {NULL, 0};
    const struct config_workflow *workflow = config_workflow_find(config, str_from(workflow_name));
    if (workflow) {
        add_paths(&paths, workflow);
    } else {
        for (size_t i = 0; i < config->workflow_count; i++)
            add_paths(&paths, &config->workflows[i]);
    }
    write_value(out, value, &paths);
    free(paths.items);
}
