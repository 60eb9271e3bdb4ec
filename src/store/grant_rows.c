/* Grants as rows of one table. */
#include "grant_rows.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"

/* The texts by their columns. */
static const struct {
    int column;
    size_t offset;
} texts[] = {
    {1, offsetof(struct store_grant, id)},
    {2, offsetof(struct store_grant, task_id)},
    {3, offsetof(struct store_grant, owner)},
    {4, offsetof(struct store_grant, principal)},
    {5, offsetof(struct store_grant, source)},
    {6, offsetof(struct store_grant, tool)},
    {7, offsetof(struct store_grant, workflow)},
    {8, offsetof(struct store_grant, rule)},
    {9, offsetof(struct store_grant, rule_digest)},
    {10, offsetof(struct store_grant, definition_digest)},
    {11, offsetof(struct store_grant, bound_digest)},
    {12, offsetof(struct store_grant, terms)},
    {13, offsetof(struct store_grant, arguments)},
    {14, offsetof(struct store_grant, votes)},
    {15, offsetof(struct store_grant, reason)},
    {22, offsetof(struct store_grant, end_cause)},
    {23, offsetof(struct store_grant, ended_by)},
    {24, offsetof(struct store_grant, end_reason)},
};
#define TEXT_COUNT (sizeof texts / sizeof *texts)
#define INSERTED_TEXTS 15 /* the first ones; the others come at the end of a grant */

static char **text_at(const struct store_grant *grant, size_t i)
{
    return (char **)(void *)((char *)grant + texts[i].offset);
}

void grant_finish(struct store_grant *grant)
{
    for (size_t i = 0; i < TEXT_COUNT; i++)
        free(*text_at(grant, i));
    *grant = (struct store_grant){.sequence = 0};
}

void grant_list_finish(struct grant_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        grant_finish(&list->items[i]);
    free(list->items);
    *list = (struct grant_list){NULL, 0};
}

static void read_row(struct store_grant *grant, sqlite3_stmt *row)
{
    *grant = (struct store_grant){
        .sequence = sqlite3_column_int64(row, 0),
        .calls = sqlite3_column_int64(row, 16),
        .used = sqlite3_column_int64(row, 17),
        .for_ms = sqlite3_column_int64(row, 18),
        .created_ms = sqlite3_column_int64(row, 19),
        .until_ms = sqlite3_column_int64(row, 20),
        .ended_ms = sqlite3_column_int64(row, 21),
    };
    for (size_t i = 0; i < TEXT_COUNT; i++)
        *text_at(grant, i) = database_take_text(row, texts[i].column);
}

bool grant_rows_read(sqlite3_stmt *statement, struct grant_list *list)
{
    int code;
    *list = (struct grant_list){NULL, 0};
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        list->items = memory_grow_array(list->items, list->count + 1, sizeof *list->items);
        read_row(&list->items[list->count++], statement);
    }
    database_release(statement);
    return code == SQLITE_DONE;
}

bool grant_rows_insert(struct database *database, const struct store_grant *grant)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_GRANT_INSERT);
    const int64_t numbers[] = {grant->calls, grant->for_ms, grant->created_ms, grant->until_ms};
    int index = 1;
    for (size_t i = 0; i < INSERTED_TEXTS; i++)
        database_bind_text(row, index++, *text_at(grant, i));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sqlite3_bind_int64(row, index++, numbers[i]);
    return database_run(row);
}
