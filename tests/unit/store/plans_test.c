/* The plan of every statement of SQLite's: none may cost more as the tables grow. Without ANALYZE,
 * which nothing here runs, the planner knows nothing of sizes: an empty database has the plans of a
 * full one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "harness.h"
#include "plans.h"
#include "task_operations.h"
#include "taskgate/core/memory.h"

static struct scratch scratch;
static struct database *database;

static const struct plans_row own[] = {
#define STATEMENT_ROW(symbol, sql) {#symbol, ""},
#define OVERRIDE_ROW(symbol, sql)
#include "own_statements.h"
#undef STATEMENT_ROW
#undef OVERRIDE_ROW
};
static struct plans_row all[STATEMENT_ALL];

static void set_up(void)
{
    struct error error = {""};
    scratch_init(&scratch);
    plans_write(&sqlite_dialect, own, PLANS_COUNT(own), all);
    database = store_sqlite.open(scratch.path, &error);
    ck_assert_msg(database != NULL, "%s", error.message);
    /* A statement's plan has those of its triggers. */
    ck_assert_int_eq(
        sqlite3_db_config(database->handle, SQLITE_DBCONFIG_TRIGGER_EQP, 1, (int *)NULL),
        SQLITE_OK);
}

static void tear_down(void)
{
    store_sqlite.close(database);
    scratch_finish(&scratch);
}

/* ---- the exceptions ---- */

/* Tables that stay small, which may be read whole. */
static const struct plans_row small_tables[] = {
    {"outbox_target", "a row for each endpoint of the configuration"},
    {"replica", "a row for each process that was there within a day"},
    {"hold", "one row"},
    {"sign_in_attempt", "1,000 rows"},
    {"limited", "a row for each owner of a task that limits count, and those since the last sweep"},
    {"place", "a row for each target that was configured and is not swept yet"},
    {"page", "a page of a list"},
    {"same", "the approvals that are counted: STORE_TALLY_SAME_MOST"},
    {"sqlite_sequence", "a row for each table that numbers its rows"},
    {"CONSTANT", "one row, made by the statement"},
    {"2 CONSTANT", "two rows, made by the statement"},
};

/* Statements that read more than one row and have no limit, or one that is not in their text; or
 * that begin to read a table and end after the first rows. */
static const struct plans_row statements[] = {
    {"TASK_OF_SESSION", "the tasks of one owner that wait or run: limits.pending_per_principal"},
    {"TASK_WAITING", "the tasks that wait: limits.pending_total"},
    {"TASK_WAITING_COUNT", "places of an index, of the tasks that wait"},
    {"TASK_WAITS", "the tasks that wait: limits.pending_total; at most every 5 s"},
    {"CLAIM_LOST", "the tasks that are executed now"},
    {"HOME_LOST_TASKS", "the failed tasks of one session"},
    {"PAIR_DELETE", "the tokens of one session"},
    {"SESSION_DROP_OLDEST", "STORE_SESSIONS_MAX places of an index, every 64th time"},
    {"PAIR_DROP_OLDEST", "four times STORE_SESSIONS_MAX places of an index, every 64th time"},
    {"SIGN_IN_DROP_OLDEST", "one row more than there may be, of 10,000"},
    {"AUDIT_SINCE", "the trail up to a time, which a command reads beside the gateway"},
    {"AUDIT_END", "the last row, and the last anchor of a start"},
    {"ANCHOR_START", "the last row of the index"},
    {"ANCHOR_LAST", "the last row"},
    {"AUDIT_REMOVE", "the rows that one sweep has looked at: 1,024"},
    {"AUDIT_REMOVE_KEPT", "as AUDIT_REMOVE"},
    {"ANCHOR_REMOVE", "as AUDIT_REMOVE: an anchor for each row at most"},
    {"AUDIT_LIST", "the trail of one task"},
    {"OUTBOX_DELIVERY_INSERT", "the first notice of a task, of those that wait"},
    {"OUTBOX_DELIVERY_TO_OTHERS", "as OUTBOX_DELIVERY_INSERT"},
    {"BLOCK_ACTIVE", "the blocks in force: STORE_BLOCKS_MOST"},
    {"BLOCK_TASKS", "the tasks that wait: limits.pending_total"},
    {"GRANT_OF_TOOL", "the grants of one owner for one tool that are in force"},
    {"GRANT_ACTIVE", "the grants that are in force; at a reload"},
    {"DEFINITION_COUNT", "the definitions of one source, which are bounded"},
    {"GRANT_COUNT", "the grants that are in force"},
    {"TALLY_READ", "30 rows: a day each"},
    {"REMINDER_DELETE", "the reminders of one task"},
    {"REMINDER_ALL", "those of the tasks that wait: limits.pending_total; of a copy"},
    /* Triggers, and the deletes that a foreign key asks for. */
    {"CASCADE", "the reminders of one task"},
    {"audit_is_not_deleted", "the last row of the index"},
    {"outbox_notice_is_told", "the deliveries of one notice: one for each endpoint"},
    {"outbox_next_is_due", "the first notice of a task, of those that wait"},
    {"outbox_thread_is_over", "the messages about one task: one for each endpoint"},
};
static bool is_used[PLANS_COUNT(statements)];

