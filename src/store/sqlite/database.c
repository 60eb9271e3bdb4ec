/* Opening, settings, prepared statements, values. */
#include "database.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backend.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

/* ---- the file beside SQLite: private, one process's at a time ---- */

#define PRIVATE_MODE 0600

/* ---- opening ---- */

/* The process that holds a flock() on the file, by the kernel's list, whose lines are such as
 * "1: FLOCK  ADVISORY  WRITE 16382 fe:00:9978139 0 EOF"; 0 when it is not known. */
static long find_holder(const struct stat *status)
{
    static const char before_process[] = " WRITE ";
    long holder = 0;
    char line[256], file_id[64];
    FILE *locks = fopen("/proc/locks", "re");
    snprintf(file_id, sizeof file_id, " %02x:%02x:%lu ", major(status->st_dev),
             minor(status->st_dev), (unsigned long)status->st_ino);
    while (locks && holder == 0 && fgets(line, sizeof line, locks)) {
        const char *process = strstr(line, before_process);
        bool is_held = strstr(line, ": FLOCK ") != NULL;
        if (process && is_held && strstr(process, file_id))
            holder = strtol(process + sizeof before_process - 1, NULL, 10);
    }
    if (locks)
        fclose(locks);
    return holder;
}

static bool refuse_second(const struct stat *status, const char *path, struct error *error)
{
    char with_id[48] = "";
    long holder = find_holder(status);
    if (holder > 0)
        snprintf(with_id, sizeof with_id, " with id %ld", holder);
    return error_set(error,
                     "the database %s " BACKEND_IN_USE "%s; stop that one, or "
                     "name another file in store.path",
                     path, with_id);
}

static bool files_prepare(int fd, const char *path, struct error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return error_set(error, "cannot look at the database %s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return error_set(error, "the database %s is not a regular file", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            return refuse_second(&status, path, error);
        return error_set(error, "cannot lock the database %s: %s", path, strerror(errno));
    }
    if ((status.st_mode & 0777) != PRIVATE_MODE && fchmod(fd, PRIVATE_MODE) != 0)
        return error_set(error, "cannot make the database %s private: %s", path, strerror(errno));
    return true;
}

