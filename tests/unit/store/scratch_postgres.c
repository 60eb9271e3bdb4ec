/* A schema for each test, and beside it one of views with the names that SQLite's tables have. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"

#define PREFIX "taskgate_"

static PGconn *connect_aside(void)
{
    PGconn *handle = PQconnectdb(getenv("TASKGATE_TEST_POSTGRES"));
    ck_assert_msg(PQstatus(handle) == CONNECTION_OK, "%s", PQerrorMessage(handle));
    return handle;
}

static PGresult *run(PGconn *handle, const char *sql)
{
    PGresult *result = PQexec(handle, sql);
    ExecStatusType status = PQresultStatus(result);
    ck_assert_msg(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, "%s: %s", sql,
                  PQerrorMessage(handle));
    return result;
}

static void run_format(PGconn *handle, const char *format, const char *schema)
{
    char sql[512];
    snprintf(sql, sizeof sql, format, schema);
    PQclear(run(handle, sql));
}

void scratch_postgres_init(struct scratch *scratch)
{
    char id[RANDOM_UUID_BYTES];
    random_uuid(id);
    const char *url = getenv("TASKGATE_TEST_POSTGRES");
    snprintf(scratch->schema, sizeof scratch->schema, "test_%.8s_%ld", id, (long)getpid());
    snprintf(scratch->place, sizeof scratch->place, "%s%coptions=-csearch_path%%3D%s", url,
             strchr(url, '?') ? '&' : '?', scratch->schema);
    PGconn *handle = connect_aside();
    run_format(handle, "CREATE SCHEMA %s", scratch->schema);
    run_format(handle, "CREATE SCHEMA %s_names", scratch->schema);
    PQfinish(handle);
}

void scratch_postgres_finish(struct scratch *scratch)
{
    PGconn *handle = connect_aside();
    PQclear(run(handle, "SET client_min_messages = error"));
    run_format(handle, "DROP SCHEMA %s CASCADE", scratch->schema);
    run_format(handle, "DROP SCHEMA %s_names CASCADE", scratch->schema);
    PQfinish(handle);
}

static const char views[] =
    "DO $$ DECLARE name text; BEGIN FOR name IN SELECT relname FROM pg_class"
    " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' LOOP"
    " EXECUTE format('CREATE OR REPLACE VIEW %1$s_names.%2$I AS SELECT * FROM %1$s.%3$I',"
    " current_schema(), substr(name, length('" PREFIX "') + 1), name); END LOOP; END $$";

static const char request[] =
    "DO $$ BEGIN EXECUTE format('CREATE OR REPLACE VIEW %1$s_names.task_request AS"
    " SELECT sequence AS task, body, arguments, meta, other_params, is_redacted AS redacted"
    " FROM %1$s.taskgate_task', current_schema()); END $$";

static PGconn *open_names(const struct scratch *scratch)
{
    PGconn *handle = connect_aside();
    run_format(handle, "SET search_path = %s; SET client_min_messages = error", scratch->schema);
    PQclear(run(handle, views));
    PQclear(run(handle, request));
    run_format(handle,
               "SELECT set_config('search_path', name || '_names, ' || name, false)"
               " FROM (SELECT '%s' AS name) AS own",
               scratch->schema);
    return handle;
}

int64_t scratch_postgres_query(const struct scratch *scratch, const char *sql)
{
    PGconn *handle = open_names(scratch);
    PGresult *result = run(handle, sql);
    ck_assert_int_gt(PQntuples(result), 0);
    const char *text = PQgetvalue(result, 0, 0);
    int64_t number = *text == 't' ? 1 : strtoll(text, NULL, 10);
    PQclear(result);
    PQfinish(handle);
    return number;
}

int scratch_postgres_execute(const struct scratch *scratch, const char *sql)
{
    PGconn *handle = open_names(scratch);
    PGresult *result = PQexec(handle, sql);
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    PQfinish(handle);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? SQLITE_OK : SQLITE_ERROR;
}
