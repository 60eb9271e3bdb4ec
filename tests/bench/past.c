/*
 * Gives a gateway's database a past, while the gateway is away: copies of a task, or rows at the
 * end of the audit trail that are like its last one, with numbers and hashes of their own.
 *
 *     past DATABASE tasks SEQUENCE COUNT
 *     past DATABASE audit COUNT BEFORE BEHIND
 *
 * BEFORE and BEHIND are files with what stands before and behind the number in the canonical JSON
 * of the last row, without its hash.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/buffer.h"
#include "taskgate/store/chain.h"

#define CHUNK 20000 /* rows of a transaction */

static sqlite3 *database;

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "past: %s: %s\n", what, sqlite3_errmsg(database));
    exit(1);
}

static void run(const char *sql)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail(sql);
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
        fail(sql);
    return statement;
}

/* An expression in place of a column in the copy; NULL: the column itself. */
struct replacement {
    const char *column, *expression;
};

/* "INSERT INTO TABLE (a, b) SELECT a, EXPRESSION FROM ". The columns are those of the schema. */
static void write_copy(struct buffer *sql, const char *table, const struct replacement *replaced)
{
    struct buffer values;
    char *query = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q)", table);
    sqlite3_stmt *names = prepare(query);
    buffer_init(&values);
    buffer_append_format(sql, "INSERT INTO %s (", table);
    for (const char *joint = ""; sqlite3_step(names) == SQLITE_ROW; joint = ", ") {
        const char *name = (const char *)sqlite3_column_text(names, 0), *value = name;
        for (const struct replacement *r = replaced; r->column; r++)
            value = strcmp(r->column, name) == 0 ? r->expression : value;
        buffer_append_format(sql, "%s%s", joint, name);
        buffer_append_format(&values, "%s%s", joint, value);
    }
    buffer_append_format(sql, ") SELECT %.*s FROM ", STR_ARGS(buffer_str(&values)));
    sqlite3_finalize(names);
    sqlite3_free(query);
    buffer_finish(&values);
}

static sqlite3_stmt *prepare_copy(const char *table, const struct replacement *replaced,
                                  const char *rest)
{
    struct buffer sql;
    buffer_init(&sql);
    write_copy(&sql, table, replaced);
    buffer_append_text(&sql, rest);
    buffer_append_char(&sql, '\0');
    sqlite3_stmt *statement = prepare(sql.bytes);
    buffer_finish(&sql);
    return statement;
}

static void step(sqlite3_stmt *statement)
{
    if (sqlite3_step(statement) != SQLITE_DONE)
        fail("copy");
    sqlite3_reset(statement);
}

static void turn(long k)
{
    if (k % CHUNK == 0)
        run(k == 0 ? "BEGIN" : "COMMIT; BEGIN");
}

/* Each copy has an id and a deadline of its own. */
static void copy_tasks(long sequence, long count)
{
    static const struct replacement task[] = {
        {"sequence", "NULL"},
        {"id", "printf('tg_%08x-0000-4000-8000-%012x', sequence, ?2)"},
        {"decide_by_ms", "decide_by_ms + ?2"},
        {NULL, NULL},
    };
    static const struct replacement request[] = {{"task", "last_insert_rowid()"}, {NULL, NULL}};
    sqlite3_stmt *tasks = prepare_copy("task", task, "task WHERE sequence = ?1");
    sqlite3_stmt *requests = prepare_copy("task_request", request, "task_request WHERE task = ?1");
    for (long k = 0; k < count; k++) {
        turn(k);
        sqlite3_bind_int64(tasks, 1, sequence);
        sqlite3_bind_int64(tasks, 2, k + 1);
        sqlite3_bind_int64(requests, 1, sequence);
        step(tasks);
        step(requests);
    }
    run("COMMIT");
    sqlite3_finalize(tasks);
    sqlite3_finalize(requests);
}

static void read_file(struct buffer *text, const char *path)
{
    FILE *file = fopen(path, "re");
    char bytes[4096];
    size_t length;
    if (!file)
        fail(path);
    while ((length = fread(bytes, 1, sizeof bytes, file)) > 0)
        buffer_append(text, str_slice(bytes, length));
    fclose(file);
}

static void add_rows(long count, const char *before, const char *behind)
{
    static const struct replacement row[] = {{"sequence", "?1"}, {"hash", "?2"}, {NULL, NULL}};
    struct buffer start, end, text;
    char hash[DIGEST_HEX_BYTES];
    buffer_init(&start);
    buffer_init(&end);
    buffer_init(&text);
    read_file(&start, before);
    read_file(&end, behind);
    sqlite3_stmt *last = prepare("SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1");
    if (sqlite3_step(last) != SQLITE_ROW)
        fail("there is no row yet");
    const sqlite3_int64 sequence = sqlite3_column_int64(last, 0);
    snprintf(hash, sizeof hash, "%s", (const char *)sqlite3_column_text(last, 1));
    sqlite3_finalize(last);
    sqlite3_stmt *rows = prepare_copy("audit", row, "audit WHERE sequence = ?3");
    for (long k = 0; k < count; k++) {
        turn(k);
        buffer_clear(&text);
        buffer_append_format(&text, "%.*s%lld%.*s", STR_ARGS(buffer_str(&start)),
                             (long long)sequence + k + 1, STR_ARGS(buffer_str(&end)));
        store_chain_hash(hash, buffer_str(&text), hash);
        sqlite3_bind_int64(rows, 1, sequence + k + 1);
        sqlite3_bind_text(rows, 2, hash, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(rows, 3, sequence);
        step(rows);
    }
    run("COMMIT");
    sqlite3_finalize(rows);
    buffer_finish(&start);
    buffer_finish(&end);
    buffer_finish(&text);
}

int main(int argc, char **argv)
{
    if (argc < 4 || sqlite3_open(argv[1], &database) != SQLITE_OK)
        return 2;
    run("PRAGMA synchronous=OFF");
    if (strcmp(argv[2], "tasks") == 0 && argc == 5)
        copy_tasks(strtol(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
    else if (strcmp(argv[2], "audit") == 0 && argc == 6)
        add_rows(strtol(argv[3], NULL, 10), argv[4], argv[5]);
    else
        return 2;
    return sqlite3_close(database) == SQLITE_OK ? 0 : 1;
}
