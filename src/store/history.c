/* One query over the audit trail, on a connection that can change nothing. */
#include "taskgate/store/history.h"

#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "migrations.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"

#define BUSY_TIMEOUT_MS 5000

static const char query[] =
    "SELECT audit.at_ms, audit.task_id, audit.decision,"
    " CASE WHEN task_request.redacted THEN NULL ELSE task_request.arguments END FROM audit"
    " LEFT JOIN task ON task.id = audit.task_id"
    " LEFT JOIN task_request ON task_request.task = task.sequence"
    " WHERE audit.event = 'create' AND audit.at_ms >= ?1 ORDER BY audit.sequence";

static bool fail(sqlite3 *handle, const char *path, struct error *error)
{
    return error_set(error, "%s cannot be read as a task store: %s", path,
                     handle ? sqlite3_errmsg(handle) : "no memory");
}

/* Without a log beside the file no process writes to it. Then SQLite is told so; else it would make
 * a log of its own, which belongs to the reading user. A gateway of another user could not open
 * that later. */
static int open_database(const char *path, sqlite3 **handle)
{
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    struct buffer name;
    buffer_init(&name);
    buffer_append_format(&name, "%s-wal", path);
    buffer_append_char(&name, '\0');
    bool is_quiet = access(name.bytes, F_OK) != 0;
    buffer_clear(&name);
    buffer_append_text(&name, is_quiet ? "file:" : path);
    for (const char *c = path; is_quiet && *c; c++)
        buffer_append_format(&name, strchr("%?#", *c) ? "%%%02X" : "%c", (unsigned char)*c);
    buffer_append_text(&name, is_quiet ? "?immutable=1" : "");
    buffer_append_char(&name, '\0');
    int code =
        sqlite3_open_v2(name.bytes, handle, is_quiet ? flags | SQLITE_OPEN_URI : flags, NULL);
    buffer_finish(&name);
    return code;
}

static bool read_number(sqlite3 *handle, const char *sql, int *number)
{
    sqlite3_stmt *statement = NULL;
    bool read = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW;
    if (read)
        *number = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return read;
}

static bool check_version(sqlite3 *handle, const char *path, struct error *error)
{
    int application, version;
    if (!read_number(handle, "PRAGMA application_id", &application) ||
        !read_number(handle, "PRAGMA user_version", &version))
        return fail(handle, path, error);
    if (application != MIGRATIONS_APPLICATION_ID)
        return error_set(error, "%s is no task store", path);
    if (version < migration_count)
        return error_set(error,
                         "%s has schema version %d, and this taskgate reads version %d; "
                         "taskgate serve brings it up",
                         path, version, migration_count);
    if (version > migration_count)
        return error_set(error,
                         "%s has schema version %d, and this taskgate knows versions up to %d; "
                         "use the newer taskgate that wrote it",
                         path, version, migration_count);
    return true;
}

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
    if (open_database(path, &handle) != SQLITE_OK) {
        fail(handle, path, error);
        goto done;
    }
    sqlite3_busy_timeout(handle, BUSY_TIMEOUT_MS);
    if (!check_version(handle, path, error))
        goto done;
    if (sqlite3_prepare_v2(handle, query, -1, &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, since_ms);
        good = visit(row, visitor, context) == SQLITE_DONE;
    }
    if (!good)
        fail(handle, path, error);

done:
    sqlite3_finalize(row);
    sqlite3_close(handle);
    return good;
}
