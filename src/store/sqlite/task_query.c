/* Lists of tasks by conditions and in orders that vary. */
#include <stdio.h>

#include "columns.h"
#include "task_rows.h"
#include "taskgate/core/buffer.h"

static bool is_by_deadline(const struct store_task_query *query)
{
    return query->order == STORE_BY_DECIDE_BY;
}

static void append_cursor(struct buffer *sql, const struct store_task_query *query)
{
    if (query->behind_sequence == 0)
        return;
    if (is_by_deadline(query))
        buffer_append_text(sql, " AND " DECIDE_BY_KEY " >= :key AND (" DECIDE_BY_KEY
                                " > :key OR sequence > :behind)");
    else
        buffer_append_text(sql, " AND sequence < :behind");
}

static void append_order(struct buffer *sql, const struct store_task_query *query)
{
    buffer_append_text(sql, is_by_deadline(query) ? " ORDER BY " DECIDE_BY_KEY ", sequence"
                                                  : " ORDER BY sequence DESC");
    buffer_append_text(sql, " LIMIT :limit");
}

/* The first rows in one state, of one holder where there is one: an index gives them in order, so
 * that a page costs a page, however many tasks there are. */
static void append_page(struct buffer *sql, const struct store_task_query *query,
                        const char *condition)
{
    buffer_append_format(sql, "SELECT * FROM (SELECT sequence FROM task WHERE %s", condition);
    append_cursor(sql, query);
    if (query->source.length > 0)
        buffer_append_text(sql, " AND source = :source");
    if (query->tool.length > 0)
        buffer_append_text(sql, " AND tool = :tool");
    if (query->workflow.length > 0)
        buffer_append_text(sql, " AND workflow = :workflow");
    if (query->principal.length > 0)
        buffer_append_text(sql, " AND principal = :principal");
    if (query->without_promoted)
        buffer_append_text(sql, " AND NOT promoted");
    if (query->owner.length > 0 || query->session.length > 0)
        buffer_append_text(sql, " AND action <> '" TASK_ACTION_ANSWER "'");
    append_order(sql, query);
    buffer_append_char(sql, ')');
}

/* The indexes have both orders within each state. Among several states SQLite would sort all their
 * rows, or look through those of all states. `holder`: a condition and " AND ", or "". */
static void append_page_of_each_state(struct buffer *sql, const struct store_task_query *query,
                                      const char *holder)
{
    const char *joint = "";
    for (unsigned state = 0; state < TASK_STATE_COUNT; state++) {
        char condition[80];
        if (query->states != 0 && !(query->states & (1u << state)))
            continue;
        snprintf(condition, sizeof condition, "%sstate = %u", holder, state);
        buffer_append_text(sql, joint);
        append_page(sql, query, condition);
        joint = " UNION ALL ";
    }
}

static void append_bounded(struct buffer *sql, const char *column, size_t most_bytes)
{
    if (most_bytes == 0)
        buffer_append_text(sql, ", ''");
    else
        buffer_append_format(sql,
                             ", iif(length(CAST(task_request.%s AS BLOB)) <= :bytes,"
                             " task_request.%s, '')",
                             column, column);
}

/* No request, no outcome, and no arguments (nor what stands beside them) but those that are asked
 * for: a page of them could fill the memory. */
static void append_query(struct buffer *sql, const struct store_task_query *query)
{
    const bool by_owner = query->owner.length > 0, by_session = query->session.length > 0;
    static const char *const columns[] = {"arguments", "meta", "other_params",
                                          "original_arguments"};
    buffer_append_text(sql, "SELECT " TASK_COLUMNS);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        append_bounded(sql, columns[i], query->most_argument_bytes);
    buffer_append_text(sql, query->most_argument_bytes > 0 ? ", task_request.shown" : ", ''");
    buffer_append_text(sql, " FROM task");
    buffer_append_text(sql, " JOIN task_request ON task_request.task = task.sequence"
                            " WHERE task.sequence IN (");
    if (by_owner)
        append_page_of_each_state(sql, query, "owner = :owner AND ");
    if (by_owner && by_session)
        buffer_append_text(sql, " UNION ALL ");
    if (by_session)
        append_page_of_each_state(sql, query, "session = :session AND session <> '' AND ");
    if (!by_owner && !by_session)
        append_page_of_each_state(sql, query, "");
    buffer_append_char(sql, ')');
    append_order(sql, query);
}

static void bind_named_text(sqlite3_stmt *statement, const char *name, struct str value)
{
    int index = sqlite3_bind_parameter_index(statement, name);
    if (index > 0)
        database_bind_str(statement, index, value);
}

static void bind_named_number(sqlite3_stmt *statement, const char *name, int64_t value)
{
    int index = sqlite3_bind_parameter_index(statement, name);
    if (index > 0)
        sqlite3_bind_int64(statement, index, value);
}

static sqlite3_stmt *prepare(struct database *database, const struct store_task_query *query,
                             size_t limit)
{
    struct buffer sql;
    sqlite3_stmt *statement = NULL;
    buffer_init(&sql);
    append_query(&sql, query);
    sqlite3_prepare_v2(database->handle, sql.bytes, (int)sql.length, &statement, NULL);
    buffer_finish(&sql);
    bind_named_text(statement, ":owner", query->owner);
    bind_named_text(statement, ":session", query->session);
    bind_named_text(statement, ":source", query->source);
    bind_named_text(statement, ":tool", query->tool);
    bind_named_text(statement, ":workflow", query->workflow);
    bind_named_text(statement, ":principal", query->principal);
    bind_named_number(statement, ":behind", query->behind_sequence);
    bind_named_number(statement, ":key", query->behind_decide_by_ms);
    bind_named_number(statement, ":bytes", (int64_t)(query->most_argument_bytes & INT64_MAX));
    bind_named_number(statement, ":limit", (int64_t)limit);
    return statement;
}

static bool visit_all(sqlite3_stmt *row, struct task *(*read)(sqlite3_stmt *row),
                      task_visitor visit, void *context)
{
    int code = row ? SQLITE_ROW : SQLITE_ERROR;
    while (code == SQLITE_ROW && (code = sqlite3_step(row)) == SQLITE_ROW) {
        if (!visit(context, read(row), sqlite3_column_int64(row, 0)))
            code = SQLITE_DONE;
    }
    return code == SQLITE_DONE;
}

bool task_rows_list_waiting(struct database *database, const struct store_task_query *query,
                            task_visitor visit, void *context)
{
    sqlite3_stmt *row = database_statement(database, STATEMENT_TASK_WAITING);
    database_bind_str(row, 1, query->source);
    database_bind_str(row, 2, query->tool);
    database_bind_str(row, 3, query->workflow);
    database_bind_str(row, 4, query->principal);
    bool done = visit_all(row, task_rows_read_waiting, visit, context);
    database_release(row);
    return done;
}

bool task_rows_list(struct database *database, const struct store_task_query *query, size_t limit,
                    task_visitor visit, void *context)
{
    sqlite3_stmt *row = prepare(database, query, limit);
    bool done = visit_all(row, task_rows_read, visit, context);
    sqlite3_finalize(row);
    return done;
}
