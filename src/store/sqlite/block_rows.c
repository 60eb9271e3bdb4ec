/* Blocks as rows of one table. */
#include "block_list.h"
#include "rows.h"

#include <string.h>

static bool read_rows(sqlite3_stmt *row, struct block_list *list)
{
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW)
        *block_list_add(list) = (struct store_block){
            .sequence = sqlite3_column_int64(row, 0),
            .id = database_take_text(row, 1),
            .task_id = database_take_text(row, 2),
            .scope = database_take_text(row, 3),
            .owner = database_take_text(row, 4),
            .source = database_take_text(row, 5),
            .client = database_take_text(row, 6),
            .principal = database_take_text(row, 7),
            .reason = database_take_text(row, 8),
            .person = database_take_text(row, 9),
            .created_ms = sqlite3_column_int64(row, 10),
            .until_ms = sqlite3_column_int64(row, 11),
            .ended_ms = sqlite3_column_int64(row, 12),
            .ended_by = database_take_text(row, 13),
        };
    database_release(row);
    return code == SQLITE_DONE;
}

static bool insert(struct database *database, const struct store_block *block)
{
    const char *const texts[] = {block->id,        block->task_id, block->scope,
                                 block->owner,     block->source,  block->client,
                                 block->principal, block->reason,  block->person};
    const int count = sizeof texts / sizeof *texts;
    sqlite3_stmt *row = database_statement(database, STATEMENT_BLOCK_INSERT);
    for (int i = 0; i < count; i++)
        database_bind_text(row, i + 1, texts[i]);
    sqlite3_bind_int64(row, count + 1, block->created_ms);
    sqlite3_bind_int64(row, count + 2, block->until_ms);
    return database_run(row);
}

static bool get(struct database *database, const char *id, struct block_list *list)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_BLOCK_GET);
    database_bind_text(row, 1, id);
    return read_rows(row, list);
}

static bool find_active(struct database *database, struct block_list *list)
{
    return read_rows(database_statement(database, STATEMENT_BLOCK_ACTIVE), list);
}

static bool page(struct database *database, bool in_force_only, int64_t before_sequence,
                 size_t limit, struct block_list *list)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_BLOCK_PAGE);
    sqlite3_bind_int64(row, 1, before_sequence > 0 ? before_sequence : INT64_MAX);
    sqlite3_bind_int64(row, 2, in_force_only);
    sqlite3_bind_int64(row, 3, (int64_t)limit);
    return read_rows(row, list);
}

static bool end(struct database *database, const char *id, int64_t now_ms, const char *person)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_BLOCK_END);
    database_bind_text(row, 1, id);
    sqlite3_bind_int64(row, 2, now_ms);
    database_bind_text(row, 3, person);
    return database_run(row);
}

static bool find_tasks(struct database *database, const struct store_block *block,
                       struct id_list *list)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_BLOCK_TASKS);
    database_bind_text(row, 1, block->scope);
    database_bind_text(row, 2, block->owner);
    database_bind_text(row, 3, block->source);
    database_bind_text(row, 4, block->client);
    return rows_read_ids(row, list);
}

const struct block_rows sqlite_block_rows = {
    .insert = insert,
    .get = get,
    .find_active = find_active,
    .page = page,
    .end = end,
    .find_tasks = find_tasks,
};
