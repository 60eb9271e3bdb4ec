/* Grants and what they own. */
#include "grant_list.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"

void grant_finish(struct store_grant *grant)
{
    char *const texts[] = {
        grant->id,           grant->task_id,
        grant->owner,        grant->principal,
        grant->source,       grant->tool,
        grant->workflow,     grant->rule,
        grant->rule_digest,  grant->definition_digest,
        grant->bound_digest, grant->terms,
        grant->arguments,    grant->votes,
        grant->reason,       grant->end_cause,
        grant->ended_by,     grant->end_reason,
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    *grant = (struct store_grant){.sequence = 0};
}

struct store_grant *grant_list_add(struct grant_list *list)
{
    list->items = memory_grow_array(list->items, list->count + 1, sizeof *list->items);
    struct store_grant *added = &list->items[list->count++];
    *added = (struct store_grant){.sequence = 0};
    return added;
}

void grant_list_finish(struct grant_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        grant_finish(&list->items[i]);
    free(list->items);
    *list = (struct grant_list){NULL, 0};
}
