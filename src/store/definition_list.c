/* Definitions and what they own. */
#include "definition_list.h"

#include <stdio.h>
#include <stdlib.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"

static void finish(struct store_definition *definition)
{
    char *const texts[] = {
        definition->id,         definition->source, definition->kind,
        definition->name,       definition->digest, definition->accepted,
        definition->counted,    definition->text,   definition->accepted_text,
        definition->difference,
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
}

struct store_definition *definition_list_add(struct definition_list *list)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 8;
        list->items = memory_grow_array(list->items, list->capacity, sizeof *list->items);
    }
    struct store_definition *added = &list->items[list->count++];
    *added = (struct store_definition){.sequence = 0};
    return added;
}

void definition_list_finish(struct definition_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        finish(&list->items[i]);
    free(list->items);
    *list = (struct definition_list){NULL, 0, 0};
}

void store_definition_id(struct str source, struct str kind, struct str name,
                         char id[STORE_DEFINITION_ID_BYTES])
{
    struct buffer text;
    char digest[DIGEST_HEX_BYTES];
    buffer_init(&text);
    const struct str parts[] = {source, kind, name};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buffer_append(&text, parts[i]);
        buffer_append_char(&text, '\0');
    }
    digest_sha256_hex(buffer_str(&text), digest);
    buffer_finish(&text);
    snprintf(id, STORE_DEFINITION_ID_BYTES, STORE_DEFINITION_ID_PREFIX "%.32s", digest);
}
