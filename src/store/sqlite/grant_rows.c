/* Grants as rows of one table. */
#include "grant_list.h"
#include "rows.h"

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

static bool read_rows(sqlite3_stmt *statement, struct grant_list *list)
{
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        read_row(grant_list_add(list), statement);
    database_release(statement);
    return code == SQLITE_DONE;
}

static bool insert(struct database *database, const struct store_grant *grant)
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

/* ---- finding ---- */

static bool find_of_tool(struct database *database, const struct task *task,
                         struct grant_list *list)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_GRANT_OF_TOOL);
    database_bind_text(row, 1, task->owner);
    database_bind_text(row, 2, task->source);
    database_bind_text(row, 3, task->tool);
    return read_rows(row, list);
}

static bool get(struct database *database, const char *id, struct grant_list *list)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_GRANT_GET);
    database_bind_text(row, 1, id);
    return read_rows(row, list);
}

static bool find_active(struct database *database, struct grant_list *list)
{
    return read_rows(database_statement(database, STATEMENT_GRANT_ACTIVE), list);
}

static bool find_due(struct database *database, int64_t now_ms, size_t limit,
                     struct grant_list *list)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_GRANT_DUE);
    sqlite3_bind_int64(row, 1, now_ms);
    sqlite3_bind_int64(row, 2, (int64_t)limit);
    return read_rows(row, list);
}

static bool page(struct database *database, bool in_force_only, int64_t before_sequence,
                 size_t limit, struct grant_list *list)
{
    sqlite3_stmt *row = database_statement(database, in_force_only ? STATEMENT_GRANT_PAGE_ACTIVE
                                                                   : STATEMENT_GRANT_PAGE);
    sqlite3_bind_int64(row, 1, before_sequence > 0 ? before_sequence : INT64_MAX);
    sqlite3_bind_int64(row, 2, (int64_t)limit);
    return read_rows(row, list);
}

static bool count(struct database *database, int64_t *count)
{
    return rows_read_number(database_statement(database, STATEMENT_GRANT_COUNT), count);
}

static bool next_end(struct database *database, int64_t *at_ms)
{
    return rows_read_number(database_statement(database, STATEMENT_GRANT_NEXT_END), at_ms);
}

/* ---- changing ---- */

static enum row_result use(struct database *database, const char *id)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_GRANT_USE);
    database_bind_text(row, 1, id);
    if (!database_run(row))
        return ROW_FAILED;
    return sqlite3_changes(database->handle) == 1 ? ROW_FOUND : ROW_ABSENT;
}

static bool end(struct database *database, const char *id, int64_t now_ms,
                const struct grant_end *how)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_GRANT_END);
    database_bind_text(row, 1, id);
    sqlite3_bind_int64(row, 2, now_ms);
    database_bind_text(row, 3, how->cause);
    database_bind_text(row, 4, how->person);
    database_bind_text(row, 5, how->reason);
    return database_run(row);
}

const struct grant_rows sqlite_grant_rows = {
    .insert = insert,
    .find_of_tool = find_of_tool,
    .get = get,
    .find_active = find_active,
    .find_due = find_due,
    .page = page,
    .count = count,
    .next_end = next_end,
    .use = use,
    .end = end,
};
