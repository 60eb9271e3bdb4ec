/* SQLite as a backend of the store: one file, one process. */
#include "taskgate/store/site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend.h"
#include "database.h"
#include "migrations.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* Pages in the log. A checkpoint waits for an idle moment: a short one when there is much to move.
 * From the last size on it waits no more, or the log would grow without end under steady load. */
#define UPKEEP_SOON_PAGES 256
#define UPKEEP_NOW_PAGES 8192

/* ---- opening for reading only: it takes no lock that anybody waits for ---- */

/* The facts of the file that tell whether somebody has written to it. */
struct read_only_file {
    bool is_quiet; /* there is no log beside it: it is read without asking anybody */
    ino_t inode;
    off_t size;
    struct timespec changed;
};

#define BUSY_TIMEOUT_MS 5000

static bool read_only_fail(sqlite3 *handle, const char *path, struct error *error)
{
    return error_set(error, "%s cannot be read as a task store: %s", path,
                     handle ? sqlite3_errmsg(handle) : "no memory");
}

static void read_only_look(const char *path, struct read_only_file *file)
{
    struct stat status = {0};
    OWNED_BUFFER(log);
    buffer_append_format(&log, "%s-wal", path);
    buffer_append_char(&log, '\0');
    *file = (struct read_only_file){.is_quiet = access(log.bytes, F_OK) != 0};
    if (stat(path, &status) == 0) {
        file->inode = status.st_ino;
        file->size = status.st_size;
        file->changed = status.st_ctim;
    }
}

/* Without a log beside the file no process writes to it. Then SQLite is told so; else it would make
 * a log of its own, which belongs to the reading user. A gateway of another user could not open
 * that later. */
static int open_database(const char *path, sqlite3 **handle)
{
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    OWNED_BUFFER(name);
    struct read_only_file file;
    read_only_look(path, &file);
    const bool is_quiet = file.is_quiet;
    buffer_append_text(&name, is_quiet ? "file:" : path);
    for (const char *c = path; is_quiet && *c; c++)
        buffer_append_format(&name, strchr("%?#", *c) ? "%%%02X" : "%c", (unsigned char)*c);
    buffer_append_text(&name, is_quiet ? "?immutable=1" : "");
    buffer_append_char(&name, '\0');
    return sqlite3_open_v2(name.bytes, handle, is_quiet ? flags | SQLITE_OPEN_URI : flags, NULL);
}

static bool check_version(sqlite3 *handle, const char *path, struct error *error)
{
    int64_t application, version;
    if (!database_number(handle, "PRAGMA application_id", &application) ||
        !database_number(handle, "PRAGMA user_version", &version))
        return read_only_fail(handle, path, error);
    if (application != MIGRATIONS_APPLICATION_ID)
        return error_set(error, "%s is no task store", path);
    if (version < migration_count)
        return error_set(error,
                         "%s has schema version %d, and this taskgate reads version %d; "
                         "taskgate serve brings it up",
                         path, (int)version, migration_count);
    if (version > migration_count)
        return error_set(error,
                         "%s has schema version %d, and this taskgate knows versions up to %d; "
                         "use the newer taskgate that wrote it",
                         path, (int)version, migration_count);
    return true;
}

static bool read_only_open(const char *path, sqlite3 **handle, struct error *error)
{
    *handle = NULL;
    if (open_database(path, handle) != SQLITE_OK)
        return read_only_fail(*handle, path, error);
    sqlite3_busy_timeout(*handle, BUSY_TIMEOUT_MS);
    return check_version(*handle, path, error);
}

static bool sqlite_prepare(struct database *database, struct error *error)
{
    return migrations_apply(database, error) && migrations_seal(database, error);
}

static char *sqlite_title_of(const char *place)
{
    return memory_copy_text(place);
}

