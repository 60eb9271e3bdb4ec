/* Tasks as rows. */
#include "task_rows.h"

#include <string.h>

#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

#define ROW_BYTES 1024 /* of the short columns, and of the indexes */

/* The bulk, after the columns of a task: the long texts of clients, and the outcome. */
enum {
    ARGUMENTS,
    META,
    OTHER_PARAMS,
    ORIGINAL_ARGUMENTS,
    SHOWN,
    BODY,
    OUTCOME,
    HEADERS,
    BULK_COUNT
};

/* ---- reading ---- */

/* A task of the columns of `record`, after the sequence. */
static struct task *read_columns(const struct record *record, const struct value *row)
{
    struct task *task = task_create(TASK_PENDING);
    record_read(record, row + 1, task);
    return task;
}

/* Without request and outcome. */
static struct task *read_listed(const struct value *row)
{
    struct task *task = read_columns(&task_record, row);
    const struct value *bulk = row + 1 + task_record.count;
    task_set_text(&task->arguments, bulk[ARGUMENTS].text);
    task_set_text(&task->meta, bulk[META].text);
    task_set_text(&task->other_params, bulk[OTHER_PARAMS].text);
    task_set_text(&task->original_arguments, bulk[ORIGINAL_ARGUMENTS].text);
    task_set_text(&task->shown, bulk[SHOWN].text);
    return task;
}

static struct task *read_waiting(const struct value *row)
{
    struct task *task = read_columns(&task_waiting_record, row);
    task_set_text(&task->shown, row[1 + task_waiting_record.count].text);
    return task;
}

/* A damaged row cannot be judged, so it counts as absent. */
static enum row_result task_rows_check_row(struct task **task)
{
    struct error error;
    if (task_check(*task, &error))
        return ROW_FOUND;
    log_error("A stored task is damaged and left alone", LOG_TEXT("reason", error.message));
    task_unref(*task);
    *task = NULL;
    return ROW_ABSENT;
}

struct getting {
    struct task *task;
};

static bool take_task(void *context, const struct value *row)
{
    struct task *task = read_listed(row);
    const struct value *bulk = row + 1 + task_record.count;
    task_set_request(task, bulk[BODY].text);
    task_set_text(&task->mirrored_headers, bulk[HEADERS].text);
    if (task->outcome != TASK_OUTCOME_NONE) {
        task->outcome_text = memory_copy_str(bulk[OUTCOME].text);
        task->outcome_length = bulk[OUTCOME].text.length;
    }
    ((struct getting *)context)->task = task;
    return false;
}

enum row_result task_rows_get(struct database *database, struct str id, struct task **task)
{
    struct getting getting = {NULL};
    if (!rows_read(database, STATEMENT_TASK_GET, VALUES(STRING(id)), take_task, &getting))
        return ROW_FAILED;
    if (!getting.task)
        return ROW_ABSENT;
    *task = getting.task;
    return task_rows_check_row(task);
}

struct listing {
    struct task *(*read)(const struct value *row);
    task_visitor visit;
    void *context;
};

static bool visit_task(void *context, const struct value *row)
{
    const struct listing *listing = context;
    return listing->visit(listing->context, listing->read(row), row[0].number);
}

bool task_rows_list_waiting(struct database *database, const struct store_task_query *query,
                            task_visitor visit, void *context)
{
    return rows_read(database, STATEMENT_TASK_WAITING,
                     VALUES(STRING(query->source), STRING(query->tool), STRING(query->workflow),
                            STRING(query->principal)),
                     visit_task, &(struct listing){read_waiting, visit, context});
}

/* ---- writing ---- */

static struct value task_rows_outcome_of(const struct task *task)
{
    if (task->outcome == TASK_OUTCOME_NONE)
        return NOTHING;
    return BYTES(str_slice(task->outcome_text, task->outcome_length));
}

static struct value body_of(const struct task *task)
{
    return BYTES(str_slice(task->request, task->request_length));
}

/* About what a row takes. */
static int64_t task_rows_bytes_of(const struct task *task)
{
    size_t bytes = ROW_BYTES + task->request_length + strlen(task->arguments) + strlen(task->meta) +
                   strlen(task->other_params) + strlen(task->shown) + strlen(task->terms) +
                   strlen(task->mirrored_headers) + strlen(task->brief) + task->outcome_length;
    return (int64_t)bytes;
}

