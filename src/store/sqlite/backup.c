/* A copy of the whole database, made by another process while the gateway writes. */
#include "backup.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "read_only.h"

#define MOST_COPIES 5

/* In one step, under one transaction: what the gateway writes meanwhile is not in it. */
static bool copy(sqlite3 *from, sqlite3 *to, struct error *error)
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
                    ? copy(from, to, error)
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

/* Nobody is asked while a file without a log is read (read_only.c), so a gateway that starts may
 * write into it meanwhile. */
static bool is_as_before(const char *path, const struct read_only_file *before)
{
    struct read_only_file now;
    read_only_look(path, &now);
    return !before->is_quiet ||
           (now.is_quiet && now.inode == before->inode && now.size == before->size &&
            now.changed.tv_sec == before->changed.tv_sec &&
            now.changed.tv_nsec == before->changed.tv_nsec);
}

bool sqlite_backup(const char *path, const char *target, struct error *error)
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
