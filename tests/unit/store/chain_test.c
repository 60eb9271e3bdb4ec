/* The chain of the audit trail: what is changed, removed or cut off is found. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "harness.h"
#include "sqlite/migrations.h"
#include "taskgate/core/buffer.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/text.h"
#include "taskgate/store/maintenance.h"
#include "taskgate/store/trail.h"

static struct scratch scratch;
static struct bench bench;
static struct store_site site; /* as a command reads it */

static void set_up(void)
{
    scratch_init(&scratch);
    site = scratch_site(&scratch);
    bench_open(&bench, &scratch);
}

static void tear_down(void)
{
    bench_close(&bench);
    scratch_finish(&scratch);
}

/* Three rows: two creations and an approval. */
static void write_rows(void)
{
    struct task *task = new_task("auth:ab");
    task_set_text(&task->decision, STR("{\"rule\":\"*\",\"outcome\":\"approve\"}"));
    task_set_text(&task->rule, STR("delete_*"));
    task_set_text(&task->principal, STR("claude (ab)"));
    memset(task->policy_digest, 'a', sizeof task->policy_digest - 1);
    memset(task->definition_digest, 'b', sizeof task->definition_digest - 1);
    memset(task->request_digest, 'c', sizeof task->request_digest - 1);
    task = create_task(&bench, task);
    task_unref(create_task(&bench, new_task("auth:cd")));
    struct answer answer = {0};
    cast_vote(&bench, task->id, "alice", (struct store_vote){.reason = "asked"}, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
    task_unref(task);
}

static struct store_trail_report verify(void)
{
    struct store_trail_report report;
    struct error error = {""};
    ck_assert_msg(store_trail_verify(&site, NULL, NULL, &report, &error), "%s", error.message);
    return report;
}

static void expect_finding(const char *finding)
{
    struct store_trail_report report = verify();
    ck_assert(!report.is_good);
    ck_assert_str_eq(report.finding.message, finding);
}

/* As somebody with the file can. */
static void tamper(const char *sql)
{
    ck_assert_int_eq(scratch_execute(&scratch, "DROP TRIGGER IF EXISTS audit_is_not_updated;"
                                               "DROP TRIGGER IF EXISTS audit_is_not_deleted;"
                                               "DROP TRIGGER IF EXISTS audit_is_not_replaced"),
                     SQLITE_OK);
    ck_assert_int_eq(scratch_execute(&scratch, sql), SQLITE_OK);
}

START_TEST(a_trail_that_nobody_touched_is_whole)
{
    ck_assert(verify().is_good);
    ck_assert_int_eq(verify().rows, 0);
    write_rows();
    struct store_trail_report report = verify();
    ck_assert_msg(report.is_good, "%s", report.finding.message);
    ck_assert_int_eq(report.rows, 3);
    ck_assert_int_eq(report.end.sequence, 3);
    bench_close(&bench);
    bench_open(&bench, &scratch);
    write_rows(); /* a new process goes on where the old one stopped */
    ck_assert_int_eq(verify().rows, 6);
    ck_assert(verify().is_good);
}
END_TEST

static bool collect(void *context, struct str row)
{
    struct buffer *text = context;
    buffer_append(text, row);
    buffer_append_char(text, '\n');
    return true;
}

/* Behaviour 15.1, with nothing of the store's own code. */
START_TEST(anybody_can_check_an_exported_row)
{
    struct buffer text, rest, canonical;
    struct error error = {""};
    char previous[DIGEST_HEX_BYTES], hash[DIGEST_HEX_BYTES];
    write_rows();
    buffer_init(&text);
    ck_assert(store_trail_read(&site, 0, collect, &text, &error));
    struct str lines = buffer_str(&text), line;
    memset(previous, '0', sizeof previous - 1);
    for (int64_t sequence = 1; str_cut(lines, '\n', &line, &lines) && line.length > 0; sequence++) {
        char number[32];
        snprintf(number, sizeof number, "%lld", (long long)sequence);
        ck_assert(json_check(line, &error));
        ck_assert(str_equal(json_member(line, "sequence"), str_from(number)));
        buffer_init(&rest);
        buffer_init(&canonical);
        json_write_without_member(&rest, line, "hash");
        buffer_append(&canonical, str_slice(previous, sizeof previous - 1));
        canonical_write(buffer_str(&rest), &canonical);
        digest_sha256_hex(buffer_str(&canonical), hash);
        ck_assert(json_string_equals(json_member(line, "hash"), str_from(hash)));
        memcpy(previous, hash, sizeof hash);
        buffer_finish(&rest);
        buffer_finish(&canonical);
    }
    buffer_append_char(&text, '\0');
    ck_assert_ptr_nonnull(strstr(text.bytes, "\"votes\":[{\"at\":\""));
    ck_assert_ptr_nonnull(strstr(text.bytes, "\"person\":\"alice\""));
    buffer_finish(&text);
}
END_TEST

static const char *const columns[] = {
    "actor_name = 'mallory'",
    "actor_kind = 'gateway'",
    "arguments_digest = 'x'",
    "at_ms = at_ms + 1",
    "decision = '{\"a\":1}'",
    "definition_digest = 'x'",
    "event = 'reject'",
    "from_state = 'approved'",
    "hash = substr(hash, 2) || '0'",
    "kept_digest = 'x'",
    "person = 'mallory'",
    "policy_digest = 'x'",
    "principal = 'x'",
    "reason = 'x'",
    "request_digest = 'x'",
    "rule = 'x'",
    "source = 'x'",
    "task_id = 'tg_x'",
    "to_state = 'executing'",
    "tool = 'x'",
    "via = 'x'",
    "votes = '[]'",
    "workflow = 'x'",
};
#define COLUMN_COUNT ((int)(sizeof columns / sizeof *columns))

START_TEST(a_change_of_any_column_is_found)
{
    char sql[160];
    write_rows();
    snprintf(sql, sizeof sql, "UPDATE audit SET %s WHERE sequence = 2", columns[_i]);
    tamper(sql);
    expect_finding("row 2 was changed: its hash is not that of its content");
}
END_TEST

START_TEST(the_columns_above_are_all)
{
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM pragma_table_info('audit')"),
                     COLUMN_COUNT + 1); /* the number is in the next test */
}
END_TEST

