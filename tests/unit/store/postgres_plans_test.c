/* The plan of every statement of PostgreSQL's, on tables that are filled: none may read a table
 * that grows, or sort one. Plans are those that the server keeps for any values. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "connection.h"
#include "harness.h"
#include "taskgate/core/memory.h"

/* Enough for the plans of 100,000 and more. */
#define ROWS "20000"

static struct scratch scratch;
static PGconn *handle;

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
}

static void tear_down(void)
{
    PQfinish(handle);
    scratch_finish(&scratch);
}

/* ---- the exceptions ---- */

struct exception {
    const char *name, *bound;
};

static const struct exception small_tables[] = {
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

static const struct exception statements[] = {
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
    {"AUDIT_LIST", "the trail of one task"},
    {"REPLICA_LIST", "a small table"},
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_in(const struct exception *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(list[i].name);
        if (strncmp(name, list[i].name, length) == 0 && !isalnum(name[length]) &&
            name[length] != '_')
            return true;
    }
    return false;
}

/* ---- one plan ---- */

/* NULL: there is nothing wrong with it. A page, and what is removed at once, may be sorted. */
static const char *fault_of(const char *sql, const char *step)
{
    static const char scan[] = "Seq Scan on ";
    const char *table = strstr(step, scan);
    if (table && !is_in(small_tables, COUNT(small_tables), table + sizeof scan - 1))
        return "a scan";
    if (strstr(step, "Sort  (") && !strstr(sql, "LIMIT"))
        return "a sort";
    return NULL;
}

/* Adds what is wrong to `faults`. */
static void judge(const char *name, const char *sql, struct buffer *faults)
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
    for (int i = 0; i < PQntuples(plan); i++) {
        const char *step = PQgetvalue(plan, i, 0), *fault = fault_of(sql, step);
        if (fault && !is_in(statements, COUNT(statements), name))
            buffer_append_format(faults, "%s: %s: %s\n", name, fault, step);
    }
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
    for (size_t i = 0; i < COUNT(by_a_number_of_their_own); i++) {
        if (strcmp(name, by_a_number_of_their_own[i]) == 0)
            return true;
    }
    return !is_purge || strstr(sql, "LIMIT") != NULL;
}

/* ---- lists, whose statements are built ---- */

static bool visit(void *context, struct task *task, int64_t sequence)
{
    (void)context, (void)sequence;
    task_unref(task);
    return true;
}

/* The list's statement, from the messages of libpq: Parse "NAME" "STATEMENT" …, without quotes. */
static char *statement_of(struct database *lists, const struct store_task_query *query)
{
    char *text = NULL;
    size_t size;
    FILE *messages = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(messages);
    PQtrace(lists->handle, messages);
    ck_assert(store_postgres.tasks->list(lists, query, 10, visit, NULL));
    PQuntrace(lists->handle);
    fclose(messages);
    const char *quoted = strstr(text, "\"SELECT sequence");
    ck_assert_msg(quoted != NULL, "%s", text);
    char *sql = memory_format("%.*s", (int)strcspn(quoted + 1, "\""), quoted + 1);
    free(text);
    return sql;
}

/* All combinations of holder, states, order and place. */
static void judge_lists(struct buffer *faults)
{
    struct error error = {""};
    struct database *lists = store_postgres.open(scratch.place, &error);
    ck_assert_msg(lists != NULL, "%s", error.message);
    for (unsigned bits = 0; bits < 64; bits++) {
        const struct store_task_query query = {
            .owner = bits & 1 ? STR("a") : STR_EMPTY,
            .session = bits & 2 ? STR("s") : STR_EMPTY,
            .states = bits & 4 ? 5 : 0,
            .order = bits & 8 ? STORE_BY_DECIDE_BY : 0,
            .behind_sequence = bits & 16 ? 7 : 0,
            .behind_decide_by_ms = bits & 16 ? 7 : 0,
            .tool = bits & 32 ? STR("t") : STR_EMPTY,
            .without_promoted = bits & 32,
        };
        if ((bits & 8) && (bits & 3)) /* nobody asks for these */
            continue;
        char *sql = statement_of(lists, &query);
        judge("a list", sql, faults);
        free(sql);
    }
    store_postgres.close(lists);
}

START_TEST(no_statement_costs_more_as_the_tables_grow)
{
    static const struct {
        const char *name, *sql;
    } all[] = {
#define STATEMENT_ROW(symbol, sql) {#symbol, sql},
#include "statements.h"
#undef STATEMENT_ROW
    };
    static const char *const plain[] = {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"};
    size_t judged = 0;
    struct buffer faults;
    buffer_init(&faults);
    for (size_t i = 0; i < COUNT(all); i++) {
        ck_assert_msg(is_limited(all[i].name, all[i].sql), "%s has no limit", all[i].name);
        for (size_t k = 0; k < COUNT(plain); k++) {
            if (strncmp(all[i].sql, plain[k], strlen(plain[k])) != 0)
                continue;
            judge(all[i].name, all[i].sql, &faults);
            judged++;
        }
    }
    judge_lists(&faults);
    buffer_append_char(&faults, '\0');
    ck_assert_msg(faults.length == 1, "%s", faults.bytes);
    buffer_finish(&faults);
    ck_assert_uint_gt(judged, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store postgres plans");
    TCase *tests = tcase_create("plans");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, no_statement_costs_more_as_the_tables_grow);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