static struct database *open_file(const char *place, struct error *error)
{
    struct database *database = memory_alloc(sizeof *database);
    database->backend = &store_sqlite;
    if (database_open(database, place, sqlite_prepare, error))
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

static struct database *sqlite_open_reader(const char *place, struct error *error)
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

static bool sqlite_begin(struct database *database, bool writes)
{
    return database_simple(database, writes ? STATEMENT_BEGIN_WRITE : STATEMENT_BEGIN);
}

static void sqlite_rollback(struct database *database)
{
    if (!sqlite3_get_autocommit(database->handle))
        database_simple(database, STATEMENT_ROLLBACK);
}

/* Binds the number to the statement's only value, and runs it. */
static bool run_sqlite_with(struct database *database, unsigned which, int64_t number)
{
    sqlite3_stmt *statement = database_statement(database, which);
    sqlite3_bind_int64(statement, 1, number);
    return database_run(statement);
}

/* A sync that fails leaves the whole transaction in the log, with its commit mark. SQLite does not
 * count it, but a process that opens the database after a crash would. Another transaction takes
 * its place in the log, and what is left behind that one follows nothing any more. */
static bool overwrite_log(struct database *database)
{
    sqlite_rollback(database);
    bool done = database_simple(database, STATEMENT_BEGIN_WRITE) &&
                run_sqlite_with(database, STATEMENT_PROBE, clock_now_ms()) &&
                database_simple(database, STATEMENT_COMMIT);
    sqlite_rollback(database);
    return done;
}

static enum commit_result sqlite_commit(struct database *database, struct error *error)
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

static bool sqlite_can_go_on(const struct database *database)
{
    int code = sqlite3_errcode(database->handle) & 0xff;
    return !sqlite3_get_autocommit(database->handle) &&
           (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE ||
            code == SQLITE_TOOBIG || code == SQLITE_CONSTRAINT);
}

static bool sqlite_mark(struct database *database, enum backend_mark what)
{
    if (what == MARK_SET)
        return database_simple(database, STATEMENT_SAVEPOINT);
    if (what == MARK_RETURN &&
        !(sqlite_can_go_on(database) && database_simple(database, STATEMENT_ROLLBACK_TO)))
        return false;
    return database_simple(database, STATEMENT_RELEASE);
}

/* ---- statements ---- */

/* Values that the statement does not have are those of another database. */
static sqlite3_stmt *sqlite_bind(sqlite3_stmt *statement, const struct value *values, size_t count)
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

static bool sqlite_run(struct database *database, unsigned which, const struct value *values,
                       size_t count)
{
    return database_run(sqlite_bind(database_statement(database, which), values, count));
}

/* The values of a whole task: two times, its bytes, its columns, and its bulk. */
static bool sqlite_insert_task(struct database *database, const struct value *values, size_t given)
{
    struct value row[VALUES_MAX] = {values[0], values[1]};
    const size_t count = task_record.count;
    const struct value *bulk = values + 3 + count, *keeper = bulk + 8;
    ASSERT_NUMBERS(given, ==, 3 + count + 8 + 2);
    memcpy(row + 2, values + 3, count * sizeof *row);
    if (!sqlite_run(database, STATEMENT_TASK_INSERT, row, 2 + count))
        return false;
    const struct value sequence = NUMBER(sqlite3_last_insert_rowid(database->handle));
    return sqlite_run(
               database, STATEMENT_REQUEST_INSERT,
               VALUES(sequence, bulk[0], bulk[1], bulk[2], bulk[3], bulk[4], bulk[5], bulk[7])) &&
           (bulk[6].kind == VALUE_NOTHING ||
            sqlite_run(database, STATEMENT_OUTCOME_INSERT, VALUES(sequence, bulk[6]))) &&
           (keeper[0].text.length == 0 ||
            sqlite_run(database, STATEMENT_CLAIM_KEEP, VALUES(values[3], keeper[0], keeper[1])));
}

static bool sqlite_write_row(struct database *database, enum statement which,
                             const struct value *values, size_t count)
{
    return which == STATEMENT_TASK_INSERT ? sqlite_insert_task(database, values, count)
                                          : sqlite_run(database, which, values, count);
}

static bool sqlite_change(struct database *database, enum statement which,
                          const struct value *values, size_t count, int64_t *changed)
{
    bool done = sqlite_run(database, which, values, count);
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
static bool sqlite_visit_rows(sqlite3_stmt *statement, row_visitor *visit, void *context)
{
    struct value row[VALUES_MAX];
    int code = SQLITE_ERROR, columns = statement ? sqlite3_column_count(statement) : 0;
    bool goes_on = true;
    ASSERT_NUMBERS(columns, <=, VALUES_MAX);
    while (goes_on && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int i = 0; i < columns; i++)
            row[i] = value_at(statement, i);
        goes_on = visit(context, row);
    }
    return !goes_on || code == SQLITE_DONE;
}

static bool sqlite_read_rows(struct database *database, enum statement which,
                             const struct value *values, size_t count, row_visitor *visit,
                             void *context)
{
    sqlite3_stmt *statement = sqlite_bind(database_statement(database, which), values, count);
    bool is_read = sqlite_visit_rows(statement, visit, context);
    database_release(statement);
    return is_read;
}

static bool sqlite_read_text(struct database *database, const char *text,
                             const struct value *values, size_t count, row_visitor *visit,
                             void *context)
{
    sqlite3_stmt *statement = NULL;
    OWNED_BUFFER(sql);
    statement_write_text(&sqlite_dialect, text, &sql);
    sqlite3_prepare_v2(database->handle, sql.bytes, (int)sql.length, &statement, NULL);
    bool is_read = sqlite_visit_rows(sqlite_bind(statement, values, count), visit, context);
    sqlite3_finalize(statement);
    return is_read;
}

/* ---- the file ---- */

static enum backend_upkeep sqlite_wants_upkeep(const struct database *database)
{
    if (database->wal_pages == 0)
        return BACKEND_UPKEEP_NONE;
    if (database->wal_pages >= UPKEEP_NOW_PAGES)
        return BACKEND_UPKEEP_NOW;
    return database->wal_pages >= UPKEEP_SOON_PAGES ? BACKEND_UPKEEP_SOON : BACKEND_UPKEEP_LATER;
}

/* It has no clock of its own, and no other process. */
static int64_t sqlite_look(struct database *database, enum backend_fact fact)
{
    switch (fact) {
    case LOOK_WRITTEN:
        return sqlite3_total_changes64(database->handle);
    case LOOK_BYTES:
        return database_used_bytes(database);
    case LOOK_UPKEEP:
        return sqlite_wants_upkeep(database);
    case LOOK_WAKE_FD:
        return -1;
    default:
        return 0;
    }
}

/* ---- a copy, made by another process while the gateway writes ---- */

#define MOST_COPIES 5

/* In one step, under one transaction: what the gateway writes meanwhile is not in it. */
static bool copy_whole(sqlite3 *from, sqlite3 *to, struct error *error)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int code = backup ? sqlite3_backup_step(backup, -1) : sqlite3_errcode(to);
    if (backup)
        sqlite3_backup_finish(backup);
    return code == SQLITE_DONE ||
           error_set(error, "the copy cannot be written: %s", sqlite3_errstr(code));
}