START_TEST(a_removed_or_renumbered_row_is_found)
{
    write_rows();
    tamper("DELETE FROM audit WHERE sequence = 3");
    expect_finding("row 3 is missing, and all behind it");
    tamper("DELETE FROM audit WHERE sequence = 1");
    expect_finding("row 1 is missing");
    tamper("UPDATE audit SET sequence = 1 WHERE sequence = 2");
    expect_finding("row 1 was changed: its hash is not that of its content");
}
END_TEST

START_TEST(kept_arguments_are_those_of_the_call)
{
    char *arguments = NULL;
    struct error error = {""};
    store_audit_configure(bench.store,
                          &(struct store_audit_settings){.keep_arguments_ms = 3600000});
    write_rows();
    ck_assert(store_trail_arguments(&site, 1, &arguments, &error));
    ck_assert_str_eq(arguments, "{\"name\":\"prod\"}");
    free(arguments);
    ck_assert(!store_trail_arguments(&site, 3, &arguments, &error)); /* an approval */
    ck_assert(verify().is_good);
    tamper("UPDATE audit_kept SET arguments = '{\"name\":\"dev\"}' WHERE sequence = 2");
    expect_finding("row 2: its kept arguments were changed");
    tamper("DELETE FROM audit_kept"); /* as they go when their time is over */
    ck_assert(verify().is_good);
}
END_TEST

START_TEST(rows_that_are_too_old_leave_an_anchor)
{
    write_rows();
    tamper("UPDATE audit SET hash = hash"); /* no trigger hinders the test any more */
    char hash[80];
    struct store_trail_report before = verify();
    snprintf(hash, sizeof hash, "%s", before.end.hash);
    /* Everything is older than a millisecond; the newest row goes, too. */
    store_audit_configure(bench.store, &(struct store_audit_settings){.keep_ms = 1});
    struct answer answer = {0};
    do {
        answer_finish(&answer);
        answer = (struct answer){0};
        audit_of(&bench, "tg_none", &answer);
    } while (scratch_query(&scratch, "SELECT count(*) FROM audit") > 0);
    answer_finish(&answer);
    struct store_trail_report report = verify();
    ck_assert_msg(report.is_good, "%s", report.finding.message);
    ck_assert(report.has_start);
    ck_assert_int_eq(report.start.place.sequence, 3);
    ck_assert_str_eq(report.start.place.hash, hash);
    store_audit_configure(bench.store, &(struct store_audit_settings){.keep_ms = 0});
    write_rows();
    ck_assert_int_eq(verify().rows, 3);
    ck_assert_int_eq(verify().end.sequence, 6);
    ck_assert(verify().is_good);
}
END_TEST

