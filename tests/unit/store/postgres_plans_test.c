/* The plan of every statement of PostgreSQL's, on tables that are filled: none may read a table
 * that grows, or sort one. Plans are those that the server keeps for any values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "harness.h"
#include "plans.h"
#include "taskgate/core/memory.h"

/* Enough for the plans of 100,000 and more. */
#define ROWS "20000"

static struct scratch scratch;
static PGconn *handle;
static struct buffer faults;

static PGresult *run(const char *sql)
{
    PGresult *result = PQexec(handle, sql);
    ExecStatusType status = PQresultStatus(result);
    ck_assert_msg(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, "%s: %s", sql,
                  PQerrorMessage(handle));
    return result;
}

/* Every table but those of one row, by the types of its columns; the triggers sleep. */
static const char fill[] =
    "DO $$ DECLARE name text; columns text; made text; BEGIN"
    " FOR name IN SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
    " AND relkind = 'r' AND relname NOT IN ('taskgate_schema', 'taskgate_totals', 'taskgate_probe',"
    " 'taskgate_hold', 'taskgate_outbox_target', 'taskgate_replica', 'taskgate_lease') LOOP"
    " SELECT string_agg(quote_ident(attname), ', '), string_agg(CASE"
    " WHEN atttypid = 'bytea'::regtype THEN '''x''::bytea'"
    " WHEN atttypid = 'text'::regtype AND name NOT IN ('taskgate_mark', 'taskgate_limited')"
    " AND attname IN ('owner', 'source', 'session', 'target',"
    " 'workflow', 'tool', 'replica') THEN '''v'' || i % 100'"
    " WHEN atttypid = 'text'::regtype THEN '''v'' || i'"
    " WHEN attname = 'state' THEN '3 + i % 5'"
    " WHEN attname IN ('failure', 'outcome', 'epoch', 'used') THEN '0'"
    " WHEN attname = 'is_start' THEN '(i = 7)::int'"
    " ELSE 'i' END, ', ') INTO columns, made FROM pg_attribute"
    " WHERE attrelid = name::regclass AND attnum > 0 AND NOT attisdropped;"
    " EXECUTE format('INSERT INTO %I (%s) OVERRIDING SYSTEM VALUE SELECT %s"
    " FROM generate_series(1, " ROWS
    ") AS i ON CONFLICT DO NOTHING', name, columns, made); END LOOP; END $$";

static void set_up(void)
{
    struct error error = {""};
    scratch_init(&scratch);
    struct database *database = store_postgres.open(scratch.place, &error);
    ck_assert_msg(database != NULL, "%s", error.message);
    store_postgres.close(database);
    handle = PQconnectdb(scratch.place);
    ck_assert_msg(PQstatus(handle) == CONNECTION_OK, "%s", PQerrorMessage(handle));
    PQclear(
        run("SET client_min_messages = error; SET session_replication_role = replica;"
            " SET plan_cache_mode = force_generic_plan; SET max_parallel_workers_per_gather = 0"));
    PQclear(run(fill));
    PQclear(run("ANALYZE"));
    buffer_init(&faults);
}

static void tear_down(void)
{
    PQfinish(handle);
    buffer_finish(&faults);
    scratch_finish(&scratch);
}

/* ---- the exceptions ---- */

static const struct plans_row small_tables[] = {
    {"taskgate_schema", "one row"},
    {"taskgate_totals", "one row"},
    {"taskgate_hold", "one row"},
    {"taskgate_outbox_target", "a row for each endpoint of the configuration"},
    {"taskgate_replica", "a row for each process that was there within a day"},
    {"taskgate_lease", "a row for each kind of lease"},
    {"taskgate_sign_in_attempt", "1,000 rows"},
    {"taskgate_limited",
     "a row for each owner of a task that limits count, and those since a sweep"},
    {"pg_class", "the tables of the database"},
};