static int files_open(const char *path, struct error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, PRIVATE_MODE);
    if (fd < 0) {
        error_set(error, "cannot open the database %s: %s; see store.path", path, strerror(errno));
    } else if (!files_prepare(fd, path, error)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* ---- the open files ---- */

static bool is_file(const char *path, dev_t device, ino_t inode)
{
    struct stat status;
    return stat(path, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

static bool names(const char *path, int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && is_file(path, status.st_dev, status.st_ino);
}

static bool files_note(struct files_opened *files, int database, const char *path,
                       struct error *error)
{
    struct stat log;
    *files = (struct files_opened){.database = database, .path = realpath(path, NULL)};
    if (!files->path || !names(files->path, database))
        return error_set(error, "the database was replaced while it was opened");
    files->log_path = memory_format("%s-wal", files->path);
    if (stat(files->log_path, &log) != 0)
        return error_set(error, "cannot look at the database's log %s: %s", files->log_path,
                         strerror(errno));
    files->log_device = log.st_dev;
    files->log_inode = log.st_ino;
    return true;
}

static void files_finish(struct files_opened *files)
{
    free(files->path);
    free(files->log_path);
    *files = (struct files_opened){.database = -1};
}

static bool files_are_in_place(const struct files_opened *files)
{
    return names(files->path, files->database) &&
           is_file(files->log_path, files->log_device, files->log_inode);
}

static const char *const own[STATEMENT_ALL] = {
#define STATEMENT_ROW(symbol, sql) [STATEMENT_##symbol] = (sql),
#define OVERRIDE_ROW(symbol, sql) [STATEMENT_##symbol] = (sql),
#include "own_statements.h"
#undef STATEMENT_ROW
#undef OVERRIDE_ROW
};

/* clang-format off */
static const struct dialect_word dialect_words[] = {
    {"grant", "approval_grant"}, /* a word of SQL */
    {"rows", "rowid IN (SELECT rowid"},
    {"end", ")"},
    {"greatest", "max"},
    {"keeping numbers", ""},
    {"with homes", ""}, /* one process needs none */
    {"their homes", ""},
    {"and bytes", ""},
    {"less bytes", ""},
    {"no bytes", "x''"},
    {"redacted", "redacted"},
    {"body", "task_request.body"},
    {"outcome body", "task_outcome.body"},
    {"of task", "task = (SELECT sequence FROM task WHERE id = ?1)"},
    {"task and request", "task JOIN task_request ON task_request.task = task.sequence"},
    {"whole task", "{task and request} LEFT JOIN task_outcome ON task_outcome.task = task.sequence"},
    {"shown", "coalesce((SELECT shown FROM task_request WHERE task_request.task = task.sequence), '')"},
    {"octets of", "length(CAST("},
    {"octets end", " AS BLOB))"},
    /* As the index task_by_decide_by has it: a task without a deadline is the last. */
    {"decide by", "iif(decide_by_ms = 0, 9223372036854775807, decide_by_ms)"},
    {"is start", "is_start"},
    {"random id", "lower(hex(randomblob(16)))"},
    {"told", "task AS told JOIN task_request AS asked ON asked.task = told.sequence"},
    {"then join", "CROSS JOIN"}, /* in this order */
    {"and argument bytes", ""},
    {NULL, NULL},
};
/* clang-format on */

const struct dialect sqlite_dialect = {"", '?', own, dialect_words};

/* FULL: a commit is on the disk when it returns (behaviour 1.2). The store times the checkpoints
 * itself, because the automatic ones would delay a commit. */
static const char settings[] = "PRAGMA synchronous = FULL;"
                               "PRAGMA foreign_keys = ON;"
                               "PRAGMA trusted_schema = OFF;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA secure_delete = ON;" /* SQLite overwrites deleted values */
                               "PRAGMA journal_size_limit = 67108864;"
                               "PRAGMA wal_autocheckpoint = 0;";
#define BUSY_TIMEOUT_MS 5000

bool database_error(const struct database *database, const char *what, struct error *error)
{
    return error_set(error, "%s: %s (SQLite code %d)", what, sqlite3_errmsg(database->handle),
                     sqlite3_extended_errcode(database->handle));
}

static int count_wal_pages(void *context, sqlite3 *handle, const char *name, int pages)
{
    (void)handle, (void)name;
    struct database *database = database_from(context);
    database->wal_pages = pages;
    return SQLITE_OK;
}

/* The mode stays in the file, but a file system without shared memory refuses it silently. */
static bool enter_wal(struct database *database, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database->handle, "PRAGMA journal_mode = WAL", -1, &statement, NULL) !=
            SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        sqlite3_finalize(statement);
        return database_error(database, "cannot set the journal mode", error);
    }
    bool entered = str_equal(database_column_bytes(statement, 0), STR("wal"));
    sqlite3_finalize(statement);
    if (!entered)
        return error_set(error, "the file system does not allow SQLite's write-ahead log");
    return true;
}

static bool configure(struct database *database, struct error *error)
{
    sqlite3_busy_timeout(database->handle, BUSY_TIMEOUT_MS);
    sqlite3_extended_result_codes(database->handle, 1);
    if (!enter_wal(database, error))
        return false;
    if (sqlite3_exec(database->handle, settings, NULL, NULL, NULL) != SQLITE_OK)
        return database_error(database, "cannot set up the database", error);
    /* After the settings: wal_autocheckpoint replaces the hook. */
    sqlite3_wal_hook(database->handle, count_wal_pages, database);
    return true;
}

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

/* SQLite counts its memory under a lock that each allocation takes, and nobody asks for the count.
 * Refused once a connection was opened elsewhere in the process, which only leaves the lock. */
static void configure_library(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

bool database_open(struct database *database, const char *path, database_prepare prepare,
                   struct error *error)
{
    pthread_once(&library_once, configure_library);
    *database = (struct database){
        .backend = database->backend, .magic = DATABASE_MAGIC, .path = memory_copy_text(path)};
    database->locked = files_open(path, error);
    if (database->locked < 0)
        goto failed;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (sqlite3_open_v2(path, &database->handle, flags, NULL) != SQLITE_OK) {
        database_error(database, "cannot open", error);
        goto unusable;
    }
    if (!configure(database, error) || !prepare(database, error) ||
        !files_note(&database->files, database->locked, path, error))
        goto unusable;
    return true;

unusable:
    error_prefix(error, path);
failed:
    database_close(database);
    return false;
}

void database_close(struct database *database)
{
    for (unsigned i = 0; i < STATEMENT_ALL; i++)
        sqlite3_finalize(database->statements[i]);
    /* The last connection checkpoints and removes the log. If the files were replaced, the log of
     * that name is somebody else's. */
    if (database->files.log_path && !files_are_in_place(&database->files))
        sqlite3_db_config(database->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(database->handle);
    files_finish(&database->files);
    if (database->locked >= 0)
        close(database->locked);
    free(database->path);
    *database = (struct database){.locked = -1};
}

bool database_is_in_place(const struct database *database, struct error *error)
{
    if (files_are_in_place(&database->files))
        return true;
    return error_set(
        error,
        "the database %s or its log was removed or replaced while it was in use; put it "
        "back, or start taskgate anew",
        database->path);
}

bool database_number(sqlite3 *handle, const char *sql, int64_t *number)
{
    sqlite3_stmt *statement = NULL;
    bool read = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW;
    if (read)
        *number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return read;
}

sqlite3_stmt *database_statement(struct database *database, unsigned which)
{
    ASSERT_NUMBERS(which, <, STATEMENT_ALL);
    sqlite3_stmt **statement = &database->statements[which];
    if (!*statement) {
        OWNED_BUFFER(sql);
        statement_write(&sqlite_dialect, which, &sql);
        sqlite3_prepare_v3(database->handle, sql.bytes, -1, SQLITE_PREPARE_PERSISTENT, statement,
                           NULL);
    }
    return *statement;
}

void database_release(sqlite3_stmt *statement)
{
    if (!statement)
        return;
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

bool database_run(sqlite3_stmt *statement)
{
    if (!statement)
        return false;
    bool done = sqlite3_step(statement) == SQLITE_DONE;
    database_release(statement);
    return done;
}

bool database_simple(struct database *database, unsigned which)
{
    return database_run(database_statement(database, which));
}

static bool database_read_number(struct database *database, unsigned which, int64_t *number)
{
    sqlite3_stmt *row = database_statement(database, which);
    bool read = row && sqlite3_step(row) == SQLITE_ROW;
    if (read)
        *number = sqlite3_column_int64(row, 0);
    database_release(row);
    return read;
}

int64_t database_used_bytes(struct database *database)
{
    int64_t pages = 0, free_pages = 0, page_bytes = 0;
    bool read = database_read_number(database, STATEMENT_PAGE_COUNT, &pages) &&
                database_read_number(database, STATEMENT_FREE_PAGE_COUNT, &free_pages) &&
                database_read_number(database, STATEMENT_PAGE_SIZE, &page_bytes);
    return read ? (pages - free_pages) * page_bytes : -1;
}

void database_checkpoint(struct database *database)
{
    int left = 0, moved = 0;
    int code =
        sqlite3_wal_checkpoint_v2(database->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &left, &moved);
    if (code == SQLITE_OK && left == moved)
        database->wal_pages = 0;
    else if (code != SQLITE_OK)
        log_warn("The database's log could not be moved into its file",
                 LOG_TEXT("path", database->path), LOG_TEXT("error", sqlite3_errstr(code)));
}

/* A statement would run with nothing in the place of the value. */
static void check_bound(int code)
{
    if (code == SQLITE_NOMEM)
        memory_exhausted();
}

void database_bind_str(sqlite3_stmt *statement, int index, struct str text)
{
    check_bound(sqlite3_bind_text64(statement, index, text.length ? text.bytes : "", text.length,
                                    SQLITE_STATIC, SQLITE_UTF8));
}

void database_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    database_bind_str(statement, index, str_from(text));
}

void database_bind_bytes(sqlite3_stmt *statement, int index, struct str bytes)
{
    check_bound(sqlite3_bind_blob64(statement, index, bytes.length ? bytes.bytes : "", bytes.length,
                                    SQLITE_STATIC));
}

struct str database_column_bytes(sqlite3_stmt *statement, int column)
{
    const char *bytes = sqlite3_column_blob(statement, column);
    size_t length = (size_t)sqlite3_column_bytes(statement, column);
    if (!bytes && length > 0)
        memory_exhausted(); /* a task without its owner or its arguments would be another one */
    return str_slice(bytes, length);
}