bool task_rows_insert(struct database *database, const struct task *task,
                      const struct keeper *keeper)
{
    struct value values[VALUES_MAX] = {TIME(task_next_deadline_ms(task)), TIME(task_purge_ms(task)),
                                       NUMBER(task_rows_bytes_of(task))};
    struct value *bulk = values + 3 + record_write(&task_record, task, values + 3);
    bulk[ARGUMENTS] = TEXT(task->arguments);
    bulk[META] = TEXT(task->meta);
    bulk[OTHER_PARAMS] = TEXT(task->other_params);
    bulk[ORIGINAL_ARGUMENTS] = TEXT(task->original_arguments);
    bulk[SHOWN] = TEXT(task->shown);
    bulk[BODY] = body_of(task);
    bulk[OUTCOME] = task_rows_outcome_of(task);
    bulk[HEADERS] = TEXT(task->mirrored_headers);
    bulk[BULK_COUNT] = TEXT(keeper ? keeper->replica : "");
    bulk[BULK_COUNT + 1] = NUMBER(keeper ? keeper->epoch : 0);
    return rows_write(database, STATEMENT_TASK_INSERT, values,
                      (size_t)(bulk - values) + BULK_COUNT + 2);
}

enum row_result task_rows_move(struct database *database, const struct task *task,
                               enum task_state from, bool with_outcome)
{
    enum row_result result = rows_change(
        database, STATEMENT_TASK_MOVE,
        VALUES(TEXT(task->id), NUMBER(from), NUMBER(task->state), NUMBER(task->updated_ms),
               NUMBER(task->execute_by_ms), NUMBER(task->decided_ms), NUMBER(task->ended_ms),
               TEXT(task->decided_by), TEXT(task->reason), TEXT(task->status_message),
               TEXT(task->upstream_task), NUMBER(task->failure), NUMBER(task->outcome),
               TIME(task_next_deadline_ms(task)), TIME(task_purge_ms(task)),
               TEXT(task->refused_credentials), NUMBER(task->started_ms)));
    if (result != ROW_FOUND || !with_outcome)
        return result;
    return rows_write(database, STATEMENT_TASK_SET_OUTCOME,
                      VALUES(TEXT(task->id), task_rows_outcome_of(task),
                             NUMBER((int64_t)task->outcome_length)))
               ? ROW_FOUND
               : ROW_FAILED;
}

bool task_rows_end_request(struct database *database, struct task *task, bool is_redacted)
{
    int64_t bytes = (int64_t)(task->request_length + strlen(task->mirrored_headers));
    task_set_request(task, STR_EMPTY);
    task_set_text(&task->mirrored_headers, STR_EMPTY);
    return rows_write(database, STATEMENT_REQUEST_END,
                      VALUES(TEXT(task->id), TEXT(task->arguments), TEXT(task->meta),
                             TEXT(task->other_params), NUMBER(is_redacted),
                             TEXT(task->original_arguments), NUMBER(bytes)));
}

bool task_rows_edit(struct database *database, const struct task *task)
{
    return rows_write(database, STATEMENT_TASK_EDIT,
                      VALUES(TEXT(task->id), TEXT(task->arguments_digest),
                             TEXT(task->request_digest), TEXT(task->original_digest),
                             TEXT(task->original_request_digest))) &&
           rows_write(database, STATEMENT_REQUEST_EDIT,
                      VALUES(TEXT(task->id), TEXT(task->arguments), TEXT(task->original_arguments),
                             body_of(task)));
}

bool task_rows_set_votes(struct database *database, const struct task *task)
{
    return rows_write(database, STATEMENT_TASK_SET_VOTES,
                      VALUES(TEXT(task->id), TEXT(task->votes), NUMBER(task->updated_ms)));
}

bool task_rows_set_grant(struct database *database, const struct task *task)
{
    return rows_write(database, STATEMENT_TASK_SET_GRANT,
                      VALUES(TEXT(task->id), TEXT(task->grant)));
}

bool task_rows_set_upstream(struct database *database, const struct task *task)
{
    return rows_write(database, STATEMENT_TASK_SET_UPSTREAM,
                      VALUES(TEXT(task->id), TEXT(task->upstream_task)));
}

