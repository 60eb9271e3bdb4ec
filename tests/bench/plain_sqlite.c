/*
 * The comparison for durable creates: writes the last ROWS of a gateway's database again with
 * plain SQLite under the same schema, indexes and triggers, CLIENTS tasks a transaction (group
 * commit) with the gateway's pragmas. They are read from memory.
 *
 *     plain_sqlite FROM TO ROWS CLIENTS
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The rows that one create makes, by the task's sequence. */
static const char *const copies[] = {
    "INSERT INTO main.task SELECT * FROM seen.task WHERE sequence = ?",
    "INSERT INTO main.task_request SELECT * FROM seen.task_request WHERE task = ?",
    "INSERT INTO main.audit SELECT * FROM seen.audit WHERE sequence = ?",
};
enum { COPIES = sizeof copies / sizeof *copies };

static sqlite3 *database;

_Noreturn static void fail(void)
{
    fprintf(stderr, "plain_sqlite: %s\n", sqlite3_errmsg(database));
    exit(1);
}

static void run(const char *sql)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail();
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
        fail();
    return statement;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static long number(const char *sql)
{
    sqlite3_stmt *statement = prepare(sql);
    if (sqlite3_step(statement) != SQLITE_ROW)
        fail();
    const long value = (long)sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* The gateway's schema and its stored rows, in memory. */
static void read_seen(const char *file)
{
    char *sql = sqlite3_mprintf("ATTACH %Q AS file; ATTACH ':memory:' AS seen;"
                                "CREATE TABLE seen.task AS SELECT * FROM file.task;"
                                "CREATE TABLE seen.task_request AS SELECT * FROM file.task_request;"
                                "CREATE TABLE seen.audit AS SELECT * FROM file.audit;"
                                "CREATE UNIQUE INDEX seen.by_task ON task (sequence);"
                                "CREATE UNIQUE INDEX seen.by_request ON task_request (task);"
                                "CREATE UNIQUE INDEX seen.by_audit ON audit (sequence)",
                                file);
    run(sql);
    sqlite3_free(sql);
    sqlite3_stmt *schema = prepare("SELECT sql FROM file.sqlite_schema WHERE sql IS NOT NULL"
                                   " AND name NOT LIKE 'sqlite_%' ORDER BY rowid");
    while (sqlite3_step(schema) == SQLITE_ROW)
        run((const char *)sqlite3_column_text(schema, 0));
    sqlite3_finalize(schema);
    run("DETACH file");
}

/* Before the last `rows` came, there was this. */
static void write_earlier(long tasks, long audits)
{
    char *sql = sqlite3_mprintf(
        "BEGIN; INSERT INTO main.task SELECT * FROM seen.task WHERE sequence <= %ld;"
        "INSERT INTO main.task_request SELECT * FROM seen.task_request WHERE task <= %ld;"
        "INSERT INTO main.audit SELECT * FROM seen.audit WHERE sequence <= %ld; COMMIT",
        tasks, tasks, audits);
    run(sql);
    sqlite3_free(sql);
}

static void copy(sqlite3_stmt *statement, long sequence)
{
    sqlite3_bind_int64(statement, 1, sequence);
    if (sqlite3_step(statement) != SQLITE_DONE || sqlite3_changes(database) != 1)
        fail();
    sqlite3_reset(statement);
}

int main(int argc, char **argv)
{
    if (argc != 5 || sqlite3_open(argv[2], &database) != SQLITE_OK)
        return 2;
    const long wanted = strtol(argv[3], NULL, 10), clients = strtol(argv[4], NULL, 10);
    run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON");
    read_seen(argv[1]);
    sqlite3_stmt *statements[COPIES];
    for (int i = 0; i < COPIES; i++)
        statements[i] = prepare(copies[i]);
    /* A measurement that was cut short has made fewer rows. */
    const long stored = number("SELECT count (*) FROM seen.task");
    const long rows = wanted < stored ? wanted : stored;
    const long tasks = number("SELECT max (sequence) FROM seen.task") - rows;
    const long audits = number("SELECT max (sequence) FROM seen.audit") - rows;
    write_earlier(tasks, audits);
    const double began = now();
    for (long row = 1; row <= rows;) {
        run("BEGIN IMMEDIATE");
        for (long k = 0; k < clients && row <= rows; k++, row++) {
            copy(statements[0], tasks + row);
            copy(statements[1], tasks + row);
            copy(statements[2], audits + row);
        }
        run("COMMIT");
    }
    printf("{\"rows\":%ld,\"seconds\":%.4f}\n", rows, now() - began);
    for (int i = 0; i < COPIES; i++)
        sqlite3_finalize(statements[i]);
    sqlite3_close(database);
    return 0;
}
