/* Blocks as rows of one table. */
#include "block_list.h"
#include "rows.h"

static bool take_rows(PGresult *rows, struct block_list *list)
{
    for (int i = 0; rows && i < PQntuples(rows); i++)
        *block_list_add(list) = (struct store_block){
            .sequence = row_number(rows, i, 0),
            .id = row_text(rows, i, 1),
            .task_id = row_text(rows, i, 2),
            .scope = row_text(rows, i, 3),
            .owner = row_text(rows, i, 4),
            .source = row_text(rows, i, 5),
            .client = row_text(rows, i, 6),
            .principal = row_text(rows, i, 7),
            .reason = row_text(rows, i, 8),
            .person = row_text(rows, i, 9),
            .created_ms = row_number(rows, i, 10),
            .until_ms = row_number(rows, i, 11),
            .ended_ms = row_number(rows, i, 12),
            .ended_by = row_text(rows, i, 13),
        };
    PQclear(rows);
    return rows != NULL;
}

static bool insert(struct database *database, const struct store_block *block)
{
    return connection_write(database, STATEMENT_BLOCK_INSERT,
                            VALUES(TEXT(block->id), TEXT(block->task_id), TEXT(block->scope),
                                   TEXT(block->owner), TEXT(block->source), TEXT(block->client),
                                   TEXT(block->principal), TEXT(block->reason), TEXT(block->person),
                                   NUMBER(block->created_ms), NUMBER(block->until_ms)));
}

static bool get(struct database *database, const char *id, struct block_list *list)
{
    return take_rows(connection_read(database, STATEMENT_BLOCK_GET, VALUES(TEXT(id))), list);
}

static bool find_active(struct database *database, struct block_list *list)
{
    return take_rows(connection_read(database, STATEMENT_BLOCK_ACTIVE, NO_VALUES), list);
}

static bool page(struct database *database, bool in_force_only, int64_t before_sequence,
                 size_t limit, struct block_list *list)
{
    int64_t before = before_sequence > 0 ? before_sequence : INT64_MAX;
    return take_rows(
        connection_read(database, STATEMENT_BLOCK_PAGE,
                        VALUES(NUMBER(before), NUMBER(in_force_only), NUMBER((int64_t)limit))),
        list);
}

static bool end(struct database *database, const char *id, int64_t now_ms, const char *person)
{
    return connection_write(database, STATEMENT_BLOCK_END,
                            VALUES(TEXT(id), NUMBER(now_ms), TEXT(person)));
}

static bool find_tasks(struct database *database, const struct store_block *block,
                       struct id_list *list)
{
    return rows_take_ids(connection_read(database, STATEMENT_BLOCK_TASKS,
                                         VALUES(TEXT(block->scope), TEXT(block->owner),
                                                TEXT(block->source), TEXT(block->client))),
                         list);
}

const struct block_rows postgres_block_rows = {
    .insert = insert,
    .get = get,
    .find_active = find_active,
    .page = page,
    .end = end,
    .find_tasks = find_tasks,
};
