/* Definitions as values, and as rows of a database. */
#pragma once

#include <stddef.h>

#include "taskgate/store/definitions.h"

/* Definitions that the holder owns. */
struct definition_list {
    struct store_definition *items;
    size_t count, capacity;
};
/* A further one, empty. Finish the list before it moves. */
struct store_definition *definition_list_add(struct definition_list *list);
void definition_list_finish(struct definition_list *list);

struct database;
/* Finders add to `list`, which the caller finishes, also when they fail. */
struct definition_rows {
    bool (*insert)(struct database *database, const struct store_definition *definition);
    /* By its id: all but source, kind and name. */
    bool (*update)(struct database *database, const struct store_definition *definition);
    bool (*get)(struct database *database, const char *id, struct definition_list *list);
    /* Without texts. */
    bool (*page)(struct database *database, const struct store_definition_query *query,
                 struct definition_list *list);
    bool (*count)(struct database *database, const char *source, int64_t *count);
};