bool task_rows_set_message(struct database *database, const struct task *task)
{
    return rows_write(database, STATEMENT_TASK_SET_MESSAGE,
                      VALUES(TEXT(task->id), TEXT(task->status_message)));
}

bool task_rows_set_reach(struct database *database, const struct task *task)
{
    return rows_write(
        database, STATEMENT_TASK_SET_REACH,
        VALUES(TEXT(task->id), TEXT(task->owner), NUMBER(task->promised), NUMBER(task->on_result)));
}

/* ---- those that have ended ---- */

struct handing {
    ended_visitor *visit;
    void *context;
    enum row_result result;
};

static bool visit_ended(void *context, const struct value *row)
{
    struct handing *handing = context;
    const struct ended_task task = {.tool = row[0].text,
                                    .state = (enum task_state)row[1].number,
                                    .approved_ms = row[2].number,
                                    .ended_ms = row[3].number};
    handing->result = handing->visit(handing->context, &task) ? ROW_FOUND : ROW_FAILED;
    return handing->result == ROW_FOUND;
}

enum row_result task_rows_hand_over_ended(struct database *database, const char *owner,
                                          const char *source, const char *heir, size_t most,
                                          ended_visitor *visit, void *context)
{
    struct handing handing = {visit, context, ROW_ABSENT};
    bool done = rows_read(database, STATEMENT_TASK_HAND_OVER_ENDED,
                          VALUES(TEXT(owner), TEXT(source), TEXT(heir), NUMBER((int64_t)most)),
                          visit_ended, &handing);
    return done ? handing.result : ROW_FAILED;
}

/* ---- what limits count ---- */

bool task_rows_count_limited(struct database *database, const char *owner,
                             struct limited_counts *counts)
{
    static const struct column columns[] = {
        {"tasks", COLUMN_NUMBER, offsetof(struct limited_counts, of_owner)},
        {"bytes", COLUMN_NUMBER, offsetof(struct limited_counts, bytes)},
        {"tasks of all", COLUMN_NUMBER, offsetof(struct limited_counts, of_all)},
        {"pending of all", COLUMN_NUMBER, offsetof(struct limited_counts, pending)},
    };
    static const struct record record = {.columns = columns, .count = 4};
    return rows_find(database, STATEMENT_LIMITED_COUNT, VALUES(TEXT(owner)), &record, counts) ==
           ROW_FOUND;
}

bool task_rows_add_limited(struct database *database, const char *owner,
                           const struct limited_change *change)
{
    return rows_write(
        database, STATEMENT_LIMITED_ADD,
        VALUES(TEXT(owner), NUMBER(change->tasks), NUMBER(change->pending), NUMBER(change->bytes)));
}

/* ---- lists by conditions and in orders that vary ---- */

/* SQL and its values, which are numbered as they come. */
struct query {
    const struct store_task_query *of;
    size_t limit;
    bool compares_rows;
    struct buffer sql;
    struct value values[VALUES_MAX];
    size_t count;
};

static void task_rows_append(struct query *query, const char *sql)
{
    buffer_append_text(&query->sql, sql);
}

/* A value between two texts. */
static void append_value(struct query *query, const char *before, struct value value,
                         const char *after)
{
    size_t number = 0;
    while (number < query->count && !(query->values[number].kind == value.kind &&
                                      query->values[number].number == value.number &&
                                      str_equal(query->values[number].text, value.text)))
        number++;
    if (number == query->count)
        query->values[query->count++] = value;
    buffer_append_format(&query->sql, "%sCAST(?%zu AS %s)%s", before, number + 1,
                         value.kind == VALUE_NUMBER ? "BIGINT" : "TEXT", after);
}

static void append_text(struct query *query, const char *before, struct str text)
{
    if (text.length > 0)
        append_value(query, before, STRING(text), "");
}

static bool is_by_deadline(const struct query *query)
{
    return query->of->order == STORE_BY_DECIDE_BY;
}

static void append_cursor(struct query *query)
{
    const struct value key = NUMBER(query->of->behind_decide_by_ms);
    const struct value after = NUMBER(query->of->behind_sequence);
    if (query->of->behind_sequence == 0)
        return;
    if (!is_by_deadline(query)) {
        append_value(query, " AND sequence < ", after, "");
    } else if (query->compares_rows) {
        append_value(query, " AND ({decide by}, sequence) > (", key, "");
        append_value(query, ", ", after, ")");
    } else {
        append_value(query, " AND {decide by} >= ", key, "");
        append_value(query, " AND ({decide by} > ", key, "");
        append_value(query, " OR sequence > ", after, ")");
    }
}