static bool is_small(const char *table)
{
    size_t count = PLANS_COUNT(small_tables);
    return plans_find(small_tables, count, table) < count;
}

static bool is_excepted(const char *name)
{
    size_t count = PLANS_COUNT(statements), i = plans_find(statements, count, name);
    return i < count && (is_used[i] = true);
}

/* ---- one plan ---- */

static int number_of(const char *format, const char *name)
{
    char sql[256];
    sqlite3_stmt *row = NULL;
    snprintf(sql, sizeof sql, format, name);
    ck_assert_int_eq(sqlite3_prepare_v2(database->handle, sql, -1, &row, NULL), SQLITE_OK);
    int number = sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int(row, 0) : 0;
    sqlite3_finalize(row);
    return number;
}

static int count_equal(const char *search)
{
    int count = 0;
    for (const char *place = search; (place = strstr(place, "=?")); place += 2)
        count++;
    return count;
}

/* "SEARCH table USING [COVERING ]INDEX name (column=? AND …)": of a unique index, by all of it. */
static bool finds_one_row(const char *search)
{
    char name[64];
    const char *index = strstr(search, "INDEX ");
    if (strstr(search, "INTEGER PRIMARY KEY (rowid=?)"))
        return true;
    if (!index || sscanf(index, "INDEX %63s", name) != 1)
        return !strstr(search, "USING"); /* the smallest or the largest of a whole index */
    return number_of("SELECT \"unique\" FROM sqlite_schema AS s, pragma_index_list(s.tbl_name) AS l"
                     " WHERE s.name = '%1$s' AND l.name = '%1$s'",
                     name) &&
           count_equal(search) == number_of("SELECT count(*) FROM pragma_index_info('%s')", name);
}

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* NULL: there is nothing wrong with it. */
static const char *fault_of(const char *sql, const char *step)
{
    bool has_limit = strstr(sql, "LIMIT") != NULL;
    bool is_smallest = begins_with(sql, "SELECT min(") || begins_with(sql, "SELECT coalesce(max(");
    if (begins_with(step, "SCAN ") && strstr(step, "-ROW VALUES CLAUSE"))
        return NULL; /* of the statement's own rows, as newer versions say it */
    if (begins_with(step, "SCAN "))
        return is_small(step + 5) || begins_with(step, "SCAN (subquery") ? NULL : "a scan";
    if (strstr(step, "TEMP B-TREE"))
        return "a temporary b-tree";
    if (begins_with(step, "SEARCH ") && !has_limit && !is_smallest && !is_small(step + 7) &&
        !finds_one_row(step))
        return "rows without a limit";
    return NULL;
}

