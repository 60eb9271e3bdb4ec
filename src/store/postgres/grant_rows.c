/* Grants as rows of one table. */
#include "grant_list.h"
#include "rows.h"

static bool take_rows(PGresult *rows, struct grant_list *list)
{
    for (int i = 0; rows && i < PQntuples(rows); i++)
        *grant_list_add(list) = (struct store_grant){
            .sequence = row_number(rows, i, 0),
            .id = row_text(rows, i, 1),
            .task_id = row_text(rows, i, 2),
            .owner = row_text(rows, i, 3),
            .principal = row_text(rows, i, 4),
            .source = row_text(rows, i, 5),
            .tool = row_text(rows, i, 6),
            .workflow = row_text(rows, i, 7),
            .rule = row_text(rows, i, 8),
            .rule_digest = row_text(rows, i, 9),
            .definition_digest = row_text(rows, i, 10),
            .bound_digest = row_text(rows, i, 11),
            .terms = row_text(rows, i, 12),
            .arguments = row_text(rows, i, 13),
            .votes = row_text(rows, i, 14),
            .reason = row_text(rows, i, 15),
            .calls = row_number(rows, i, 16),
            .used = row_number(rows, i, 17),
            .for_ms = row_number(rows, i, 18),
            .created_ms = row_number(rows, i, 19),
            .until_ms = row_number(rows, i, 20),
            .ended_ms = row_number(rows, i, 21),
            .end_cause = row_text(rows, i, 22),
            .ended_by = row_text(rows, i, 23),
            .end_reason = row_text(rows, i, 24),
        };
    PQclear(rows);
    return rows != NULL;
}

static bool insert(struct database *database, const struct store_grant *grant)
{
    database->known.has_grants = true;
    return connection_write(
        database, STATEMENT_GRANT_INSERT,
        VALUES(TEXT(grant->id), TEXT(grant->task_id), TEXT(grant->owner), TEXT(grant->principal),
               TEXT(grant->source), TEXT(grant->tool), TEXT(grant->workflow), TEXT(grant->rule),
               TEXT(grant->rule_digest), TEXT(grant->definition_digest), TEXT(grant->bound_digest),
               TEXT(grant->terms), TEXT(grant->arguments), TEXT(grant->votes), TEXT(grant->reason),
               NUMBER(grant->calls), NUMBER(grant->for_ms), NUMBER(grant->created_ms),
               NUMBER(grant->until_ms)));
}

/* ---- finding ---- */

static bool find_of_tool(struct database *database, const struct task *task,
                         struct grant_list *list)
{
    const struct known *known = &database->known;
    if (!known_ask(database, STATEMENT_GRANT_ANY, SENT_GRANTS, &known->has_looked_for_grants))
        return false;
    if (!known->has_grants) /* most of the time there is none at all */
        return true;
    return take_rows(
        connection_read(database, STATEMENT_GRANT_OF_TOOL,
                        VALUES(TEXT(task->owner), TEXT(task->source), TEXT(task->tool))),
        list);
}

static bool get(struct database *database, const char *id, struct grant_list *list)
{
    return take_rows(connection_read(database, STATEMENT_GRANT_GET, VALUES(TEXT(id))), list);
}

static bool find_active(struct database *database, struct grant_list *list)
{
    return take_rows(connection_read(database, STATEMENT_GRANT_ACTIVE, NO_VALUES), list);
}

static bool find_due(struct database *database, int64_t now_ms, size_t limit,
                     struct grant_list *list)
{
    return take_rows(connection_read(database, STATEMENT_GRANT_DUE,
                                     VALUES(NUMBER(now_ms), NUMBER((int64_t)limit))),
                     list);
}

static bool page(struct database *database, bool in_force_only, int64_t before_sequence,
                 size_t limit, struct grant_list *list)
{
    int64_t before = before_sequence > 0 ? before_sequence : INT64_MAX;
    return take_rows(
        connection_read(database,
                        in_force_only ? STATEMENT_GRANT_PAGE_ACTIVE : STATEMENT_GRANT_PAGE,
                        VALUES(NUMBER(before), NUMBER((int64_t)limit))),
        list);
}

static bool count(struct database *database, int64_t *count)
{
    return rows_take_number(connection_read(database, STATEMENT_GRANT_COUNT, NO_VALUES), count);
}

static bool next_end(struct database *database, int64_t *at_ms)
{
    return rows_take_number(connection_read(database, STATEMENT_GRANT_NEXT_END, NO_VALUES), at_ms);
}

/* ---- changing ---- */

static enum row_result use(struct database *database, const char *id)
{
    return connection_change(database, STATEMENT_GRANT_USE, VALUES(TEXT(id)), NULL);
}

static bool end(struct database *database, const char *id, int64_t now_ms,
                const struct grant_end *how)
{
    return connection_write(
        database, STATEMENT_GRANT_END,
        VALUES(TEXT(id), NUMBER(now_ms), TEXT(how->cause), TEXT(how->person), TEXT(how->reason)));
}

const struct grant_rows postgres_grant_rows = {
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
