/* Grants as rows. */
#pragma once

#include "operation.h"
#include "taskgate/store/grants.h"

/* Grants that the holder owns. */
struct grant_list {
    struct store_grant *items;
    size_t count;
};
void grant_list_finish(struct grant_list *list);
/* All rows of a bound statement of GRANT_COLUMNS, which it releases. false: the database failed;
 * the list is to be finished in any case. */
bool grant_rows_read(sqlite3_stmt *statement, struct grant_list *list);
bool grant_rows_insert(struct database *database, const struct store_grant *grant);
void grant_finish(struct store_grant *grant);