static void shift_rows(const char *by, int rows)
{
    char sql[160];
    snprintf(sql, sizeof sql,
             "UPDATE audit SET at_ms = at_ms %s WHERE sequence IN"
             " (SELECT sequence FROM audit ORDER BY sequence DESC LIMIT %d)",
             by, rows);
    tamper(sql);
}

/* Sweeps come often, each is one commit. */
static void wait_for_count(const char *sql, int64_t count)
{
    struct answer answer = {0};
    for (int i = 0; i < 2000 && scratch_query(&scratch, sql) != count; i++) {
        answer_finish(&answer);
        answer = (struct answer){0};
        audit_of(&bench, "tg_none", &answer);
    }
    answer_finish(&answer);
    ck_assert_int_eq(scratch_query(&scratch, sql), count);
}

/* ---- the log ---- */

static char log_path[sizeof scratch.path + 8];

static void write_log_to_file(void)
{
    snprintf(log_path, sizeof log_path, "%s.log", scratch.path);
    ck_assert_ptr_nonnull(freopen(log_path, "w", stderr));
    ck_assert_int_eq(dup2(fileno(stderr), STDERR_FILENO), STDERR_FILENO);
}

static int count_lines(const char *what)
{
    char line[4096];
    int count = 0;
    FILE *file = fopen(log_path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file))
        count += strstr(line, what) != NULL;
    fclose(file);
    return count;
}

/* The store is closed first, so that all is logged. */
static void expect_line(const char *what)
{
    bench_close(&bench);
    ck_assert_int_eq(count_lines(what), 1);
    remove(log_path);
    bench_open(&bench, &scratch);
}

/* Ten years; and what was written before and after is of a day ago. */
#define AHEAD "+ 315360000000"
#define OLD "- 86400000"

START_TEST(rows_of_a_clock_that_was_ahead_do_not_stop_the_purge)
{
    write_rows();
    tamper("UPDATE audit SET hash = hash");
    shift_rows(AHEAD, 3);
    write_rows();
    shift_rows(OLD, 3);
    write_rows();
    write_log_to_file();
    store_audit_configure(bench.store, &(struct store_audit_settings){.keep_ms = 3600000});
    wait_for_count("SELECT count(*) FROM audit", 3);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT min(sequence) FROM audit"), 7);
    /* Without an old row after it such a row may be young. */
    shift_rows(AHEAD, 3);
    write_rows();
    store_audit_configure(bench.store,
                          &(struct store_audit_settings){.keep_ms = 3600000, .anchor_every_ms = 1});
    wait_for_count("SELECT max(sequence) FROM audit_anchor", 12); /* by the sweep that purges */
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM audit"), 6);
    expect_line("Audit entries that were written with a clock that was ahead go with those around "
                "them\",\"entries\":3}");
}
END_TEST

START_TEST(an_anchor_of_a_clock_that_was_ahead_does_not_stop_anchors)
{
    const struct store_audit_settings settings = {.anchor_every_ms = 3600000};
    write_rows();
    store_audit_configure(bench.store, &settings);
    wait_for_count("SELECT count(*) FROM audit_anchor", 1);
    tamper("UPDATE audit_anchor SET at_ms = at_ms " AHEAD);
    write_rows();
    write_log_to_file();
    store_audit_configure(bench.store, &settings);
    wait_for_count("SELECT count(*) FROM audit_anchor", 2);
    expect_line("The last audit anchor was made with a clock that was ahead; another follows\","
                "\"sequence\":3,\"by_ms\":31535999");
}
END_TEST

/* ---- a sweep that fails after it has made an anchor ---- */

static struct store_backend failing;
static const struct store_backend *sound;
static atomic_bool fails_next;

static bool fail_once(struct database *database, enum statement which, const struct value *values,
                      size_t count, row_visitor *visit, void *context)
{
    bool fails = which == STATEMENT_TASK_NEXT_DEADLINE && atomic_exchange(&fails_next, false);
    return !fails && sound->read(database, which, values, count, visit, context);
}