static void append_order(struct query *query)
{
    task_rows_append(query, is_by_deadline(query) ? " ORDER BY {decide by}, sequence"
                                                  : " ORDER BY sequence DESC");
    append_value(query, " LIMIT ", NUMBER((int64_t)query->limit), "");
}

/* The first rows in one state, of one holder where there is one: an index gives them in order, so
 * that a page costs a page, however many tasks there are. */
static void append_page(struct query *query, unsigned state, const char *holder, struct str value)
{
    const struct store_task_query *of = query->of;
    task_rows_append(query, "SELECT * FROM (SELECT sequence FROM {task} WHERE ");
    if (value.length > 0)
        append_value(query, holder, STRING(value), " AND ");
    buffer_append_format(&query->sql, "state = %u", state);
    append_cursor(query);
    append_text(query, " AND source = ", of->source);
    append_text(query, " AND tool = ", of->tool);
    append_text(query, " AND workflow = ", of->workflow);
    append_text(query, " AND principal = ", of->principal);
    if (of->without_promoted)
        task_rows_append(query, " AND promoted = 0");
    if (of->owner.length > 0 || of->session.length > 0)
        task_rows_append(query, " AND action <> '" TASK_ACTION_ANSWER "'");
    append_order(query);
    task_rows_append(query, ") AS page");
}

/* The indexes have both orders within each state. Among several states a database would sort all
 * their rows, or look through those of all states. */
static void append_page_of_each_state(struct query *query, const char *holder, struct str value)
{
    const char *joint = "";
    for (unsigned state = 0; state < TASK_STATE_COUNT; state++) {
        if (query->of->states != 0 && !(query->of->states & (1u << state)))
            continue;
        task_rows_append(query, joint);
        append_page(query, state, holder, value);
        joint = " UNION ALL ";
    }
}

static void append_pages(struct query *query)
{
    const bool by_owner = query->of->owner.length > 0, by_session = query->of->session.length > 0;
    if (by_owner)
        append_page_of_each_state(query, "owner = ", query->of->owner);
    if (by_owner && by_session)
        task_rows_append(query, " UNION ALL ");
    if (by_session)
        append_page_of_each_state(query, "session <> '' AND session = ", query->of->session);
    if (!by_owner && !by_session)
        append_page_of_each_state(query, "", STR_EMPTY);
}

static void append_bounded(struct query *query, const char *column)
{
    const size_t most_bytes = query->of->most_argument_bytes;
    if (most_bytes == 0) {
        task_rows_append(query, ", ''");
        return;
    }
    buffer_append_format(&query->sql, ", CASE WHEN {octets of}%s{octets end} <= ", column);
    append_value(query, "", NUMBER((int64_t)(most_bytes & INT64_MAX)), "");
    buffer_append_format(&query->sql, " THEN %s ELSE '' END", column);
}

/* No request, no outcome, and no arguments (nor what stands beside them) but those that are asked
 * for: a page of them could fill the memory. */
static void build(struct query *query)
{
    static const char *const columns[] = {"arguments", "meta", "other_params",
                                          "original_arguments"};
    task_rows_append(query, "SELECT sequence, {task.*}");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        append_bounded(query, columns[i]);
    task_rows_append(query, query->of->most_argument_bytes > 0 ? ", shown" : ", ''");
    task_rows_append(query, " FROM {task and request} WHERE sequence IN (");
    append_pages(query);
    task_rows_append(query, ")");
    append_order(query);
    buffer_append_char(&query->sql, '\0');
}

bool task_rows_list(struct database *database, const struct store_task_query *query, size_t limit,
                    task_visitor visit, void *context)
{
    struct query text = {.of = query, .limit = limit, .compares_rows = rows_compare_rows(database)};
    buffer_init(&text.sql);
    build(&text);
    bool is_read = rows_read_text(database, text.sql.bytes, text.values, text.count, visit_task,
                                  &(struct listing){read_listed, visit, context});
    buffer_finish(&text.sql);
    return is_read;
}
