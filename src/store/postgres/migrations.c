/* The schema, and how an older database gets it. */
#include "migrations.h"

#include <stdlib.h>
#include <string.h>

#include "place.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

/* Never edit a released script; append one, which only adds: columns with a default, tables,
 * indexes. A removal waits until no older version runs, and then raises `serves`. */
static const struct {
    const char *sql;
    int serves; /* the oldest version whose program can use the schema after this script */
} scripts[] = {
    {"CREATE TABLE taskgate_task ("
     " sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
     " id TEXT NOT NULL UNIQUE,"
     " state BIGINT NOT NULL CHECK (state BETWEEN 0 AND 7),"
     " source TEXT NOT NULL,"
     " owner TEXT NOT NULL,"
     " session TEXT NOT NULL,"
     " principal TEXT NOT NULL,"
     " tool TEXT NOT NULL,"
     " workflow TEXT NOT NULL,"
     " action TEXT NOT NULL,"
     " arguments_digest TEXT NOT NULL,"
     " definition_digest TEXT NOT NULL,"
     " progress_token TEXT NOT NULL,"
     " on_result BIGINT NOT NULL,"
     " accelerated BIGINT NOT NULL,"
     " keep_task BIGINT NOT NULL,"
     " ttl_ms BIGINT NOT NULL,"
     " poll_interval_ms BIGINT NOT NULL,"
     " created_ms BIGINT NOT NULL,"
     " decide_by_ms BIGINT NOT NULL,"
     " updated_ms BIGINT NOT NULL,"
     " execute_by_ms BIGINT NOT NULL,"
     " decided_ms BIGINT NOT NULL,"
     " ended_ms BIGINT NOT NULL,"
     " decided_by TEXT NOT NULL,"
     " reason TEXT NOT NULL,"
     " status_message TEXT NOT NULL,"
     " upstream_task TEXT NOT NULL,"
     " failure BIGINT NOT NULL CHECK (failure BETWEEN 0 AND 3),"
     " outcome BIGINT NOT NULL CHECK (outcome BETWEEN 0 AND 2),"
     " client_name TEXT NOT NULL,"
     " client_version TEXT NOT NULL,"
     " promoted BIGINT NOT NULL,"
     " retention_ms BIGINT NOT NULL,"
     " expired_retention_ms BIGINT NOT NULL,"
     " request_digest TEXT NOT NULL,"
     " headers_digest TEXT NOT NULL,"
     " refused_credentials TEXT NOT NULL,"
     " rule TEXT NOT NULL,"
     " policy_digest TEXT NOT NULL,"
     " owner_email TEXT NOT NULL,"
     " terms TEXT NOT NULL,"
     " votes TEXT NOT NULL,"
     " rule_digest TEXT NOT NULL,"
     " bound_digest TEXT NOT NULL,"
     " grant_facts TEXT NOT NULL,"
     " original_digest TEXT NOT NULL,"
     " original_request_digest TEXT NOT NULL,"
     " arguments TEXT NOT NULL,"
     " meta TEXT NOT NULL,"
     " other_params TEXT NOT NULL,"
     " original_arguments TEXT NOT NULL,"
     " shown TEXT NOT NULL,"
     " body BYTEA NOT NULL,"
     " outcome_body BYTEA,"
     " mirrored_headers BYTEA NOT NULL,"
     " is_redacted BIGINT NOT NULL DEFAULT 0,"
     " bytes BIGINT NOT NULL,"
     " deadline_ms BIGINT," /* when the sweep must look at it; NULL: never */
     " purge_ms BIGINT);"   /* when it may go; NULL: not yet ended */
     "CREATE INDEX taskgate_task_by_owner ON taskgate_task (owner, sequence);"
     "CREATE INDEX taskgate_task_by_session ON taskgate_task (session, sequence)"
     " WHERE session <> '';"
     "CREATE INDEX taskgate_task_by_state ON taskgate_task (state, sequence);"
     "CREATE INDEX taskgate_task_by_decide_by ON taskgate_task (state,"
     " (CASE WHEN decide_by_ms = 0 THEN 9223372036854775807 ELSE decide_by_ms END), sequence);"
     "CREATE INDEX taskgate_task_by_deadline ON taskgate_task (deadline_ms)"
     " WHERE deadline_ms IS NOT NULL;"
     "CREATE INDEX taskgate_task_by_purge ON taskgate_task (purge_ms) WHERE purge_ms IS NOT NULL;"
     /* How many tasks limits count, by owner and of all. Rows that say how long they are in bytes
      * are counted there, too: PostgreSQL does not give back the room of what was deleted. */
     "CREATE TABLE taskgate_limited (owner TEXT PRIMARY KEY, tasks BIGINT NOT NULL)"
     " WITH (fillfactor = 50);"
     "CREATE TABLE taskgate_totals (id BIGINT PRIMARY KEY CHECK (id = 1), tasks BIGINT NOT NULL,"
     " pending BIGINT NOT NULL, bytes BIGINT NOT NULL) WITH (fillfactor = 10);"
     "INSERT INTO taskgate_totals VALUES (1, 0, 0, 0);"
     "CREATE TABLE taskgate_probe (id BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL);"
     /* The last transaction that each process has committed. */
     "CREATE TABLE taskgate_mark (owner TEXT PRIMARY KEY, number BIGINT NOT NULL,"
     " at_ms BIGINT NOT NULL) WITH (fillfactor = 50);"

     /* The trail outlives the tasks, and nothing may change it. Rows go only behind an anchor that
      * the chain goes on from. */
     "CREATE TABLE taskgate_audit (sequence BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL,"
     " task_id TEXT NOT NULL, event TEXT NOT NULL, from_state TEXT NOT NULL,"
     " to_state TEXT NOT NULL, actor_kind TEXT NOT NULL, actor_name TEXT NOT NULL,"
     " reason TEXT NOT NULL, decision TEXT NOT NULL, arguments_digest TEXT NOT NULL,"
     " definition_digest TEXT NOT NULL, hash TEXT NOT NULL, kept_digest TEXT NOT NULL,"
     " person TEXT NOT NULL, policy_digest TEXT NOT NULL, principal TEXT NOT NULL,"
     " request_digest TEXT NOT NULL, rule TEXT NOT NULL, source TEXT NOT NULL,"
     " tool TEXT NOT NULL, votes TEXT NOT NULL, workflow TEXT NOT NULL, via TEXT NOT NULL,"
     " bytes BIGINT NOT NULL);"
     "CREATE INDEX taskgate_audit_by_task ON taskgate_audit (task_id);"
     "CREATE TABLE taskgate_audit_kept (sequence BIGINT PRIMARY KEY, arguments TEXT NOT NULL,"
     " until_ms BIGINT NOT NULL);"
     "CREATE INDEX taskgate_audit_kept_until ON taskgate_audit_kept (until_ms);"
     "CREATE TABLE taskgate_audit_anchor (sequence BIGINT PRIMARY KEY, hash TEXT NOT NULL,"
     " at_ms BIGINT NOT NULL, signature TEXT NOT NULL, is_start BIGINT NOT NULL);"
     "CREATE FUNCTION taskgate_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS"
     " 'BEGIN RAISE EXCEPTION ''the audit trail is append-only''; END';"
     "CREATE FUNCTION taskgate_audit_delete() RETURNS trigger LANGUAGE plpgsql AS"
     " 'BEGIN IF EXISTS (SELECT 1 FROM gone WHERE sequence > coalesce((SELECT max(sequence)"
     " FROM taskgate_audit_anchor WHERE is_start <> 0), 0)) THEN"
     " RAISE EXCEPTION ''the audit trail is append-only''; END IF; RETURN NULL; END';"
     "CREATE TRIGGER taskgate_audit_is_not_updated BEFORE UPDATE ON taskgate_audit"
     " FOR EACH STATEMENT EXECUTE FUNCTION taskgate_audit_refuse();"
     "CREATE TRIGGER taskgate_audit_is_not_truncated BEFORE TRUNCATE ON taskgate_audit"
     " FOR EACH STATEMENT EXECUTE FUNCTION taskgate_audit_refuse();"
     "CREATE TRIGGER taskgate_audit_is_not_deleted AFTER DELETE ON taskgate_audit"
     " REFERENCING OLD TABLE AS gone"
     " FOR EACH STATEMENT EXECUTE FUNCTION taskgate_audit_delete();"

     /* Sessions and the tokens that upstream accepted in them; digests only. */
     "CREATE TABLE taskgate_session (source TEXT NOT NULL, id_digest TEXT NOT NULL,"
     " version TEXT NOT NULL, client_name TEXT NOT NULL, client_version TEXT NOT NULL,"
     " client_capabilities TEXT NOT NULL, upstream_tasks BIGINT NOT NULL,"
     " upstream_sse BIGINT NOT NULL, seen_ms BIGINT NOT NULL, PRIMARY KEY (source, id_digest));"
     "CREATE INDEX taskgate_session_by_seen ON taskgate_session (seen_ms);"
     "CREATE TABLE taskgate_pair (source TEXT NOT NULL, session_digest TEXT NOT NULL,"
     " token_digest TEXT NOT NULL, accepted_ms BIGINT NOT NULL,"
     " PRIMARY KEY (source, session_digest, token_digest));"
     "CREATE INDEX taskgate_pair_by_accepted ON taskgate_pair (accepted_ms);"
     "CREATE TABLE taskgate_sign_in (sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
     " digest TEXT NOT NULL UNIQUE, person TEXT NOT NULL, issuer TEXT NOT NULL,"
     " claims TEXT NOT NULL, created_ms BIGINT NOT NULL, until_ms BIGINT NOT NULL);"
     "CREATE INDEX taskgate_sign_in_until ON taskgate_sign_in (until_ms);"

     "CREATE TABLE taskgate_outbox_target (key TEXT PRIMARY KEY, events BIGINT NOT NULL,"
     " with_arguments BIGINT NOT NULL);"
     "CREATE TABLE taskgate_outbox_notice ("
     " sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at_ms BIGINT NOT NULL,"
     " task_id TEXT NOT NULL, state BIGINT NOT NULL, source TEXT NOT NULL, tool TEXT NOT NULL,"
     " workflow TEXT NOT NULL, principal TEXT NOT NULL, arguments_digest TEXT NOT NULL,"
     " decided_by TEXT NOT NULL, reason TEXT NOT NULL, status_message TEXT NOT NULL,"
     " arguments TEXT NOT NULL, created_ms BIGINT NOT NULL, decide_by_ms BIGINT NOT NULL,"
     " decided_ms BIGINT NOT NULL, is_emergency BIGINT NOT NULL, anchor TEXT NOT NULL);"
     "CREATE TABLE taskgate_outbox_delivery ("
     " sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL,"
     " notice BIGINT NOT NULL, target TEXT NOT NULL, task_id TEXT NOT NULL, event BIGINT NOT NULL,"
     " attempts BIGINT NOT NULL, due_ms BIGINT NOT NULL);"
     "CREATE INDEX taskgate_outbox_delivery_by_notice ON taskgate_outbox_delivery (notice);"
     "CREATE INDEX taskgate_outbox_delivery_by_due ON taskgate_outbox_delivery (target, due_ms);"
     "CREATE INDEX taskgate_outbox_delivery_by_task"
     " ON taskgate_outbox_delivery (target, task_id, sequence);"
     "CREATE TABLE taskgate_outbox_thread (target TEXT NOT NULL, task_id TEXT NOT NULL,"
     " reference TEXT NOT NULL, seen TEXT NOT NULL DEFAULT '', PRIMARY KEY (target, task_id));"
     "CREATE INDEX taskgate_outbox_thread_by_task ON taskgate_outbox_thread (task_id);"

     /* An owner, source and tool may be longer than an index can hold. */
     "CREATE TABLE taskgate_grant (sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
     " id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, owner TEXT NOT NULL,"
     " principal TEXT NOT NULL, source TEXT NOT NULL, tool TEXT NOT NULL, workflow TEXT NOT NULL,"
     " rule TEXT NOT NULL, rule_digest TEXT NOT NULL, definition_digest TEXT NOT NULL,"
     " bound_digest TEXT NOT NULL, terms TEXT NOT NULL, arguments TEXT NOT NULL,"
     " votes TEXT NOT NULL, reason TEXT NOT NULL, calls BIGINT NOT NULL,"
     " used BIGINT NOT NULL CHECK (used BETWEEN 0 AND calls), for_ms BIGINT NOT NULL,"
     " created_ms BIGINT NOT NULL, until_ms BIGINT NOT NULL,"
     " ended_ms BIGINT NOT NULL DEFAULT 0, end_cause TEXT NOT NULL DEFAULT '',"
     " ended_by TEXT NOT NULL DEFAULT '', end_reason TEXT NOT NULL DEFAULT '');"
     "CREATE INDEX taskgate_grant_of_owner ON taskgate_grant (owner) WHERE ended_ms = 0;"
     "CREATE INDEX taskgate_grant_until ON taskgate_grant (until_ms) WHERE ended_ms = 0;"

     "CREATE TABLE taskgate_reminder ("
     " task BIGINT NOT NULL REFERENCES taskgate_task (sequence) ON DELETE CASCADE,"
     " event BIGINT NOT NULL, due_ms BIGINT NOT NULL);"
     "CREATE INDEX taskgate_reminder_by_task ON taskgate_reminder (task);"
     "CREATE INDEX taskgate_reminder_by_due ON taskgate_reminder (event, due_ms);"

     "CREATE TABLE taskgate_replica (id TEXT PRIMARY KEY, epoch BIGINT NOT NULL,"
     " alive_ms BIGINT NOT NULL);"
     "CREATE TABLE taskgate_task_claim ("
     " task BIGINT PRIMARY KEY REFERENCES taskgate_task (sequence) ON DELETE CASCADE,"
     " replica TEXT NOT NULL, epoch BIGINT NOT NULL);"
     "CREATE TABLE taskgate_lease (name TEXT PRIMARY KEY, replica TEXT NOT NULL,"
     " epoch BIGINT NOT NULL, until_ms BIGINT NOT NULL);"
     "CREATE TABLE taskgate_feed (sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
     " task_id TEXT NOT NULL, replica TEXT NOT NULL, created BIGINT NOT NULL,"
     " at_ms BIGINT NOT NULL);"
     "CREATE INDEX taskgate_feed_by_age ON taskgate_feed (at_ms);",
     1},
    /* The addresses of replicas, and the hold that lets nobody decide. */
    {"ALTER TABLE taskgate_replica ADD COLUMN address TEXT NOT NULL DEFAULT '';"
     "ALTER TABLE taskgate_replica ADD COLUMN seen_ms BIGINT NOT NULL DEFAULT 0;"
     "CREATE TABLE taskgate_hold (id BIGINT PRIMARY KEY CHECK (id = 1), replica TEXT NOT NULL,"
     " at_ms BIGINT NOT NULL);",
     1},

    /* The replica that has what lives in one process alone of a session, and the one that had it
     * before and is gone. */
    {"CREATE TABLE taskgate_session_home (source TEXT NOT NULL, session_digest TEXT NOT NULL,"
     " replica TEXT NOT NULL, epoch BIGINT NOT NULL, lost_replica TEXT NOT NULL DEFAULT '',"
     " lost_epoch BIGINT NOT NULL DEFAULT 0, at_ms BIGINT NOT NULL,"
     " PRIMARY KEY (source, session_digest));"
     "CREATE INDEX taskgate_session_home_by_time ON taskgate_session_home (at_ms);",
     1},

    /* The trace that a task belongs to. */
    {"ALTER TABLE taskgate_task ADD COLUMN trace TEXT NOT NULL DEFAULT '';", 1},

    /* Sign-ins of operators that have begun. */
    {"CREATE TABLE taskgate_sign_in_attempt ("
     " sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, digest TEXT NOT NULL UNIQUE,"
     " browser TEXT NOT NULL, sealed TEXT NOT NULL, until_ms BIGINT NOT NULL);",
     1},

    /* Nothing costs more as the tables grow: as version 28 of SQLite's. */
    {"ALTER TABLE taskgate_session ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
     "CREATE INDEX taskgate_session_by_owner ON taskgate_session (owner, seen_ms);"
     "UPDATE taskgate_session AS session SET seen_ms = pair.accepted_ms FROM (SELECT source,"
     " session_digest, max(accepted_ms) AS accepted_ms FROM taskgate_pair"
     " GROUP BY source, session_digest) AS pair WHERE pair.source = session.source"
     " AND pair.session_digest = session.id_digest AND pair.accepted_ms > session.seen_ms;"
     "DROP INDEX taskgate_task_by_owner;"
     "CREATE INDEX taskgate_task_by_owner ON taskgate_task (owner, state, sequence);"
     "DROP INDEX taskgate_task_by_session;"
     "CREATE INDEX taskgate_task_by_session ON taskgate_task (session, state, sequence)"
     " WHERE session <> '';"
     "CREATE INDEX taskgate_audit_anchor_start ON taskgate_audit_anchor (sequence)"
     " WHERE is_start <> 0;"
     "CREATE INDEX taskgate_grant_active ON taskgate_grant (sequence) WHERE ended_ms = 0;"
     "CREATE INDEX taskgate_grant_ended ON taskgate_grant (ended_ms) WHERE ended_ms > 0;"
     "CREATE INDEX taskgate_outbox_notice_by_age ON taskgate_outbox_notice (at_ms);"
     "UPDATE taskgate_outbox_delivery AS later SET due_ms = 9223372036854775807 WHERE EXISTS"
     " (SELECT 1 FROM taskgate_outbox_delivery AS earlier WHERE earlier.target = later.target"
     " AND earlier.task_id = later.task_id AND earlier.sequence < later.sequence);"
     "CREATE FUNCTION taskgate_outbox_next_is_due() RETURNS trigger LANGUAGE plpgsql AS"
     " 'BEGIN UPDATE taskgate_outbox_delivery AS delivery SET due_ms = coalesce((SELECT at_ms"
     " FROM taskgate_outbox_notice AS told WHERE told.sequence = delivery.notice), 0)"
     " WHERE sequence = (SELECT sequence FROM taskgate_outbox_delivery WHERE target = OLD.target"
     " AND task_id = OLD.task_id ORDER BY sequence LIMIT 1) AND due_ms = 9223372036854775807;"
     " RETURN NULL; END';"
     "CREATE TRIGGER taskgate_outbox_next_is_due AFTER DELETE ON taskgate_outbox_delivery"
     " FOR EACH ROW EXECUTE FUNCTION taskgate_outbox_next_is_due();"
     "DELETE FROM taskgate_outbox_thread AS thread WHERE NOT EXISTS"
     " (SELECT 1 FROM taskgate_task AS task WHERE task.id = thread.task_id);"
     "CREATE FUNCTION taskgate_outbox_thread_is_over() RETURNS trigger LANGUAGE plpgsql AS"
     " 'BEGIN DELETE FROM taskgate_outbox_thread WHERE task_id = OLD.id; RETURN NULL; END';"
     "CREATE TRIGGER taskgate_outbox_thread_is_over AFTER DELETE ON taskgate_task"
     " FOR EACH ROW EXECUTE FUNCTION taskgate_outbox_thread_is_over();",
     1},

    /* The person who made a call of the control plane. */
    {"ALTER TABLE taskgate_task ADD COLUMN maker TEXT NOT NULL DEFAULT '';", 1},

    /* Definitions of servers, and which of them were accepted. */
    {"CREATE TABLE taskgate_definition (sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
     " id TEXT NOT NULL UNIQUE, source TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,"
     " digest TEXT NOT NULL, accepted TEXT NOT NULL, counted TEXT NOT NULL, text TEXT NOT NULL,"
     " accepted_text TEXT NOT NULL, difference TEXT NOT NULL, flags BIGINT NOT NULL,"
     " is_changed BIGINT NOT NULL, at_ms BIGINT NOT NULL);"
     "CREATE INDEX taskgate_definition_of_source ON taskgate_definition (source, sequence);"
     "CREATE INDEX taskgate_definition_watched ON taskgate_definition (sequence)"
     " WHERE is_changed <> 0 OR flags <> 0;",
     1},

    /* Callers that are blocked. */
    {"CREATE TABLE taskgate_block (sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
     " id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, scope TEXT NOT NULL, owner TEXT NOT NULL,"
     " source TEXT NOT NULL, client TEXT NOT NULL, principal TEXT NOT NULL, reason TEXT NOT NULL,"
     " person TEXT NOT NULL, created_ms BIGINT NOT NULL, until_ms BIGINT NOT NULL,"
     " ended_ms BIGINT NOT NULL DEFAULT 0, ended_by TEXT NOT NULL DEFAULT '');"
     "CREATE INDEX taskgate_block_active ON taskgate_block (sequence) WHERE ended_ms = 0;"
     "CREATE INDEX taskgate_block_ended ON taskgate_block (ended_ms) WHERE ended_ms > 0;",
     1},

    /* The begin of the execution. */
    {"ALTER TABLE taskgate_task ADD COLUMN started_ms BIGINT NOT NULL DEFAULT 0;", 1},

    /* The bytes of the requests of tasks that limits count, by owner. A process of an older version
     * does not take them back; they go with the row, once the owner has no such task. */
    {"ALTER TABLE taskgate_limited ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;"
     "UPDATE taskgate_limited AS counted SET bytes = (SELECT coalesce(sum(length(body)), 0)"
     " FROM taskgate_task AS task WHERE task.owner = counted.owner AND (state IN (0, 1)"
     " OR (state = 2 AND (accelerated <> 0 OR promoted <> 0))));",
     1},

    /* The row of a call that waits, so that its arguments need not be read for it. */
    {"ALTER TABLE taskgate_task ADD COLUMN brief TEXT NOT NULL DEFAULT '';", 1},

    /* Tasks that a pending answer has named. */
    {"ALTER TABLE taskgate_task ADD COLUMN promised BIGINT NOT NULL DEFAULT 0;", 1},

    /* The outcomes of the calls of each tool and caller, by day; of the last 30 days the trail
     * knows it. A process of an older version does not count. */
    {"CREATE TABLE taskgate_tally (source TEXT NOT NULL, tool TEXT NOT NULL, owner TEXT"
     " NOT NULL, day_ms BIGINT NOT NULL, approved BIGINT NOT NULL, rejected BIGINT NOT"
     " NULL, expired BIGINT NOT NULL, failed BIGINT NOT NULL, PRIMARY KEY (source, tool,"
     " owner, day_ms));"
     "CREATE INDEX taskgate_tally_by_day ON taskgate_tally (day_ms);"
     "INSERT INTO taskgate_tally SELECT ended.source, ended.tool, made.actor_name,"
     " ended.at_ms - ended.at_ms % 86400000 AS day_ms,"
     " count(*) FILTER (WHERE ended.event = 'approve'),"
     " count(*) FILTER (WHERE ended.event = 'reject'),"
     " count(*) FILTER (WHERE ended.event = 'expire'),"
     " count(*) FILTER (WHERE ended.event = 'fail')"
     " FROM taskgate_audit AS ended JOIN taskgate_audit AS made ON made.task_id = ended.task_id"
     " WHERE ended.at_ms >= (extract(epoch FROM now())::bigint / 86400 - 29) * 86400000"
     " AND ended.event IN ('approve', 'reject', 'expire', 'fail') AND ended.tool <> ''"
     " AND made.event = 'create' AND made.actor_name <> ''"
     " GROUP BY ended.source, ended.tool, made.actor_name, day_ms;"
     "INSERT INTO taskgate_tally SELECT source, tool, '', day_ms, sum(approved), sum(rejected),"
     " sum(expired), sum(failed) FROM taskgate_tally GROUP BY source, tool, day_ms;"
     "CREATE INDEX taskgate_audit_decided ON taskgate_audit (source, tool, sequence) WHERE"
     " event IN ('approve', 'reject') AND person <> '';"
     "CREATE INDEX taskgate_audit_approved ON taskgate_audit (arguments_digest, source,"
     " tool, at_ms, task_id) WHERE event = 'approve';",
     1},
};
const int postgres_migration_count = sizeof scripts / sizeof *scripts;