static const struct plans_row statements[] = {
    {"TASK_OF_SESSION", "the tasks of one owner that wait or run: limits.pending_per_principal"},
    {"TASK_WAITING", "the tasks that wait: limits.pending_total"},
    {"TASK_WAITS", "the tasks that wait: limits.pending_total; at most every 5 s"},
    {"CLAIM_LOST", "the tasks that are executed now"},
    {"HOME_LOST_TASKS", "the failed tasks of one session"},
    {"BLOCK_ACTIVE", "the blocks in force: STORE_BLOCKS_MOST"},
    {"BLOCK_TASKS", "the tasks that wait: limits.pending_total"},
    {"GRANT_OF_TOOL", "the grants of one owner for one tool that are in force"},
    {"GRANT_ACTIVE", "the grants that are in force; at a reload"},
    {"DEFINITION_COUNT", "the definitions of one source, which are bounded"},
    {"GRANT_COUNT", "the grants that are in force"},
    {"REMINDER_ALL", "those of the tasks that wait: limits.pending_total; of a copy"},
    {"the copy of reminders", "as REMINDER_ALL"},
    {"TALLY_READ", "30 rows: a day each"},
    {"AUDIT_LIST", "the trail of one task"},
    {"REPLICA_LIST", "a small table"},
};

static bool is_in(const struct plans_row *list, size_t count, const char *name)
{
    return plans_find(list, count, name) < count;
}

/* ---- one plan ---- */

/* NULL: there is nothing wrong with it. A page, and what is removed at once, may be sorted. */
static const char *fault_of(const char *sql, const char *step)
{
    static const char scan[] = "Seq Scan on ";
    const char *table = strstr(step, scan);
    if (table && !is_in(small_tables, PLANS_COUNT(small_tables), table + sizeof scan - 1))
        return "a scan";
    if (strstr(step, "Sort  (") && !strstr(sql, "LIMIT"))
        return "a sort";
    return NULL;
}

static void judge_step(const char *name, const char *sql, const char *step)
{
    const char *fault = fault_of(sql, step);
    if (fault && !is_in(statements, PLANS_COUNT(statements), name))
        buffer_append_format(&faults, "%s: %s: %s\n", name, fault, step);
}

static void expect_no_faults(void)
{
    buffer_append_char(&faults, '\0');
    ck_assert_msg(faults.length == 1, "%s", faults.bytes);
    buffer_clear(&faults);
}

static void judge(const char *name, const char *sql)
{
    char *prepare = memory_format("PREPARE it AS %s", sql);
    PQclear(run(prepare));
    free(prepare);
    PGresult *types = run("SELECT coalesce(array_length(parameter_types, 1), 0)"
                          " FROM pg_prepared_statements WHERE name = 'it'");
    int count = atoi(PQgetvalue(types, 0, 0));
    PQclear(types);
    struct buffer explain;
    buffer_init(&explain);
    buffer_append_text(&explain, "EXPLAIN EXECUTE it");
    for (int i = 0; i < count; i++)
        buffer_append_text(&explain, i == 0 ? " (NULL" : ", NULL");
    buffer_append_text(&explain, count > 0 ? ")" : "");
    buffer_append_char(&explain, '\0');
    PGresult *plan = run(explain.bytes);
    for (int i = 0; i < PQntuples(plan); i++)
        judge_step(name, sql, PQgetvalue(plan, i, 0));
    PQclear(plan);
    buffer_finish(&explain);
    PQclear(run("DEALLOCATE it"));
}

static bool is_limited(const char *name, const char *sql)
{
    static const char *const by_a_number_of_their_own[] = {
        "SIGN_IN_DROP_OLDEST", /* one row more than there may be */
        "AUDIT_REMOVE",        "AUDIT_REMOVE_KEPT",
        "ANCHOR_REMOVE",                         /* rows that one sweep has looked at */
        "LIMITED_PURGE",       "REPLICA_FORGET", /* small tables */
    };
    bool is_purge = strstr(sql, "DELETE") && (strstr(sql, " < $") || strstr(sql, "<= $"));
    for (size_t i = 0; i < PLANS_COUNT(by_a_number_of_their_own); i++) {
        if (strcmp(name, by_a_number_of_their_own[i]) == 0)
            return true;
    }
    return !is_purge || strstr(sql, "LIMIT") != NULL;
}

static void judge_statement(const char *name, const char *sql)
{
    ck_assert_msg(is_limited(name, sql), "%s has no limit", name);
    judge(name, sql);
}

START_TEST(no_statement_costs_more_as_the_tables_grow)
{
    static const struct plans_row own[] = {
#define STATEMENT_ROW(symbol, sql) {#symbol, ""},
#define OVERRIDE_ROW(symbol, sql)
#include "own_statements.h"
#undef STATEMENT_ROW
#undef OVERRIDE_ROW
    };
    static struct plans_row all[STATEMENT_ALL];
    plans_write(&postgres_dialect, own, PLANS_COUNT(own), all);
    plans_of_statements(all, PLANS_COUNT(all), judge_statement);
    expect_no_faults();
}
END_TEST

