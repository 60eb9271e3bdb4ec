/* Scratch folders, and SQLite's side of what a test looks at itself. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"

bool scratch_is_postgres(void)
{
    const char *url = getenv("TASKGATE_TEST_POSTGRES");
    return url && *url;
}

void scratch_init(struct scratch *scratch)
{
    const char *base = getenv("TMPDIR");
    snprintf(scratch->folder, sizeof scratch->folder, "%.30s/taskgate-store-XXXXXX",
             base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(scratch->folder));
    scratch->redaction = NULL;
    scratch->schema[0] = '\0';
    scratch->backend = scratch_is_postgres() ? &store_postgres : &store_sqlite;
    snprintf(scratch->path, sizeof scratch->path, "%s/taskgate.db", scratch->folder);
    snprintf(scratch->place, sizeof scratch->place, "%s", scratch->path);
    if (scratch_is_postgres())
        scratch_postgres_init(scratch);
}

void scratch_finish(struct scratch *scratch)
{
    if (scratch_is_postgres())
        scratch_postgres_finish(scratch);
    DIR *folder = opendir(scratch->folder);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
    rmdir(scratch->folder);
}

struct store_site scratch_site(const struct scratch *scratch)
{
    return (struct store_site){scratch->backend, scratch->place};
}

static sqlite3 *open_aside(const struct scratch *scratch)
{
    sqlite3 *handle = NULL;
    ck_assert_int_eq(sqlite3_open(scratch->path, &handle), SQLITE_OK);
    sqlite3_busy_timeout(handle, 5000);
    return handle;
}

int64_t scratch_query(const struct scratch *scratch, const char *sql)
{
    if (scratch_is_postgres())
        return scratch_postgres_query(scratch, sql);
    sqlite3 *handle = open_aside(scratch);
    sqlite3_stmt *statement = NULL;
    ck_assert_msg(sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(handle));
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return number;
}

int scratch_execute(const struct scratch *scratch, const char *sql)
{
    if (scratch_is_postgres())
        return scratch_postgres_execute(scratch, sql);
    sqlite3 *handle = open_aside(scratch);
    int code = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    sqlite3_close(handle);
    return code;
}

void scratch_refuse_deliveries(const struct scratch *scratch)
{
    const char *sql = scratch_is_postgres()
                          ? "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
                            " 'BEGIN RAISE EXCEPTION ''no''; END';"
                            "CREATE TRIGGER refused BEFORE INSERT ON taskgate_outbox_delivery"
                            " FOR EACH ROW EXECUTE FUNCTION refuse()"
                          : "CREATE TRIGGER refused BEFORE INSERT ON outbox_delivery BEGIN"
                            " SELECT RAISE (ABORT, 'no'); END";
    ck_assert_int_eq(scratch_execute(scratch, sql), SQLITE_OK);
}

void scratch_accept_deliveries(const struct scratch *scratch)
{
    const char *sql = scratch_is_postgres() ? "DROP TRIGGER refused ON taskgate_outbox_delivery"
                                            : "DROP TRIGGER refused";
    ck_assert_int_eq(scratch_execute(scratch, sql), SQLITE_OK);
}
