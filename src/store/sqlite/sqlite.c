/* SQLite as a backend of the store: one file, one process. */
#include "taskgate/store/sqlite.h"

#include <stdlib.h>
#include <string.h>

#include "backup.h"
#include "migrations.h"
#include "read_only.h"
#include "rows.h"
#include "sealing.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

/* Pages in the log. A checkpoint waits for an idle moment: a short one when there is much to move.
 * From the last size on it waits no more, or the log would grow without end under steady load. */
#define UPKEEP_SOON_PAGES 256
#define UPKEEP_NOW_PAGES 8192

static bool prepare(struct database *database, struct error *error)
{
    return migrations_apply(database, error) && sealing_run(database, error);
}

static char *title_of(const char *place)
{
    return memory_copy_text(place);
}

static struct database *open_file(const char *place, struct error *error)
{
    struct database *database = memory_alloc(sizeof *database);
    database->backend = &store_sqlite;
    if (database_open(database, place, prepare, error))
        return database;
    free(database);
    return NULL;
}

static void close_file(struct database *database)
{
    if (!database)
        return;
    database_close(database);
    free(database);
}

static struct database *open_reader(const char *place, struct error *error)
{
    struct database *database = memory_alloc(sizeof *database);
    *database = (struct database){.backend = &store_sqlite,
                                  .magic = DATABASE_MAGIC,
                                  .path = memory_copy_text(place),
                                  .locked = -1};
    if (read_only_open(place, &database->handle, error))
        return database;
    close_file(database);
    return NULL;
}

static bool begin(struct database *database, bool writes)
{
    return database_simple(database, writes ? STATEMENT_BEGIN_WRITE : STATEMENT_BEGIN);
}

static void rollback(struct database *database)
{
    if (!sqlite3_get_autocommit(database->handle))
        database_simple(database, STATEMENT_ROLLBACK);
}

/* A sync that fails leaves the whole transaction in the log, with its commit mark. SQLite does not
 * count it, but a process that opens the database after a crash would. Another transaction takes
 * its place in the log, and what is left behind that one follows nothing any more. */
static bool overwrite_log(struct database *database)
{
    rollback(database);
    bool done = database_simple(database, STATEMENT_BEGIN_WRITE) &&
                rows_run_with(database, STATEMENT_PROBE, clock_now_ms()) &&
                database_simple(database, STATEMENT_COMMIT);
    rollback(database);
    return done;
}

static enum commit_result commit(struct database *database, struct error *error)
{
    if (database_simple(database, STATEMENT_COMMIT))
        return COMMIT_DONE;
    int code = sqlite3_extended_errcode(database->handle);
    bool is_whole = code != SQLITE_FULL && code != SQLITE_IOERR_WRITE; /* in the log */
    database_error(database, "the database failed", error);
    if (!is_whole || overwrite_log(database))
        return COMMIT_NOTHING;
    error_suffix(error, BACKEND_UNSURE);
    return COMMIT_UNSURE;
}

static bool mark(struct database *database, enum backend_mark what)
{
    if (what == MARK_SET)
        return database_simple(database, STATEMENT_SAVEPOINT);
    return (what == MARK_FORGET || database_simple(database, STATEMENT_ROLLBACK_TO)) &&
           database_simple(database, STATEMENT_RELEASE);
}

static bool can_go_on(const struct database *database)
{
    int code = sqlite3_errcode(database->handle) & 0xff;
    return !sqlite3_get_autocommit(database->handle) &&
           (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE ||
            code == SQLITE_TOOBIG || code == SQLITE_CONSTRAINT);
}

/* It has no clock of its own, and no other process. */
static int64_t look(struct database *database, enum backend_fact fact)
{
    return fact == LOOK_WRITTEN ? sqlite3_total_changes64(database->handle) : 0;
}

/* ---- statements ---- */

/* Values that the statement does not have are those of another database. */
static sqlite3_stmt *bind(sqlite3_stmt *statement, const struct value *values, size_t count)
{
    int most = sqlite3_bind_parameter_count(statement);
    for (int i = 0; i < (int)count && i < most; i++) {
        const struct value *value = &values[i];
        switch (value->kind) {
        case VALUE_TEXT:
            database_bind_str(statement, i + 1, value->text);
            break;
        case VALUE_BYTES:
            database_bind_bytes(statement, i + 1, value->text);
            break;
        case VALUE_NUMBER:
            sqlite3_bind_int64(statement, i + 1, value->number);
            break;
        case VALUE_NOTHING:
            sqlite3_bind_null(statement, i + 1);
            break;
        }
    }
    return statement;
}

