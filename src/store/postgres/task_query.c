/* Lists of tasks by conditions and in orders that vary. */
#include <inttypes.h>
#include <stdio.h>

#include "columns.h"
#include "rows.h"
#include "taskgate/core/buffer.h"

/* SQL and its values, which are numbered as they come. */
struct listing {
    const struct store_task_query *query;
    size_t limit;
    struct buffer sql;
    struct value values[VALUES_MAX];
    size_t count;
};

static bool is_by_deadline(const struct store_task_query *query)
{
    return query->order == STORE_BY_DECIDE_BY;
}

static void append(struct listing *list, const char *sql)
{
    buffer_append_text(&list->sql, sql);
}

/* `sql`, and the value in place of its "%s". */
static void append_value(struct listing *list, const char *before, struct value value,
                         const char *behind)
{
    size_t number = 0;
    while (number < list->count && !(list->values[number].kind == value.kind &&
                                     list->values[number].number == value.number &&
                                     str_equal(list->values[number].text, value.text)))
        number++;
    if (number == list->count)
        list->values[list->count++] = value;
    buffer_append_format(&list->sql, "%s$%zu%s%s", before, number + 1,
                         value.kind == VALUE_NUMBER ? "::bigint" : "::text", behind);
}

static void append_text(struct listing *list, const char *before, struct str text)
{
    if (text.length > 0)
        append_value(list, before, STRING(text), "");
}

static void append_cursor(struct listing *list)
{
    const struct value key = NUMBER(list->query->behind_decide_by_ms);
    const struct value behind = NUMBER(list->query->behind_sequence);
    if (list->query->behind_sequence == 0)
        return;
    if (is_by_deadline(list->query)) {
        append_value(list, " AND (" DECIDE_BY_KEY ", sequence) > (", key, "");
        append_value(list, ", ", behind, ")");
    } else {
        append_value(list, " AND sequence < ", behind, "");
    }
}

static void append_order(struct listing *list)
{
    append(list, is_by_deadline(list->query) ? " ORDER BY " DECIDE_BY_KEY ", sequence"
                                             : " ORDER BY sequence DESC");
    append_value(list, " LIMIT ", NUMBER((int64_t)list->limit), "");
}

/* The first rows in one state, of one holder where there is one: an index gives them in order, so
 * that a page costs a page, however many tasks there are. */
static void append_page(struct listing *list, unsigned state, const char *holder, struct str value)
{
    const struct store_task_query *query = list->query;
    buffer_append_format(&list->sql, "(SELECT sequence FROM taskgate_task WHERE state = %u", state);
    append_text(list, holder, value);
    append_cursor(list);
    append_text(list, " AND source = ", query->source);
    append_text(list, " AND tool = ", query->tool);
    append_text(list, " AND workflow = ", query->workflow);
    append_text(list, " AND principal = ", query->principal);
    if (query->without_promoted)
        append(list, " AND promoted = 0");
    if (query->owner.length > 0 || query->session.length > 0)
        append(list, " AND action <> '" TASK_ACTION_ANSWER "'");
    append_order(list);
    append(list, ")");
}

static void append_page_of_each_state(struct listing *list, const char *holder, struct str value)
{
    const struct store_task_query *query = list->query;
    const char *joint = "";
    for (unsigned state = 0; state < TASK_STATE_COUNT; state++) {
        if (query->states != 0 && !(query->states & (1u << state)))
            continue;
        append(list, joint);
        append_page(list, state, holder, value);
        joint = " UNION ALL ";
    }
}

static void append_pages(struct listing *list)
{
    const struct store_task_query *query = list->query;
    const bool by_owner = query->owner.length > 0, by_session = query->session.length > 0;
    if (by_owner)
        append_page_of_each_state(list, " AND owner = ", query->owner);
    if (by_owner && by_session)
        append(list, " UNION ALL ");
    if (by_session)
        append_page_of_each_state(list, " AND session <> '' AND session = ", query->session);
    if (!by_owner && !by_session)
        append_page_of_each_state(list, "", STR_EMPTY);
}

static void append_bounded(struct listing *list, const char *column, size_t most_bytes)
{
    const struct value bytes = NUMBER((int64_t)(most_bytes & INT64_MAX));
    if (most_bytes == 0) {
        append(list, ", ''");
        return;
    }
    buffer_append_format(&list->sql, ", CASE WHEN octet_length(%s) <= ", column);
    append_value(list, "", bytes, "");
    buffer_append_format(&list->sql, " THEN %s ELSE '' END", column);
}

/* No request, no outcome, and no arguments (nor what stands beside them) but those that are asked
 * for: a page of them could fill the memory. */
static void build(struct listing *list)
{
    static const char *const columns[] = {"arguments", "meta", "other_params",
                                          "original_arguments"};
    append(list, "SELECT sequence" TASK_COLUMNS);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        append_bounded(list, columns[i], list->query->most_argument_bytes);
    append(list, list->query->most_argument_bytes > 0 ? ", shown" : ", ''");
    append(list, " FROM taskgate_task WHERE sequence IN (");
    append_pages(list);
    append(list, ")");
    append_order(list);
    buffer_append_char(&list->sql, '\0');
}

/* `rows` is cleared. */
static bool visit_all(PGresult *rows, struct task *(*read)(const PGresult *rows, int row),
                      task_visitor visit, void *context)
{
    bool is_read = rows != NULL, goes_on = is_read;
    for (int i = 0; goes_on && i < PQntuples(rows); i++)
        goes_on = visit(context, read(rows, i), row_number(rows, i, 0));
    PQclear(rows);
    return is_read;
}

bool postgres_task_list_waiting(struct database *database, const struct store_task_query *query,
                                task_visitor visit, void *context)
{
    return visit_all(connection_read(database, STATEMENT_TASK_WAITING,
                                     VALUES(STRING(query->source), STRING(query->tool),
                                            STRING(query->workflow), STRING(query->principal))),
                     task_row_read_waiting, visit, context);
}

bool postgres_task_list(struct database *database, const struct store_task_query *query,
                        size_t limit, task_visitor visit, void *context)
{
    struct listing list = {.query = query, .limit = limit};
    buffer_init(&list.sql);
    build(&list);
    PGresult *rows = connection_read_text(database, list.sql.bytes, list.values, list.count);
    bool is_read = visit_all(rows, task_row_read, visit, context);
    buffer_finish(&list.sql);
    return is_read;
}
