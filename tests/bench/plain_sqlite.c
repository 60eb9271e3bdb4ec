/*
 * What durable creates are compared with: the same rows written by plain SQLite, CLIENTS rows a
 * transaction (group commit) with the gateway's pragmas.
 *
 *     plain_sqlite FILE ROWS CLIENTS
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sqlite3 *database;

static void run(const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK) {
        fprintf(stderr, "plain_sqlite: %s\n", message);
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 4 || sqlite3_open(argv[1], &database) != SQLITE_OK)
        return 2;
    long rows = strtol(argv[2], NULL, 10), clients = strtol(argv[3], NULL, 10);
    char request[601];
    memset(request, 'x', 600);
    request[600] = '\0';
    run("PRAGMA journal_mode=WAL");
    run("PRAGMA synchronous=FULL");
    run("CREATE TABLE task (sequence INTEGER PRIMARY KEY, id TEXT UNIQUE, owner TEXT, request BLOB,"
        " state INTEGER, due INTEGER);"
        "CREATE TABLE audit (sequence INTEGER PRIMARY KEY, task TEXT, event TEXT, at INTEGER);"
        "CREATE INDEX task_owner ON task(owner); CREATE INDEX task_due ON task(due)");
    sqlite3_stmt *task, *audit;
    sqlite3_prepare_v2(database,
                       "INSERT INTO task(id, owner, request, state, due) VALUES(?,?,?,0,?)", -1,
                       &task, NULL);
    sqlite3_prepare_v2(database, "INSERT INTO audit(task, event, at) VALUES(?,'create',?)", -1,
                       &audit, NULL);
    double began = now();
    for (long i = 0; i < rows;) {
        run("BEGIN IMMEDIATE");
        for (long k = 0; k < clients && i < rows; k++, i++) {
            char id[48];
            snprintf(id, sizeof id, "tg_%036ld", i * 2654435761L % 1000000007L * 1000 + i);
            sqlite3_bind_text(task, 1, id, -1, SQLITE_TRANSIENT);
            sqlite3_bind_text(task, 2, "auth:0123456789abcdef0123456789abcdef", -1, SQLITE_STATIC);
            sqlite3_bind_blob(task, 3, request, 600, SQLITE_STATIC);
            sqlite3_bind_int64(task, 4, 1700000000000 + i);
            sqlite3_bind_text(audit, 1, id, -1, SQLITE_TRANSIENT);
            sqlite3_bind_int64(audit, 2, i);
            if (sqlite3_step(task) != SQLITE_DONE || sqlite3_step(audit) != SQLITE_DONE)
                return 1;
            sqlite3_reset(task);
            sqlite3_reset(audit);
        }
        run("COMMIT");
    }
    printf("{\"rows\":%ld,\"seconds\":%.4f}\n", rows, now() - began);
    sqlite3_finalize(task);
    sqlite3_finalize(audit);
    sqlite3_close(database);
    return 0;
}