static const char lock[] = "SET LOCAL lock_timeout = '10min';"
                           "SET LOCAL statement_timeout = '10min';"
                           "SELECT pg_advisory_xact_lock(hashtext('taskgate schema'),"
                           " hashtext(current_schema()));";
static const char is_there[] =
    "SELECT to_regclass(quote_ident(current_schema()) || '.taskgate_schema') IS NOT NULL";
static const char versions[] = "SELECT version, serves FROM taskgate_schema";
static const char first[] = "CREATE TABLE taskgate_schema (id BIGINT PRIMARY KEY CHECK (id = 1),"
                            " version BIGINT NOT NULL, serves BIGINT NOT NULL);"
                            "INSERT INTO taskgate_schema VALUES (1, 0, 0);";

/* `*version` 0: there is no schema yet. */
static bool read_versions(struct database *database, int64_t *version, int64_t *serves)
{
    int64_t has_schema;
    *version = *serves = 0;
    if (!rows_take_number(connection_read_text(database, is_there, NO_VALUES), &has_schema))
        return false;
    if (!has_schema)
        return true;
    PGresult *rows = connection_read_text(database, versions, NO_VALUES);
    if (rows_any(rows) == ROW_FOUND) {
        *version = row_number(rows, 0, 0);
        *serves = row_number(rows, 0, 1);
    }
    PQclear(rows);
    return rows != NULL;
}