static bool run(struct database *database, unsigned which, const struct value *values, size_t count)
{
    return database_run(bind(database_statement(database, which), values, count));
}

/* The values of a whole task: two times, its bytes, its columns, and its bulk. */
static bool insert_task(struct database *database, const struct value *values)
{
    struct value row[VALUES_MAX] = {values[0], values[1]};
    const size_t count = task_record.count;
    const struct value *bulk = values + 3 + count, *keeper = bulk + 8;
    memcpy(row + 2, values + 3, count * sizeof *row);
    if (!run(database, STATEMENT_TASK_INSERT, row, 2 + count))
        return false;
    const struct value sequence = NUMBER(sqlite3_last_insert_rowid(database->handle));
    return run(database, STATEMENT_REQUEST_INSERT,
               VALUES(sequence, bulk[0], bulk[1], bulk[2], bulk[3], bulk[4], bulk[5], bulk[7])) &&
           (bulk[6].kind == VALUE_NOTHING ||
            run(database, STATEMENT_OUTCOME_INSERT, VALUES(sequence, bulk[6]))) &&
           (keeper[0].text.length == 0 ||
            run(database, STATEMENT_CLAIM_KEEP, VALUES(values[3], keeper[0], keeper[1])));
}

static bool write_row(struct database *database, enum statement which, const struct value *values,
                      size_t count)
{
    return which == STATEMENT_TASK_INSERT ? insert_task(database, values)
                                          : run(database, which, values, count);
}

static bool change(struct database *database, enum statement which, const struct value *values,
                   size_t count, int64_t *changed)
{
    bool done = run(database, which, values, count);
    *changed = done ? sqlite3_changes64(database->handle) : 0;
    return done;
}

static struct value value_at(sqlite3_stmt *row, int column)
{
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
        return NOTHING;
    case SQLITE_INTEGER:
        return NUMBER(sqlite3_column_int64(row, column));
    default:
        return STRING(database_column_bytes(row, column));
    }
}

/* `statement`: bound, or NULL. */
static bool visit_rows(sqlite3_stmt *statement, row_visitor *visit, void *context)
{
    struct value row[VALUES_MAX];
    int code = SQLITE_ERROR, columns = statement ? sqlite3_column_count(statement) : 0;
    bool goes_on = true;
    while (goes_on && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < columns; i++)
            row[i] = value_at(statement, i);
        goes_on = visit(context, row);
    }
    return !goes_on || code == SQLITE_DONE;
}

static bool read_rows(struct database *database, enum statement which, const struct value *values,
                      size_t count, row_visitor *visit, void *context)
{
    sqlite3_stmt *statement = bind(database_statement(database, which), values, count);
    bool is_read = visit_rows(statement, visit, context);
    database_release(statement);
    return is_read;
}

static bool read_text(struct database *database, const char *text, const struct value *values,
                      size_t count, row_visitor *visit, void *context)
{
    sqlite3_stmt *statement = NULL;
    struct buffer sql;
    buffer_init(&sql);
    statement_write_text(&sqlite_dialect, text, &sql);
    sqlite3_prepare_v2(database->handle, sql.bytes, (int)sql.length, &statement, NULL);
    buffer_finish(&sql);
    bool is_read = visit_rows(bind(statement, values, count), visit, context);
    sqlite3_finalize(statement);
    return is_read;
}

/* ---- the file ---- */

static enum backend_upkeep wants_upkeep(const struct database *database)
{
    if (database->wal_pages == 0)
        return BACKEND_UPKEEP_NONE;
    if (database->wal_pages >= UPKEEP_NOW_PAGES)
        return BACKEND_UPKEEP_NOW;
    return database->wal_pages >= UPKEEP_SOON_PAGES ? BACKEND_UPKEEP_SOON : BACKEND_UPKEEP_LATER;
}

static int wake_fd(const struct database *database)
{
    (void)database;
    return -1;
}

const struct store_backend store_sqlite = {
    .name = "sqlite",
    .is_shared = false, /* the lock on the file */
    .title = title_of,
    .open = open_file,
    .open_reader = open_reader,
    .close = close_file,
    .backup = sqlite_backup,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .mark = mark,
    .can_go_on = can_go_on,
    .describe = database_error,
    .is_in_place = database_is_in_place,
    .look = look,
    .used_bytes = database_used_bytes,
    .write = write_row,
    .change = change,
    .read = read_rows,
    .read_text = read_text,
    .wants_upkeep = wants_upkeep,
    .upkeep = database_checkpoint,
    .wake_fd = wake_fd,
};
