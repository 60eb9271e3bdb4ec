/* A copy of the whole database, made by another process while the gateway writes. */
#include "backup.h"

#include <string.h>

#include "read_only.h"

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

bool sqlite_backup(const char *path, const char *target, struct error *error)
{
    sqlite3 *from;
    bool good = read_only_open(path, &from, error) && write_copy(from, target, error);
    sqlite3_close(from);
    return good;
}
