/* Lists of tasks by conditions and in orders that vary. */
#include <stdio.h>
#include <stdlib.h>

#include "task_operations.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"

/* More than can ever be due at once under the default limits. */
#define EXPIRE_BEFORE_LIST 100000
#define MOST_BYTES ((size_t)1024 * 1024)
/* Rows that are looked at for one page, when not all of them are listed. */
#define MOST_ROWS 5000

/* The plus keeps SQLite from looking through everybody's tasks in a state, when an index on the
 * holder gives the few that matter. */
static void append_states(struct buffer *sql, unsigned states, bool held)
{
    buffer_append_text(sql, held ? " AND +state IN (" : " AND state IN (");
    const char *separator = "";
    for (unsigned state = 0; state < TASK_STATE_COUNT; state++) {
        if (!(states & (1u << state)))
            continue;
        buffer_append_format(sql, "%s%u", separator, state);
        separator = ", ";
    }
    buffer_append_char(sql, ')');
}

/* As the index task_by_decide_by has it: a task without a deadline is the last. */
#define DECIDE_BY_KEY "iif(decide_by_ms = 0, 9223372036854775807, decide_by_ms)"

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

/* The first rows under one condition on who holds them, or on their state: the index on that column
 * gives them in order, so that a page costs a page, however many tasks there are. NULL: any. */
static void append_page(struct buffer *sql, const struct store_task_query *query,
                        const char *holder)
{
    buffer_append_format(sql, "SELECT * FROM (SELECT sequence FROM task WHERE %s",
                         holder ? holder : "1");
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
    if (query->states != 0)
        append_states(sql, query->states, holder != NULL);
    append_order(sql, query);
    buffer_append_char(sql, ')');
}

/* The indexes have both orders within each state. Among several states SQLite would sort all their
 * rows. */
static void append_page_of_each_state(struct buffer *sql, const struct store_task_query *query)
{
    const char *joint = "";
    for (unsigned state = 0; state < TASK_STATE_COUNT; state++) {
        char condition[24];
        if (query->states != 0 && !(query->states & (1u << state)))
            continue;
        snprintf(condition, sizeof condition, "state = %u", state);
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
    static const char *const columns[] = {"arguments", "meta", "other_params"};
    buffer_append_text(sql, "SELECT " TASK_COLUMNS);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        append_bounded(sql, columns[i], query->most_argument_bytes);
    buffer_append_text(sql, query->most_argument_bytes > 0 ? ", task_request.shown" : ", ''");
    buffer_append_text(sql, " FROM task");
    buffer_append_text(sql, " JOIN task_request ON task_request.task = task.sequence"
                            " WHERE task.sequence IN (");
    if ((is_by_deadline(query) || query->states != 0) && !by_owner && !by_session)
        append_page_of_each_state(sql, query);
    else if (by_owner || !by_session)
        append_page(sql, query, by_owner ? "owner = :owner" : NULL);
    if (by_owner && by_session)
        buffer_append_text(sql, " UNION ");
    if (by_session)
        append_page(sql, query, "session = :session AND session <> ''");
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

static sqlite3_stmt *prepare(struct batch *batch, const struct store_task_query *query)
{
    struct buffer sql;
    sqlite3_stmt *statement = NULL;
    buffer_init(&sql);
    append_query(&sql, query);
    sqlite3_prepare_v2(batch->database->handle, sql.bytes, (int)sql.length, &statement, NULL);
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
    /* One more: has_more. */
    bind_named_number(statement, ":limit", query->accepts ? MOST_ROWS : (int64_t)query->limit + 1);
    return statement;
}

/* Takes the task of a row onto the page, if it is listed. Returns its size. */
static size_t look(const struct store_task_query *query, struct store_reply *reply,
                   sqlite3_stmt *row)
{
    struct task *task = task_rows_read(row);
    size_t bytes = task_rows_bytes(task);
    reply->last_sequence = sqlite3_column_int64(row, 0);
    reply->last_decide_by_ms = task->decide_by_ms > 0 ? task->decide_by_ms : INT64_MAX;
    if (query->accepts && !query->accepts(query->context, task)) {
        task_unref(task);
        return bytes;
    }
    reply->sequences[reply->task_count] = reply->last_sequence;
    reply->tasks[reply->task_count++] = task;
    return bytes;
}

static bool run_list(struct batch *batch, struct operation *operation)
{
    const struct store_task_query *query = &operation->query;
    struct store_reply *reply = &operation->reply;
    if (!task_operations_expire(batch, EXPIRE_BEFORE_LIST))
        return false;
    sqlite3_stmt *row = prepare(batch, query);
    reply->tasks = memory_alloc_array(query->limit + 1, sizeof(struct task *));
    reply->sequences = memory_alloc_array(query->limit + 1, sizeof *reply->sequences);
    size_t bytes = 0, most_bytes = query->most_bytes > 0 ? query->most_bytes : MOST_BYTES;
    size_t looked_at = 0;
    int code = SQLITE_DONE;
    while (row && (code = sqlite3_step(row)) == SQLITE_ROW) {
        if (reply->task_count == query->limit || bytes > most_bytes) {
            reply->has_more = true;
            code = SQLITE_DONE;
            break;
        }
        bytes += look(query, reply, row);
        looked_at++;
    }
    reply->has_more = reply->has_more || (query->accepts && looked_at == MOST_ROWS);
    bool prepared = row != NULL;
    sqlite3_finalize(row);
    return prepared && code == SQLITE_DONE;
}

const struct operation_kind operation_task_list = {"list", false, run_list};
