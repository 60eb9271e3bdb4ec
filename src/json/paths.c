/* A value without what stands at some paths. */
#include "taskgate/json/paths.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#include "unescape.h"

/* The rests of the paths that still fit where the walk is. */
struct rests {
    struct str *items;
    size_t count;
};

static void paths_write_value(struct buffer *out, struct str value, const struct rests *rests);

/* The rest of the paths behind this member. True when one of them ends here. */
static bool paths_step(const struct rests *rests, struct str key, struct rests *below)
{
    below->count = 0;
    for (size_t i = 0; i < rests->count; i++) {
        struct str segment, rest;
        bool goes_on = str_cut(rests->items[i], '.', &segment, &rest);
        if (!unescape_equals(key, segment))
            continue;
        if (!goes_on)
            return true;
        below->items[below->count++] = rest;
    }
    return false;
}

static void paths_write_object(struct buffer *out, struct str object, const struct rests *rests)
{
    struct rests below = {memory_alloc_array(rests->count, sizeof *below.items), 0};
    size_t position = 0;
    struct str key, value;
    char before = '{';
    while (json_next_member(object, &position, &key, &value)) {
        if (paths_step(rests, key, &below))
            continue;
        buffer_append_char(out, before);
        before = ',';
        buffer_append(out, str_slice(key.bytes - 1, key.length + 2)); /* with its quotes */
        buffer_append_char(out, ':');
        paths_write_value(out, value, &below);
    }
    buffer_append_text(out, before == '{' ? "{}" : "}");
    free(below.items);
}

static void paths_write_array(struct buffer *out, struct str array, const struct rests *rests)
{
    size_t position = 0;
    struct str element;
    char before = '[';
    while (json_next_element(array, &position, &element)) {
        buffer_append_char(out, before);
        before = ',';
        paths_write_value(out, element, rests);
    }
    buffer_append_text(out, before == '[' ? "[]" : "]");
}

static void paths_write_value(struct buffer *out, struct str value, const struct rests *rests)
{
    enum json_type type = json_type(value);
    if (rests->count > 0 && type == JSON_OBJECT)
        paths_write_object(out, value, rests);
    else if (rests->count > 0 && type == JSON_ARRAY)
        paths_write_array(out, value, rests);
    else
        buffer_append(out, value);
}

void json_write_without_paths(struct buffer *out, struct str value, char *const *paths,
                              size_t count)
{
    struct rests rests = {memory_alloc_array(count, sizeof *rests.items), count};
    for (size_t i = 0; i < count; i++)
        rests.items[i] = str_from(paths[i]);
    paths_write_value(out, value, &rests);
    free(rests.items);
}