static bool apply(struct database *database, int64_t from)
{
    if (from == 0 && !connection_script(database, first))
        return false;
    for (int64_t version = from; version < postgres_migration_count; version++) {
        char *done = memory_format("UPDATE taskgate_schema SET version = %d, serves = %d",
                                   (int)version + 1, scripts[version].serves);
        bool applied =
            connection_script(database, scripts[version].sql) && connection_script(database, done);
        free(done);
        if (!applied)
            return false;
        log_info("Database schema migrated", LOG_NUMBER("version", version + 1));
    }
    return true;
}

static enum opened migrations_refuse(struct database *database)
{
    database->has_failed = true;
    return OPENED_REFUSED;
}

static enum opened refuse_newer(struct database *database, int64_t version)
{
    error_set(&database->error,
              "%s has schema version %d, which taskgate of schema version %d cannot use; run "
              "the newer taskgate that wrote it",
              database->place->title, (int)version, postgres_migration_count);
    return migrations_refuse(database);
}

/* ---- the same as text ---- */

void migrations_write_tables(struct str schema, struct buffer *sql)
{
    static const char create[] = "CREATE TABLE ";
    buffer_append_format(sql, "%.*s.taskgate_schema", STR_ARGS(schema));
    for (int i = 0; i < postgres_migration_count; i++) {
        const char *at = scripts[i].sql;
        while ((at = strstr(at, create)) != NULL) {
            at += strlen(create);
            buffer_append_format(sql, ", %.*s.%.*s", STR_ARGS(schema), (int)strcspn(at, " "), at);
        }
    }
}

