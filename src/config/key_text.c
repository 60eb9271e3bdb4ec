/* The table of keys as its readers ask it: by name, and in words. */
#include <stdlib.h>
#include <string.h>

#include "keys.h"
#include "taskgate/core/memory.h"

const struct key *key_find(const char *pattern, const char *name)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const struct key *key = &config_keys[i];
        if (strcmp(key->parent, pattern) == 0 && strcmp(key->name, name) == 0)
            return key;
    }
    return NULL;
}

char *key_pattern(const struct key *key)
{
    const char *suffix = key->type == KEY_LIST ? "[]" : key->type == KEY_NAMED ? ".*" : "";
    return memory_format("%s%s%s%s", key->parent, *key->parent ? "." : "", key->name, suffix);
}

/* "a, b or c". */
static char *list_choices(const struct choices *choices)
{
    struct buffer text;
    buffer_init(&text);
    for (size_t i = 0; i < choices->count; i++) {
        const char *joint = i == 0 ? "" : i + 1 == choices->count ? " or " : ", ";
        buffer_append_format(&text, "%s%s", joint, choices->items[i].name);
    }
    return buffer_take(&text, NULL);
}

char *key_type_text(const struct key *key)
{
    static const char *const names[] = {
        [KEY_TEXT] = "text",
        [KEY_BOOL] = "true or false",
        [KEY_INTEGER] = "a whole number",
        [KEY_REAL] = "a number",
        [KEY_BYTES] = "a size, such as 4MiB",
        [KEY_DURATION] = "a duration, such as 10m",
        [KEY_TEXTS] = "a list of texts",
        [KEY_TEXT_OR_TEXTS] = "a text or a list of texts",
        [KEY_TEXT_MAP] = "names with texts",
        [KEY_QUORUM] = "a whole number, or groups with whole numbers",
        [KEY_ANY] = "anything",
        [KEY_MAPPING] = "a mapping",
        [KEY_LIST] = "a list of mappings",
        [KEY_NAMED] = "a mapping of names",
    };
    if (key->type != KEY_CHOICE && key->type != KEY_CHOICES)
        return memory_copy_text(names[key->type]);
    char *choices = list_choices(key->choices);
    char *text = memory_format(key->type == KEY_CHOICES ? "a list of %s" : "%s", choices);
    free(choices);
    return text;
}