static void judge(const char *name, const char *sql, bool sorts_a_page)
{
    char *text = memory_format("EXPLAIN QUERY PLAN %s", sql);
    sqlite3_stmt *plan = NULL;
    ck_assert_msg(sqlite3_prepare_v2(database->handle, text, -1, &plan, NULL) == SQLITE_OK,
                  "%s: %s", name, sqlite3_errmsg(database->handle));
    /* The statement's steps, then those of each trigger, which has a name, and of each cascade. */
    char part[64] = "";
    while (sqlite3_step(plan) == SQLITE_ROW) {
        static const char head[] = "-- TRIGGER ";
        const char *step = (const char *)sqlite3_column_text(plan, 3);
        if (!step || begins_with(step, head)) {
            snprintf(part, sizeof part, "%s", step ? step + sizeof head - 1 : "CASCADE");
            continue;
        }
        const char *fault = fault_of(part[0] ? "" : sql, step);
        bool is_outermost = sqlite3_column_int(plan, 1) == 0;
        if (fault && sorts_a_page && is_outermost && strstr(step, "TEMP B-TREE"))
            continue;
        ck_assert_msg(!fault || is_excepted(part[0] ? part : name), "%s %s: %s: %s\n%s", name, part,
                      fault, step, sql);
    }
    sqlite3_finalize(plan);
    free(text);
}

static void judge_statement(const char *name, const char *sql)
{
    judge(name, sql, false);
}

START_TEST(no_statement_costs_more_as_the_tables_grow)
{
    plans_of_statements(all, PLANS_COUNT(all), judge_statement);
    for (size_t i = 0; i < PLANS_COUNT(statements); i++)
        ck_assert_msg(is_used[i], "%s needs no exception", statements[i].name);
}
END_TEST

