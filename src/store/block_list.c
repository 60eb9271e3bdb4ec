/* Blocks, what they own, and whom they are about. */
#include "block_list.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

static const char *const scopes[STORE_BLOCK_SCOPES] = {"owner", "client", "source"};

const char *store_block_scope_name(enum store_block_scope scope)
{
    return scopes[scope];
}

enum store_block_scope store_block_scope_of(struct str name)
{
    size_t i = 0;
    while (i < STORE_BLOCK_SCOPES && !str_equal(name, str_from(scopes[i])))
        i++;
    return (enum store_block_scope)i;
}

bool store_block_fits(const struct store_block *block, const struct store_block_caller *caller)
{
    bool is_source = str_equal(caller->source, str_from(block->source));
    switch (store_block_scope_of(str_from(block->scope))) {
    case STORE_BLOCK_OWNER:
        return str_equal(caller->owner, str_from(block->owner));
    case STORE_BLOCK_CLIENT:
        return is_source && str_equal(caller->client, str_from(block->client));
    case STORE_BLOCK_SOURCE:
    case STORE_BLOCK_SCOPES: /* of a later version */
        break;
    }
    return is_source;
}

struct store_block *block_list_add(struct block_list *list)
{
    list->items = memory_grow_array(list->items, list->count + 1, sizeof *list->items);
    struct store_block *added = &list->items[list->count++];
    *added = (struct store_block){.sequence = 0};
    return added;
}

void block_list_finish(struct block_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct store_block *block = &list->items[i];
        char *const texts[] = {block->id,        block->task_id, block->scope,  block->owner,
                               block->source,    block->client,  block->reason, block->person,
                               block->principal, block->ended_by};
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
            free(texts[j]);
    }
    free(list->items);
    *list = (struct block_list){NULL, 0};
}