/* ---- lists and commands, whose statements are not in the table ---- */

static FILE *messages;
static char *message_text;
static size_t message_size, seen_size;

/* Each statement that libpq has sent: Parse "NAME" "STATEMENT" …, without quotes. */
static void judge_messages(const char *name)
{
    static const char start[] = "\"SELECT ";
    size_t judged = 0;
    fflush(messages);
    for (char *at = message_text + seen_size; (at = strstr(at, start));) {
        char *sql = memory_format("%.*s", (int)strcspn(at + 1, "\""), at + 1);
        judge(name, sql);
        at += strlen(sql);
        free(sql);
        judged++;
    }
    ck_assert_msg(judged > 0, "%s", message_text);
    seen_size = message_size;
}

START_TEST(no_list_or_command_costs_more_as_the_tables_grow)
{
    struct error error = {""};
    struct database *database = store_postgres.open(scratch.place, &error);
    ck_assert_msg(database != NULL, "%s", error.message);
    messages = open_memstream(&message_text, &message_size);
    ck_assert_ptr_nonnull(messages);
    PQtrace(database->handle, messages);
    plans_run_lists(&store_postgres, database, judge_messages);
    plans_run_commands(database, judge_messages);
    PQuntrace(database->handle);
    fclose(messages);
    free(message_text);
    store_postgres.close(database);
    expect_no_faults();
}
END_TEST

/* ---- triggers, and what foreign keys ask for ---- */

static struct buffer triggers;

/* A nested statement's plan, of auto_explain: its context has the function, or it is a key's. */
static void judge_nested(void *context, const PGresult *result)
{
    static const char function[] = "PL/pgSQL function ";
    const char *plan = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *around = PQresultErrorField(result, PG_DIAG_CONTEXT);
    (void)context;
    if (!around || !strstr(plan, "plan:"))
        return;
    const char *name = strstr(around, function);
    name = name ? name + sizeof function - 1 : "CASCADE";
    buffer_append_format(&triggers, "%.*s ", (int)strcspn(name, "("), name);
    struct str line, rest = str_from(plan);
    while (rest.length > 0) {
        str_cut(rest, '\n', &line, &rest);
        char *step = memory_copy_str(line);
        judge_step(name, "", step);
        free(step);
    }
}

/* One row of each table whose delete has a trigger is deleted. */
START_TEST(no_trigger_costs_more_as_the_tables_grow)
{
    buffer_init(&triggers);
    PQclear(run("LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;"
                " SET auto_explain.log_nested_statements = on; SET client_min_messages = log;"
                " SET session_replication_role = origin"));
    PQsetNoticeReceiver(handle, judge_nested, NULL);
    PGresult *tables = run("SELECT DISTINCT tgrelid::regclass::text FROM pg_trigger"
                           " JOIN pg_class ON pg_class.oid = tgrelid WHERE tgtype & 8 <> 0"
                           " AND relnamespace = current_schema()::regnamespace");
    ck_assert_int_ge(PQntuples(tables), 3);
    for (int i = 0; i < PQntuples(tables); i++) {
        char *sql = memory_format("DELETE FROM %s WHERE ctid = '(0,1)'", PQgetvalue(tables, i, 0));
        PQclear(run(sql));
        free(sql);
    }
    PQclear(tables);
    buffer_append_char(&triggers, '\0');
    PGresult *functions = run("SELECT proname FROM pg_proc WHERE prorettype = 'trigger'::regtype"
                              " AND pronamespace = current_schema()::regnamespace"
                              " AND prosrc ~ 'SELECT|INSERT|UPDATE|DELETE'");
    ck_assert_int_ge(PQntuples(functions), 3);
    for (int i = 0; i < PQntuples(functions); i++)
        ck_assert_msg(strstr(triggers.bytes, PQgetvalue(functions, i, 0)) != NULL, "%s: %s",
                      PQgetvalue(functions, i, 0), triggers.bytes);
    PQclear(functions);
    buffer_finish(&triggers);
    expect_no_faults();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store postgres plans");
    TCase *tests = tcase_create("plans");
    tcase_set_timeout(tests, 120);
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, no_statement_costs_more_as_the_tables_grow);
    tcase_add_test(tests, no_list_or_command_costs_more_as_the_tables_grow);
    tcase_add_test(tests, no_trigger_costs_more_as_the_tables_grow);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