static struct database *open_failing(const char *place, struct error *error)
{
    return with_backend(sound->open(place, error), &failing);
}

START_TEST(an_anchor_that_was_undone_is_not_logged)
{
    const struct store_audit_settings settings = {.anchor_every_ms = 3600000};
    bench_close(&bench);
    sound = scratch.backend;
    failing = *sound;
    failing.open = open_failing;
    failing.read = fail_once;
    scratch.backend = &failing;
    bench_open(&bench, &scratch);
    write_rows();
    write_log_to_file();
    atomic_store(&fails_next, true);
    store_audit_configure(bench.store, &settings);
    for (int i = 0; i < 1000 && atomic_load(&fails_next); i++)
        loop_run_once(bench.loop, 10);
    ck_assert(!atomic_load(&fails_next));
    store_audit_configure(bench.store, &settings);
    wait_for_count("SELECT count(*) FROM audit_anchor", 1);
    bench_close(&bench); /* all is logged */
    ck_assert_int_eq(count_lines("A store operation failed"), 1);
    ck_assert_int_eq(count_lines("Audit anchor"), 1);
    remove(log_path);
    bench_open(&bench, &scratch);
}
END_TEST

START_TEST(rows_of_an_older_version_are_chained)
{
    bench_close(&bench);
    remove(scratch.path);
    sqlite3 *handle = NULL;
    ck_assert_int_eq(sqlite3_open(scratch.path, &handle), SQLITE_OK);
    for (int i = 0; i < 12; i++)
        ck_assert_int_eq(sqlite3_exec(handle, migration_scripts[i], NULL, NULL, NULL), SQLITE_OK);
    char sql[512];
    snprintf(sql, sizeof sql,
             "INSERT INTO audit (at_ms, task_id, event, from_state, to_state, actor_kind,"
             " actor_name, reason, decision) VALUES"
             " (1, 'tg_1', 'create', '', 'pending', 'client', 'x', '', '{\"b\": 1, \"a\": 2}'),"
             " (2, 'tg_2', 'create', '', 'pending', 'client', 'x', '', 'no JSON');"
             "PRAGMA user_version = 12; PRAGMA application_id = %d",
             MIGRATIONS_APPLICATION_ID);
    ck_assert_int_eq(sqlite3_exec(handle, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(handle);
    bench_open(&bench, &scratch);
    ck_assert_int_eq(verify().rows, 2);
    ck_assert(verify().is_good);
    write_rows();
    ck_assert_int_eq(verify().rows, 5);
    ck_assert(verify().is_good);
}
END_TEST

START_TEST(a_backup_is_private_whole_and_replaces_nothing)
{
    char target[128];
    struct error error = {""};
    struct store_trail_report report;
    const struct store_site copy = {&store_sqlite, target};
    write_rows();
    snprintf(target, sizeof target, "%s/copy.db", scratch.folder);
    ck_assert_msg(store_backup(&site, &copy, &error), "%s", error.message);
    write_rows();
    ck_assert(store_trail_verify(&copy, NULL, NULL, &report, &error));
    ck_assert(report.is_good);
    ck_assert_int_eq(report.rows, 3);
    ck_assert(!store_backup(&site, &copy, &error));
    ck_assert_ptr_nonnull(strstr(error.message, "File exists"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store chain");
    TCase *tests = tcase_create("store chain");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_trail_that_nobody_touched_is_whole);
    tcase_add_test(tests, anybody_can_check_an_exported_row);
    tcase_add_loop_test(tests, a_change_of_any_column_is_found, 0, COLUMN_COUNT);
    tcase_add_test(tests, the_columns_above_are_all);
    tcase_add_test(tests, a_removed_or_renumbered_row_is_found);
    tcase_add_test(tests, kept_arguments_are_those_of_the_call);
    tcase_add_test(tests, rows_that_are_too_old_leave_an_anchor);
    tcase_add_test(tests, rows_of_a_clock_that_was_ahead_do_not_stop_the_purge);
    tcase_add_test(tests, an_anchor_of_a_clock_that_was_ahead_does_not_stop_anchors);
    tcase_add_test(tests, an_anchor_that_was_undone_is_not_logged);
    tcase_add_test(tests, rows_of_an_older_version_are_chained);
    tcase_add_test(tests, a_backup_is_private_whole_and_replaces_nothing);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