/* A line for each statement; a function's body is a quoted text. */
static void write_script(const char *script, struct buffer *sql)
{
    bool is_quoted = false;
    for (const char *at = script; *at; at++) {
        is_quoted ^= *at == '\'';
        buffer_append_char(sql, *at);
        if (*at == ';' && !is_quoted)
            buffer_append_char(sql, '\n');
    }
}

bool migrations_write_pending(struct database *database, struct buffer *sql)
{
    int64_t version, serves;
    if (!read_versions(database, &version, &serves))
        return false;
    if (serves > postgres_migration_count)
        return refuse_newer(database, version) == OPENED;
    if (version >= postgres_migration_count)
        return true;
    write_script(lock, sql);
    if (version == 0)
        write_script(first, sql);
    for (int64_t next = version; next < postgres_migration_count; next++)
        write_script(scripts[next].sql, sql);
    buffer_append_format(sql, "UPDATE taskgate_schema SET version = %d, serves = %d;\n",
                         postgres_migration_count, scripts[postgres_migration_count - 1].serves);
    return true;
}

/* ---- bringing it up ---- */

/* Again under the lock, because another may have done it meanwhile. */
static bool bring_up(struct database *database)
{
    int64_t version, serves;
    bool done = connection_script(database, "BEGIN") && connection_script(database, lock) &&
                read_versions(database, &version, &serves) &&
                (version >= postgres_migration_count || apply(database, version)) &&
                connection_script(database, "COMMIT");
    if (done || !database->handle)
        return done;
    struct error error = database->error;
    database->has_failed = false;
    connection_script(database, "ROLLBACK");
    database->has_failed = true;
    database->error = error;
    return false;
}

enum opened postgres_migrate(struct database *database)
{
    int64_t version, serves;
    if (!read_versions(database, &version, &serves))
        return OPENED_LATER;
    if (serves > postgres_migration_count)
        return refuse_newer(database, version);
    if (version >= postgres_migration_count || bring_up(database))
        return OPENED;
    if (connection_lacks_right(database))
        error_suffix(&database->error, "run taskgate store migrate with a role that may create "
                                       "tables there");
    return database->handle ? OPENED_REFUSED : OPENED_LATER;
}

enum opened postgres_check_schema(struct database *database)
{
    int64_t version, serves;
    if (!read_versions(database, &version, &serves))
        return OPENED_LATER;
    if (serves > postgres_migration_count)
        return refuse_newer(database, version);
    if (version >= postgres_migration_count)
        return OPENED;
    if (version == 0)
        error_set(&database->error, "%s has no task store", database->place->title);
    else
        error_set(&database->error,
                  "%s has schema version %d, and this taskgate reads version %d; taskgate store "
                  "migrate brings it up",
                  database->place->title, (int)version, postgres_migration_count);
    return migrations_refuse(database);
}