static bool is_whole(sqlite3 *handle, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    bool good =
        sqlite3_prepare_v2(handle, "PRAGMA quick_check", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW &&
        strcmp((const char *)sqlite3_column_text(statement, 0), "ok") == 0;
    sqlite3_finalize(statement);
    return good || error_set(error, "the copy is damaged; look at the disk");
}

/* The copy is a database of its own: one file, without a log beside it. */
static bool write_copy(sqlite3 *from, const char *target, struct error *error)
{
    sqlite3 *to = NULL;
    int code = sqlite3_open_v2(target, &to, SQLITE_OPEN_READWRITE, NULL);
    bool good = code == SQLITE_OK
                    ? copy_whole(from, to, error)
                    : error_set(error, "%s cannot be opened: %s", target, sqlite3_errstr(code));
    good = good &&
           (sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) == SQLITE_OK ||
            error_set(error, "the copy cannot be closed: %s", sqlite3_errmsg(to))) &&
           is_whole(to, error);
    sqlite3_close(to);
    return good;
}

/* `opened`: the file as it was then. */
static bool copy_once(const char *path, const char *target, struct read_only_file *opened,
                      struct error *error)
{
    sqlite3 *from;
    bool good = read_only_open(path, &from, error);
    read_only_look(path, opened);
    good = good && write_copy(from, target, error);
    sqlite3_close(from);
    return good;
}

/* Nobody is asked while a file without a log is read (open_database()), so a gateway that starts
 * may write into it meanwhile. */
static bool is_as_before(const char *path, const struct read_only_file *before)
{
    struct read_only_file now;
    read_only_look(path, &now);
    return !before->is_quiet ||
           (now.is_quiet && now.inode == before->inode && now.size == before->size &&
            now.changed.tv_sec == before->changed.tv_sec &&
            now.changed.tv_nsec == before->changed.tv_nsec);
}

/* By SQLite itself, page by page. `target` is there and empty. A copy that has failed is left
 * behind. */
static bool sqlite_backup(const char *path, const char *target, struct error *error)
{
    for (int i = 0; i < MOST_COPIES; i++) {
        struct read_only_file before, opened;
        read_only_look(path, &before);
        bool good = copy_once(path, target, &opened, error);
        if (opened.is_quiet == before.is_quiet && is_as_before(path, &before))
            return good;
        if (truncate(target, 0) != 0)
            return error_set(error, "%s cannot be written: %s", target, strerror(errno));
    }
    return error_set(error, "%s is changed again and again while it is read", path);
}

const struct store_backend store_sqlite = {
    .name = "sqlite",
    .is_shared = false, /* the lock on the file */
    .title = sqlite_title_of,
    .open = open_file,
    .open_reader = sqlite_open_reader,
    .close = close_file,
    .backup = sqlite_backup,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .mark = sqlite_mark,
    .describe = database_error,
    .is_in_place = database_is_in_place,
    .look = sqlite_look,
    .write = sqlite_write_row,
    .change = sqlite_change,
    .read = sqlite_read_rows,
    .read_text = sqlite_read_text,
    .upkeep = database_checkpoint,
};
