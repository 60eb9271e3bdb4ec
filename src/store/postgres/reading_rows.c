/* The rows that commands read beside the replicas: in pages, because libpq holds a whole result. */
#include "rows.h"

#define PAGE_ROWS 1000
#define PAGE_TEXT "1000"

static bool first_since(struct database *database, int64_t since_ms, int64_t *sequence)
{
    return rows_take_number(
        connection_read_text(database,
                             "SELECT min(sequence) FROM taskgate_audit WHERE at_ms >= $1::bigint",
                             VALUES(NUMBER(since_ms))),
        sequence);
}

/* The store gives the numbers, and nothing but the rows has them. */
static bool last_given(struct database *database, int64_t *sequence)
{
    (void)database;
    *sequence = 0;
    return true;
}

static const char kept_page[] =
    "SELECT sequence, kept_digest, kept.arguments FROM taskgate_audit_kept AS kept"
    " JOIN taskgate_audit USING (sequence) WHERE sequence > $1::bigint"
    " ORDER BY sequence LIMIT " PAGE_TEXT;

static bool kept(struct database *database,
                 bool (*visit)(void *context, int64_t sequence, struct str digest,
                               struct str arguments),
                 void *context)
{
    int64_t last = INT64_MIN;
    int count = PAGE_ROWS;
    bool is_read = true, goes_on = true;
    while (is_read && goes_on && count == PAGE_ROWS) {
        PGresult *rows = connection_read_text(database, kept_page, VALUES(NUMBER(last)));
        is_read = rows != NULL;
        count = is_read ? PQntuples(rows) : 0;
        for (int i = 0; goes_on && i < count; i++) {
            last = row_number(rows, i, 0);
            goes_on = visit(context, last, row_bytes(rows, i, 1), row_bytes(rows, i, 2));
        }
        PQclear(rows);
    }
    return is_read;
}

static const char calls_page[] =
    "SELECT audit.sequence, audit.at_ms, audit.task_id, audit.decision,"
    " CASE WHEN task.is_redacted = 0 THEN task.arguments END FROM taskgate_audit AS audit"
    " LEFT JOIN taskgate_task AS task ON task.id = audit.task_id"
    " WHERE audit.event = 'create' AND audit.at_ms >= $1::bigint AND audit.sequence > $2::bigint"
    " ORDER BY audit.sequence LIMIT " PAGE_TEXT;

static bool visit_call(const PGresult *rows, int i, store_history_visitor visitor, void *context)
{
    const struct store_history_call call = {
        .at_ms = row_number(rows, i, 1),
        .task_id = row_bytes(rows, i, 2),
        .decision = row_bytes(rows, i, 3),
        .has_arguments = !PQgetisnull(rows, i, 4),
        .arguments = row_bytes(rows, i, 4),
    };
    return visitor(context, &call);
}

static bool calls(struct database *database, int64_t since_ms, store_history_visitor visitor,
                  void *context)
{
    int64_t last = INT64_MIN;
    int count = PAGE_ROWS;
    bool is_read = true, goes_on = true;
    while (is_read && goes_on && count == PAGE_ROWS) {
        PGresult *rows =
            connection_read_text(database, calls_page, VALUES(NUMBER(since_ms), NUMBER(last)));
        is_read = rows != NULL;
        count = is_read ? PQntuples(rows) : 0;
        for (int i = 0; goes_on && i < count; i++) {
            last = row_number(rows, i, 0);
            goes_on = visit_call(rows, i, visitor, context);
        }
        PQclear(rows);
    }
    return is_read;
}

const struct reading_rows postgres_reading_rows = {
    .first_since = first_since,
    .last_given = last_given,
    .kept = kept,
    .calls = calls,
};
