/* Opening for reading alone. */
#include "read_only.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "migrations.h"
#include "taskgate/core/buffer.h"

#define BUSY_TIMEOUT_MS 5000

bool read_only_fail(sqlite3 *handle, const char *path, struct error *error)
{
    return error_set(error, "%s cannot be read as a task store: %s", path,
                     handle ? sqlite3_errmsg(handle) : "no memory");
}

void read_only_look(const char *path, struct read_only_file *file)
{
    struct stat status = {0};
    struct buffer log;
    buffer_init(&log);
    buffer_append_format(&log, "%s-wal", path);
    buffer_append_char(&log, '\0');
    *file = (struct read_only_file){.is_quiet = access(log.bytes, F_OK) != 0};
    if (stat(path, &status) == 0) {
        file->inode = status.st_ino;
        file->size = status.st_size;
        file->changed = status.st_ctim;
    }
    buffer_finish(&log);
}

/* Without a log beside the file no process writes to it. Then SQLite is told so; else it would make
 * a log of its own, which belongs to the reading user. A gateway of another user could not open
 * that later. */
static int open_database(const char *path, sqlite3 **handle)
{
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    struct buffer name;
    struct read_only_file file;
    read_only_look(path, &file);
    const bool is_quiet = file.is_quiet;
    buffer_init(&name);
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

static bool read_only_read_number(sqlite3 *handle, const char *sql, int *number)
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
    if (!read_only_read_number(handle, "PRAGMA application_id", &application) ||
        !read_only_read_number(handle, "PRAGMA user_version", &version))
        return read_only_fail(handle, path, error);
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

bool read_only_open(const char *path, sqlite3 **handle, struct error *error)
{
    *handle = NULL;
    if (open_database(path, handle) != SQLITE_OK)
        return read_only_fail(*handle, path, error);
    sqlite3_busy_timeout(*handle, BUSY_TIMEOUT_MS);
    return check_version(*handle, path, error);
}
