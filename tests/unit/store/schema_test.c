/* The schema of a new file, of one that has come through all versions, and of one in between. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "sqlite/migrations.h"
#include "taskgate/core/buffer.h"

static struct scratch scratch;

static void set_up(void)
{
    scratch_init(&scratch);
}

static void tear_down(void)
{
    scratch_finish(&scratch);
}

static void make_version(int version)
{
    sqlite3 *handle = NULL;
    ck_assert_int_eq(sqlite3_open(scratch.path, &handle), SQLITE_OK);
    for (int i = 0; i < version; i++)
        ck_assert_int_eq(sqlite3_exec(handle, migration_scripts[i], NULL, NULL, NULL), SQLITE_OK);
    char sql[128];
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d; PRAGMA application_id = %d", version,
             MIGRATIONS_APPLICATION_ID);
    ck_assert_int_eq(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
}

/* Appends the rows of a statement, a line each. */
static void add_rows(sqlite3 *handle, const char *sql, struct buffer *text)
{
    sqlite3_stmt *rows = NULL;
    ck_assert_msg(sqlite3_prepare_v2(handle, sql, -1, &rows, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(handle));
    while (sqlite3_step(rows) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(rows); i++) {
            const char *value = (const char *)sqlite3_column_text(rows, i);
            buffer_append_text(text, value ? value : "NULL");
            buffer_append_text(text, i + 1 < sqlite3_column_count(rows) ? "|" : "\n");
        }
    }
    ck_assert_int_eq(sqlite3_finalize(rows), SQLITE_OK);
}

/* All that is in the file: versions, schema, and the rows of each table. */
static void describe(struct buffer *text)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *tables = NULL;
    ck_assert_int_eq(sqlite3_open(scratch.path, &handle), SQLITE_OK);
    buffer_init(text);
    add_rows(handle, "PRAGMA user_version", text);
    add_rows(handle, "PRAGMA application_id", text);
    add_rows(handle, "SELECT name, type, tbl_name, sql FROM sqlite_schema ORDER BY name", text);
    ck_assert_int_eq(sqlite3_prepare_v2(handle,
                                        "SELECT name FROM sqlite_schema WHERE type = 'table'", -1,
                                        &tables, NULL),
                     SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT '%s', * FROM %s", sqlite3_column_text(tables, 0),
                 sqlite3_column_text(tables, 0));
        add_rows(handle, sql, text);
    }
    sqlite3_finalize(tables);
    sqlite3_close(handle);
    buffer_append_char(text, '\0');
}

/* Check's own message of two long texts is too long for it. */
static void expect_same(const struct buffer *one, const struct buffer *other)
{
    size_t at = 0;
    while (one->bytes[at] && one->bytes[at] == other->bytes[at])
        at++;
    at -= at < 100 ? at : 100;
    ck_assert_msg(strcmp(one->bytes, other->bytes) == 0, "\"%.300s\" is not \"%.300s\"",
                  one->bytes + at, other->bytes + at);
}

static int commits;

static int count_commit(void *context)
{
    (void)context;
    commits++;
    return 0;
}

static bool migrate_and_count(struct database *database, struct error *error)
{
    sqlite3_commit_hook(database->handle, count_commit, NULL);
    return migrations_apply(database, error);
}

static void migrate(void)
{
    struct database database = {NULL};
    struct error error = {""};
    ck_assert_msg(database_open(&database, scratch.path, migrate_and_count, &error), "%s",
                  error.message);
    database_close(&database);
}

START_TEST(a_new_file_has_what_all_versions_leave_behind)
{
    struct buffer made, migrated;
    migrate();
    describe(&made);
    unlink(scratch.path);
    make_version(1);
    migrate();
    describe(&migrated);
    expect_same(&made, &migrated);
    ck_assert_ptr_nonnull(strstr(made.bytes, "limited||0|0"));
    buffer_finish(&made);
    buffer_finish(&migrated);
}
END_TEST

/* 0: a new file. */
START_TEST(a_start_migrates_in_one_transaction)
{
    if (_i > 0)
        make_version(1);
    migrate();
    ck_assert_int_eq(commits, 1);
}
END_TEST

/* Statements of versions 3, 13 and 28, and the last one before the commit. */
static const char *const last_words[] = {"CREATE TABLE pair", "ALTER TABLE audit ADD COLUMN tool",
                                         "CREATE TRIGGER outbox_next_is_due",
                                         "PRAGMA user_version"};
static const char *last_word;

static int kill_at_last_word(unsigned event, void *context, void *statement, void *sql)
{
    (void)event, (void)context, (void)statement;
    return strstr(sql, last_word) ? kill(getpid(), SIGKILL) : 0;
}

static bool migrate_and_die(struct database *database, struct error *error)
{
    sqlite3_trace_v2(database->handle, SQLITE_TRACE_STMT, kill_at_last_word, NULL);
    return migrations_apply(database, error);
}

START_TEST(a_migration_that_is_killed_leaves_the_old_version)
{
    struct buffer before, after;
    last_word = last_words[_i];
    make_version(1);
    describe(&before);
    pid_t child = fork();
    if (child == 0) {
        struct database database = {NULL};
        struct error error = {""};
        database_open(&database, scratch.path, migrate_and_die, &error);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    describe(&after);
    expect_same(&before, &after);
    buffer_finish(&after);
    migrate();
    describe(&after);
    ck_assert_ptr_nonnull(strstr(after.bytes, "limited||0|0"));
    buffer_finish(&before);
    buffer_finish(&after);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store schema");
    TCase *tests = tcase_create("schema");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_new_file_has_what_all_versions_leave_behind);
    tcase_add_loop_test(tests, a_start_migrates_in_one_transaction, 0, 2);
    tcase_add_loop_test(tests, a_migration_that_is_killed_leaves_the_old_version, 0,
                        sizeof last_words / sizeof *last_words);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
