/* One query over the audit trail, on a connection that can change nothing. */
#include "taskgate/store/history.h"

#include <sqlite3.h>

#include "reader.h"
#include "taskgate/core/memory.h"

static const char query[] =
    "SELECT audit.at_ms, audit.task_id, audit.decision,"
    " CASE WHEN task_request.redacted THEN NULL ELSE task_request.arguments END FROM audit"
    " LEFT JOIN task ON task.id = audit.task_id"
    " LEFT JOIN task_request ON task_request.task = task.sequence"
    " WHERE audit.event = 'create' AND audit.at_ms >= ?1 ORDER BY audit.sequence";

static struct str text_of(sqlite3_stmt *row, int column)
{
    const char *bytes = (const char *)sqlite3_column_text(row, column);
    size_t length = (size_t)sqlite3_column_bytes(row, column);
    if (!bytes && length > 0)
        memory_exhausted();
    return str_slice(bytes, length);
}

static int visit(sqlite3_stmt *row, store_history_visitor visitor, void *context)
{
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        const struct store_history_call call = {
            .at_ms = sqlite3_column_int64(row, 0),
            .task_id = text_of(row, 1),
            .decision = text_of(row, 2),
            .has_arguments = sqlite3_column_type(row, 3) != SQLITE_NULL,
            .arguments = text_of(row, 3),
        };
        if (!visitor(context, &call))
            return SQLITE_DONE;
    }
    return code;
}

bool store_history_read(const char *path, int64_t since_ms, store_history_visitor visitor,
                        void *context, struct error *error)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *row = NULL;
    bool good = false;
    if (!reader_open(path, &handle, error))
        goto done;
    if (sqlite3_prepare_v2(handle, query, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, since_ms);
        good = visit(row, visitor, context) == SQLITE_DONE;
    }
    if (!good)
        reader_fail(handle, path, error);

done:
    sqlite3_finalize(row);
    sqlite3_close(handle);
    return good;
}