static void expect_step(const char *name, const char *text)
{
    size_t i = plans_find(all, PLANS_COUNT(all), name);
    ck_assert_uint_lt(i, PLANS_COUNT(all));
    char *sql = memory_format("EXPLAIN QUERY PLAN %s", all[i].text);
    sqlite3_stmt *plan = NULL;
    ck_assert_int_eq(sqlite3_prepare_v2(database->handle, sql, -1, &plan, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(plan), SQLITE_ROW);
    ck_assert_ptr_nonnull(strstr((const char *)sqlite3_column_text(plan, 3), text));
    sqlite3_finalize(plan);
    free(sql);
}

/* Operators' pages ask for these again and again: few definitions are among the ones to look at,
 * and the calls that wait are among many that do not. */
START_TEST(pages_ask_for_rows_of_an_index)
{
    expect_step("DEFINITION_PAGE_WATCHED", "definition_watched");
    expect_step("TASK_WAITING", "USING INDEX task_by_");
    expect_step("TASK_WAITING_COUNT", "USING INDEX task_by_decide_by (state=? AND <expr>>?)");
}
END_TEST

/* The arguments of one have up to 64 KiB, and a call reads all grants of its caller for its tool.
 */
START_TEST(what_walks_over_grants_reads_no_arguments)
{
    static const char *const walks[] = {"GRANT_OF_TOOL", "GRANT_ACTIVE", "GRANT_DUE"};
    for (size_t i = 0; i < PLANS_COUNT(walks); i++) {
        const char *sql = all[plans_find(all, STATEMENT_ALL, walks[i])].text;
        ck_assert_msg(!strstr(sql, "arguments"), "%s: %s", walks[i], sql);
        ck_assert_msg(strstr(sql, "end_reason") != NULL, "%s: %s", walks[i], sql);
    }
}
END_TEST

/* ---- lists, whose statements are built ---- */

static char *last_sql;

static int keep_sql(unsigned what, void *context, void *statement, void *text)
{
    (void)what, (void)context, (void)text;
    free(last_sql);
    last_sql = memory_copy_text(sqlite3_sql(statement));
    return 0;
}

/* A page of each state is sorted at its end. */
static void judge_list(const char *name)
{
    char *sql = last_sql;
    last_sql = NULL; /* its own statements are kept, too */
    judge(name, sql, true);
    free(sql);
}

START_TEST(no_list_costs_more_as_the_tables_grow)
{
    sqlite3_trace_v2(database->handle, SQLITE_TRACE_STMT, keep_sql, NULL);
    plans_run_lists(&store_sqlite, database, judge_list);
    sqlite3_trace_v2(database->handle, 0, NULL, NULL);
    free(last_sql);
    last_sql = NULL;
}
END_TEST

/* ---- what became of the others of a tool ---- */

/* Rows of the trail: decisions about many tools, and as many about one, with the same arguments. */
static const char decisions[] =
    "WITH RECURSIVE made (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM made WHERE i < %d)"
    " INSERT INTO audit (at_ms, task_id, event, from_state, to_state, actor_kind, actor_name,"
    " reason, source, tool, person, arguments_digest) SELECT 1, 't' || i,"
    " CASE i %% 3 WHEN 0 THEN 'create' WHEN 1 THEN 'approve' ELSE 'vote' END, '', '', 'operator',"
    " 'a', '', 's', CASE WHEN i %% 2 THEN 'drop' ELSE 'other' || i END, 'a', 'd' FROM made";

/* The steps of SQLite's machine that it takes to read all of it. */
static int64_t steps_of_tally(const struct task *task)
{
    static const unsigned reads[] = {STATEMENT_TALLY_READ, STATEMENT_TALLY_LAST,
                                     STATEMENT_TALLY_SAME};
    struct batch batch = {.database = database};
    struct store_tally *tally = NULL;
    int64_t steps = 0;
    ck_assert(tally_read(&batch, task, &tally));
    for (size_t i = 0; i < PLANS_COUNT(reads); i++)
        steps += sqlite3_stmt_status(database->statements[reads[i]], SQLITE_STMTSTATUS_VM_STEP, 1);
    ck_assert(tally->has_last);
    ck_assert_int_le(tally->same_approved, STORE_TALLY_SAME_MOST);
    free(tally->person);
    free(tally->reason);
    free(tally);
    return steps;
}

START_TEST(the_tally_costs_no_more_as_the_trail_grows)
{
    struct task *task = new_task("auth:ab");
    task_set_text(&task->source, STR("s"));
    task_set_text(&task->tool, STR("drop"));
    snprintf(task->arguments_digest, sizeof task->arguments_digest, "d");
    char *few = memory_format(decisions, 8 * STORE_TALLY_SAME_MOST);
    char *many = memory_format(decisions, 64 * STORE_TALLY_SAME_MOST);
    ck_assert_int_eq(sqlite3_exec(database->handle, few, NULL, NULL, NULL), SQLITE_OK);
    int64_t before = steps_of_tally(task);
    ck_assert_int_eq(sqlite3_exec(database->handle, many, NULL, NULL, NULL), SQLITE_OK);
    int64_t after = steps_of_tally(task);
    ck_assert_int_lt(after, 20 * STORE_TALLY_SAME_MOST);
    ck_assert_int_lt(after, before + before / 10);
    task_unref(task);
    free(few);
    free(many);
}
END_TEST

/* ---- commands beside a gateway, which read each row once, in order ---- */

static int judge_command(unsigned what, void *context, void *statement, void *text)
{
    sqlite3_stmt *plan = NULL;
    char *sql = memory_format("EXPLAIN QUERY PLAN %s", sqlite3_sql(statement));
    int *count = context;
    (void)what, (void)text;
    ck_assert_int_eq(sqlite3_prepare_v2(database->handle, sql, -1, &plan, NULL), SQLITE_OK);
    while (sqlite3_step(plan) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(plan, 3);
        ck_assert_msg(!strstr(step, "TEMP B-TREE") && !strstr(step, "AUTOMATIC"), "%s\n%s", step,
                      sql);
    }
    sqlite3_finalize(plan);
    free(sql);
    ++*count;
    return 0;
}

/* Each was judged as it began. */
static void ran_command(const char *name)
{
    (void)name;
}

START_TEST(no_command_sorts_what_grows)
{
    int count = 0;
    sqlite3_trace_v2(database->handle, SQLITE_TRACE_STMT, judge_command, &count);
    plans_run_commands(database, ran_command);
    sqlite3_trace_v2(database->handle, 0, NULL, NULL);
    ck_assert_int_eq(count, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store plans");
    TCase *tests = tcase_create("plans");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, no_statement_costs_more_as_the_tables_grow);
    tcase_add_test(tests, pages_ask_for_rows_of_an_index);
    tcase_add_test(tests, what_walks_over_grants_reads_no_arguments);
    tcase_add_test(tests, no_list_costs_more_as_the_tables_grow);
    tcase_add_test(tests, the_tally_costs_no_more_as_the_trail_grows);
    tcase_add_test(tests, no_command_sorts_what_grows);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
