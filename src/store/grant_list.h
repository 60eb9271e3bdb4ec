/* Grants as values. */
#pragma once

#include <stddef.h>

#include "taskgate/store/grants.h"

/* Grants that the holder owns. */
struct grant_list {
    struct store_grant *items;
    size_t count;
};
/* A further one, empty. Finish the list before it moves. */
struct store_grant *grant_list_add(struct grant_list *list);
void grant_list_finish(struct grant_list *list);
void grant_finish(struct store_grant *grant);
