/* The schema, and how an older database gets it. */
#include "migrations.h"

#include <stdio.h>

#include "audit_rows.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/store/chain.h"

/* Rowid tables with unique indexes are twice as fast here as WITHOUT ROWID. The large parts of a
 * task stand in tables of their own, because SQLite rewrites a whole row at every change. Never
 * edit a released script; append one, and write what it leaves behind into schema.c. */
const char *const migration_scripts[] = {
    /* 0 -> 1: tasks */
    "CREATE TABLE task ("
    " sequence INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE,"
    " state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 7),"
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
    " on_result INTEGER NOT NULL,"
    " accelerated INTEGER NOT NULL,"
    " keep_task INTEGER NOT NULL,"
    " ttl_ms INTEGER NOT NULL,"
    " poll_interval_ms INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " decide_by_ms INTEGER NOT NULL,"
    " updated_ms INTEGER NOT NULL,"
    " execute_by_ms INTEGER NOT NULL,"
    " decided_ms INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL,"
    " decided_by TEXT NOT NULL,"
    " reason TEXT NOT NULL,"
    " status_message TEXT NOT NULL,"
    " upstream_task TEXT NOT NULL,"
    " failure INTEGER NOT NULL CHECK (failure BETWEEN 0 AND 3),"
    " outcome INTEGER NOT NULL CHECK (outcome BETWEEN 0 AND 2),"
    " deadline_ms INTEGER," /* when the sweep must look at it; NULL: never */
    " purge_ms INTEGER"     /* when it may go; NULL: not yet ended */
    ");"
    "CREATE INDEX task_by_owner ON task (owner);"
    "CREATE INDEX task_by_session ON task (session) WHERE session <> '';"
    "CREATE INDEX task_by_state ON task (state);"
    "CREATE INDEX task_by_deadline ON task (deadline_ms) WHERE deadline_ms IS NOT NULL;"
    "CREATE INDEX task_by_purge ON task (purge_ms) WHERE purge_ms IS NOT NULL;"
    "CREATE TABLE task_request ("
    " task INTEGER PRIMARY KEY REFERENCES task (sequence) ON DELETE CASCADE,"
    " arguments TEXT NOT NULL,"
    " body BLOB NOT NULL"
    ");"
    "CREATE TABLE task_outcome ("
    " task INTEGER PRIMARY KEY REFERENCES task (sequence) ON DELETE CASCADE,"
    " body BLOB NOT NULL"
    ");"
    "CREATE TABLE probe (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL);",

    /* 1 -> 2: the audit trail, which nothing may change. It has no foreign key, because it
     * outlives the tasks. INSERT OR REPLACE deletes without a delete trigger, hence the third. */
    "CREATE TABLE audit ("
    " sequence INTEGER PRIMARY KEY AUTOINCREMENT,"
    " at_ms INTEGER NOT NULL,"
    " task_id TEXT NOT NULL,"
    " event TEXT NOT NULL,"
    " from_state TEXT NOT NULL,"
    " to_state TEXT NOT NULL,"
    " actor_kind TEXT NOT NULL,"
    " actor_name TEXT NOT NULL,"
    " reason TEXT NOT NULL"
    ");"
    "CREATE INDEX audit_by_task ON audit (task_id);"
    "CREATE TRIGGER audit_is_not_updated BEFORE UPDATE ON audit BEGIN"
    " SELECT RAISE (ABORT, 'the audit trail is append-only'); END;"
    "CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit BEGIN"
    " SELECT RAISE (ABORT, 'the audit trail is append-only'); END;"
    "CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit"
    " WHEN EXISTS (SELECT 1 FROM audit WHERE sequence = NEW.sequence) BEGIN"
    " SELECT RAISE (ABORT, 'the audit trail is append-only'); END;",

    /* 2 -> 3: sessions and the tokens that upstream accepted in them; digests only */
    "CREATE TABLE session ("
    " source TEXT NOT NULL,"
    " id_digest TEXT NOT NULL,"
    " version TEXT NOT NULL,"
    " client_name TEXT NOT NULL,"
    " client_version TEXT NOT NULL,"
    " client_capabilities TEXT NOT NULL,"
    " upstream_tasks INTEGER NOT NULL,"
    " upstream_sse INTEGER NOT NULL,"
    " seen_ms INTEGER NOT NULL"
    ");"
    "CREATE UNIQUE INDEX session_by_id ON session (source, id_digest);"
    "CREATE INDEX session_by_seen ON session (seen_ms);"
    "CREATE TABLE pair ("
    " source TEXT NOT NULL,"
    " session_digest TEXT NOT NULL,"
    " token_digest TEXT NOT NULL,"
    " accepted_ms INTEGER NOT NULL"
    ");"
    "CREATE UNIQUE INDEX pair_by_digests ON pair (source, session_digest, token_digest);"
    "CREATE INDEX pair_by_accepted ON pair (accepted_ms);",

    /* 3 -> 4: the outbox. A notice is an event, and a delivery is the copy for one target. They are
     * two tables, so that an attempt does not rewrite the arguments. There is no foreign key to the
     * task, because it may be purged before all targets have the notice. */
    "CREATE TABLE outbox_target ("
    " key TEXT NOT NULL UNIQUE,"
    " events INTEGER NOT NULL,"
    " with_arguments INTEGER NOT NULL"
    ");"
    "CREATE TABLE outbox_notice ("
    " sequence INTEGER PRIMARY KEY AUTOINCREMENT,"
    " at_ms INTEGER NOT NULL,"
    " task_id TEXT NOT NULL,"
    " state INTEGER NOT NULL,"
    " source TEXT NOT NULL,"
    " tool TEXT NOT NULL,"
    " workflow TEXT NOT NULL,"
    " principal TEXT NOT NULL,"
    " arguments_digest TEXT NOT NULL,"
    " decided_by TEXT NOT NULL,"
    " reason TEXT NOT NULL,"
    " status_message TEXT NOT NULL,"
    " arguments TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " decide_by_ms INTEGER NOT NULL,"
    " decided_ms INTEGER NOT NULL"
    ");"
    "CREATE TABLE outbox_delivery ("
    " sequence INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL,"
    " notice INTEGER NOT NULL REFERENCES outbox_notice (sequence),"
    " target TEXT NOT NULL,"
    " task_id TEXT NOT NULL,"
    " event INTEGER NOT NULL,"
    " attempts INTEGER NOT NULL,"
    " due_ms INTEGER NOT NULL"
    ");"
    "CREATE INDEX outbox_delivery_by_notice ON outbox_delivery (notice);"
    "CREATE INDEX outbox_delivery_by_due ON outbox_delivery (target, due_ms);"
    "CREATE INDEX outbox_delivery_by_task ON outbox_delivery (target, task_id);"
    "CREATE TRIGGER outbox_notice_is_told AFTER DELETE ON outbox_delivery"
    " WHEN NOT EXISTS (SELECT 1 FROM outbox_delivery WHERE notice = OLD.notice) BEGIN"
    " DELETE FROM outbox_notice WHERE sequence = OLD.notice; END;",

    /* 4 -> 5: what the client of a task calls itself, for policies that are asked again */
    "ALTER TABLE task ADD COLUMN client_name TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task ADD COLUMN client_version TEXT NOT NULL DEFAULT '';",

    /* 5 -> 6: calls that were promoted to tasks, which are kept for a time of their own */
    "ALTER TABLE task ADD COLUMN promoted INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE task ADD COLUMN retention_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE task ADD COLUMN expired_retention_ms INTEGER NOT NULL DEFAULT 0;",

    /* 6 -> 7: the decision on a call, in the row of its creation. That row outlives the task, so
     * that old calls can be put to new rules. It never holds arguments. */
    "ALTER TABLE audit ADD COLUMN decision TEXT NOT NULL DEFAULT '';",

    /* 7 -> 8: the other parts of a request that an approval covers. An undecided task gets them
     * from its body, so that operators see them. */
    "ALTER TABLE task ADD COLUMN request_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task_request ADD COLUMN meta TEXT NOT NULL DEFAULT '{}';"
    "ALTER TABLE task_request ADD COLUMN other_params TEXT NOT NULL DEFAULT '{}';"
    "UPDATE task_request SET meta = coalesce("
    " json_remove(CAST(body AS TEXT) -> '$.params._meta', '$.progressToken'), '{}'),"
    " other_params = coalesce(json_remove(CAST(body AS TEXT) -> '$.params',"
    " '$.name', '$.arguments', '$.task', '$._meta'), '{}')"
    " WHERE task IN (SELECT sequence FROM task WHERE state IN (0, 1))"
    " AND json_valid(CAST(body AS TEXT));",

    /* 8 -> 9: the headers that a call came with, and the credentials that upstream has refused for
     * it; digests only */
    "ALTER TABLE task ADD COLUMN headers_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task ADD COLUMN refused_credentials TEXT NOT NULL DEFAULT '';",

    /* 9 -> 10: an ended task is never sent again, so its request is not kept */
    "UPDATE task_request SET body = x'' WHERE body <> x'' AND task IN"
    " (SELECT sequence FROM task WHERE ended_ms > 0);",

    /* 10 -> 11: whether the arguments are still what the client sent */
    "ALTER TABLE task_request ADD COLUMN redacted INTEGER NOT NULL DEFAULT 0;",

    /* 11 -> 12: operators who have signed in; of their cookies there are digests only */
    "CREATE TABLE sign_in (sequence INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL UNIQUE,"
    " person TEXT NOT NULL, issuer TEXT NOT NULL, claims TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL);"
    "CREATE INDEX sign_in_until ON sign_in (until_ms);",

    /* 12 -> 13: the audit trail as a chain. Rows of before get their hashes right after it, by
     * audit_seal(). Rows go only behind an anchor that the chain goes on from. */
    "ALTER TABLE task ADD COLUMN rule TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task ADD COLUMN policy_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN arguments_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN definition_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN hash TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN kept_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN person TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN policy_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN principal TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN request_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN rule TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN source TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN tool TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN votes TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE audit ADD COLUMN workflow TEXT NOT NULL DEFAULT '';"
    "CREATE TABLE audit_kept (sequence INTEGER PRIMARY KEY, arguments TEXT NOT NULL,"
    " until_ms INTEGER NOT NULL);"
    "CREATE INDEX audit_kept_until ON audit_kept (until_ms);"
    "CREATE TABLE audit_anchor (sequence INTEGER PRIMARY KEY, hash TEXT NOT NULL,"
    " at_ms INTEGER NOT NULL, signature TEXT NOT NULL, is_start INTEGER NOT NULL);"
    "DROP TRIGGER audit_is_not_deleted;"
    "CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit WHEN OLD.sequence >"
    " coalesce((SELECT max(sequence) FROM audit_anchor WHERE is_start), 0) BEGIN"
    " SELECT RAISE (ABORT, 'the audit trail is append-only'); END;",

    /* 13 -> 14: the headers of a modern call that repeat its body. They go with the body. */
    "ALTER TABLE task_request ADD COLUMN mirrored_headers TEXT NOT NULL DEFAULT '';",

    /* 14 -> 15: the digest of the verified address of the caller, for self-approval */
    "ALTER TABLE task ADD COLUMN owner_email TEXT NOT NULL DEFAULT '';",

    /* 15 -> 16: by what an operator was known, in rows that are about no task */
    "ALTER TABLE audit ADD COLUMN via TEXT NOT NULL DEFAULT '';",

    /* 16 -> 17: where an endpoint keeps what it was told of a task, so that it can be changed */
    "CREATE TABLE outbox_thread (target TEXT NOT NULL, task_id TEXT NOT NULL,"
    " reference TEXT NOT NULL, PRIMARY KEY (target, task_id));",

    /* 17 -> 18: votes, and the terms that they are given under. Tasks of before are decided by one
     * person, as they were. */
    "ALTER TABLE task ADD COLUMN terms TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task ADD COLUMN votes TEXT NOT NULL DEFAULT '';",

    /* 18 -> 19: grants, what a task says of them, and the arguments of before an approver's edit */
    "ALTER TABLE task ADD COLUMN rule_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task ADD COLUMN bound_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task ADD COLUMN grant_facts TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task ADD COLUMN original_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task ADD COLUMN original_request_digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE task_request ADD COLUMN original_arguments TEXT NOT NULL DEFAULT '';"
    "CREATE TABLE approval_grant (sequence INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, owner TEXT NOT NULL,"
    " principal TEXT NOT NULL, source TEXT NOT NULL, tool TEXT NOT NULL, workflow TEXT NOT NULL,"
    " rule TEXT NOT NULL, rule_digest TEXT NOT NULL, definition_digest TEXT NOT NULL,"
    " bound_digest TEXT NOT NULL, terms TEXT NOT NULL, arguments TEXT NOT NULL,"
    " votes TEXT NOT NULL, reason TEXT NOT NULL, calls INTEGER NOT NULL,"
    " used INTEGER NOT NULL CHECK (used BETWEEN 0 AND calls), for_ms INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL DEFAULT 0, end_cause TEXT NOT NULL DEFAULT '',"
    " ended_by TEXT NOT NULL DEFAULT '', end_reason TEXT NOT NULL DEFAULT '');"
    "CREATE INDEX approval_grant_of_tool ON approval_grant (owner, source, tool)"
    " WHERE ended_ms = 0;"
    "CREATE INDEX approval_grant_until ON approval_grant (until_ms) WHERE ended_ms = 0;",

    /* 19 -> 20: what the people who decide are told of the rule and the tool; and lists by the time
     * that is left, a page of which costs a page in each state. Tasks without a deadline are last.
     */
    "ALTER TABLE task_request ADD COLUMN shown TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX task_by_decide_by ON task (state,"
    " iif(decide_by_ms = 0, 9223372036854775807, decide_by_ms));",

    /* 20 -> 21: what was seen of a message at an endpoint, so that it is told once */
    "ALTER TABLE outbox_thread ADD COLUMN seen TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX outbox_thread_by_task ON outbox_thread (task_id);",

    /* 21 -> 22: when people are told again of a task that waits, each once; notices of emergencies,
     * and of anchors, which are about no task */
    "CREATE TABLE reminder (task INTEGER NOT NULL REFERENCES task (sequence) ON DELETE CASCADE,"
    " event INTEGER NOT NULL, due_ms INTEGER NOT NULL);"
    "CREATE INDEX reminder_by_task ON reminder (task);"
    "CREATE INDEX reminder_by_due ON reminder (event, due_ms);"
    "ALTER TABLE outbox_notice ADD COLUMN is_emergency INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE outbox_notice ADD COLUMN anchor TEXT NOT NULL DEFAULT '';",

    /* 22 -> 23: the processes that use the database, what each has claimed in which epoch, which
     * of them does what, and what they tell each other */
    "CREATE TABLE replica (id TEXT PRIMARY KEY, epoch INTEGER NOT NULL,"
    " alive_ms INTEGER NOT NULL);"
    "CREATE TABLE task_claim ("
    " task INTEGER PRIMARY KEY REFERENCES task (sequence) ON DELETE CASCADE,"
    " replica TEXT NOT NULL, epoch INTEGER NOT NULL);"
    "CREATE TABLE lease (name TEXT PRIMARY KEY, replica TEXT NOT NULL, epoch INTEGER NOT NULL,"
    " until_ms INTEGER NOT NULL);"
    "CREATE TABLE feed (sequence INTEGER PRIMARY KEY, task_id TEXT NOT NULL,"
    " replica TEXT NOT NULL, created INTEGER NOT NULL, at_ms INTEGER NOT NULL);"
    /* How many tasks limits count, by owner; without one: of all. */
    "CREATE TABLE limited (owner TEXT PRIMARY KEY, tasks INTEGER NOT NULL,"
    " pending INTEGER NOT NULL);"
    "INSERT INTO limited SELECT owner, count(*), sum(state = 0) FROM task WHERE state IN (0, 1)"
    " OR (state = 2 AND (accelerated OR promoted)) GROUP BY owner;"
    "INSERT INTO limited SELECT '', coalesce(sum(tasks), 0), coalesce(sum(pending), 0)"
    " FROM limited;",

    /* 23 -> 24: where replicas reach each other, and that nobody may decide */
    "ALTER TABLE replica ADD COLUMN address TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE replica ADD COLUMN seen_ms INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE hold (id INTEGER PRIMARY KEY CHECK (id = 1), replica TEXT NOT NULL,"
    " at_ms INTEGER NOT NULL);",

    /* 24 -> 25: the replica that has what lives in one process alone of a session, and the one that
     * had it before and is gone */
    "CREATE TABLE session_home (source TEXT NOT NULL, session_digest TEXT NOT NULL,"
    " replica TEXT NOT NULL, epoch INTEGER NOT NULL, lost_replica TEXT NOT NULL DEFAULT '',"
    " lost_epoch INTEGER NOT NULL DEFAULT 0, at_ms INTEGER NOT NULL,"
    " PRIMARY KEY (source, session_digest));"
    "CREATE INDEX session_home_by_time ON session_home (at_ms);",
    /* 25 -> 26: the trace that a task belongs to */
    "ALTER TABLE task ADD COLUMN trace TEXT NOT NULL DEFAULT '';",

    /* 26 -> 27: sign-ins of operators that have begun */
    "CREATE TABLE sign_in_attempt (sequence INTEGER PRIMARY KEY AUTOINCREMENT,"
    " digest TEXT NOT NULL UNIQUE, browser TEXT NOT NULL, sealed TEXT NOT NULL,"
    " until_ms INTEGER NOT NULL);",

    /* 27 -> 28: nothing costs more as the tables grow. Sessions are counted by their owner, and are
     * as old as their last use; the lists of an owner or a session are in order within each state;
     * what waits for an earlier notice of its task is not due until that one is gone. */
    "ALTER TABLE session ADD COLUMN owner TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX session_by_owner ON session (owner, seen_ms);"
    "UPDATE session SET seen_ms = max(seen_ms, coalesce((SELECT max(accepted_ms) FROM pair"
    " WHERE pair.source = session.source AND pair.session_digest = session.id_digest), 0));"
    "DROP INDEX task_by_owner;"
    "CREATE INDEX task_by_owner ON task (owner, state);"
    "DROP INDEX task_by_session;"
    "CREATE INDEX task_by_session ON task (session, state) WHERE session <> '';"
    "DROP INDEX reminder_by_task;"
    "CREATE INDEX reminder_by_task ON reminder (task, event);"
    "CREATE INDEX audit_anchor_start ON audit_anchor (sequence) WHERE is_start;"
    "CREATE INDEX approval_grant_active ON approval_grant (sequence) WHERE ended_ms = 0;"
    "CREATE INDEX approval_grant_ended ON approval_grant (ended_ms) WHERE ended_ms > 0;"
    "CREATE INDEX outbox_notice_by_age ON outbox_notice (at_ms);"
    "UPDATE outbox_delivery SET due_ms = 9223372036854775807 WHERE EXISTS (SELECT 1"
    " FROM outbox_delivery AS earlier WHERE earlier.target = outbox_delivery.target"
    " AND earlier.task_id = outbox_delivery.task_id"
    " AND earlier.sequence < outbox_delivery.sequence);"
    "CREATE TRIGGER outbox_next_is_due AFTER DELETE ON outbox_delivery BEGIN"
    " UPDATE outbox_delivery SET due_ms ="
    " (SELECT at_ms FROM outbox_notice WHERE outbox_notice.sequence = notice)"
    " WHERE sequence = (SELECT min(sequence) FROM outbox_delivery WHERE target = OLD.target"
    " AND task_id = OLD.task_id) AND due_ms = 9223372036854775807; END;"
    "DELETE FROM outbox_thread WHERE NOT EXISTS (SELECT 1 FROM task WHERE task.id = task_id);"
    "CREATE TRIGGER outbox_thread_is_over AFTER DELETE ON task BEGIN"
    " DELETE FROM outbox_thread WHERE task_id = OLD.id; END;",

    /* 28 -> 29: the person who made a call of the control plane */
    "ALTER TABLE task ADD COLUMN maker TEXT NOT NULL DEFAULT '';",

    /* 29 -> 30: definitions of servers, and which of them were accepted */
    "CREATE TABLE definition (sequence INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL UNIQUE, source TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,"
    " digest TEXT NOT NULL, accepted TEXT NOT NULL, counted TEXT NOT NULL, text TEXT NOT NULL,"
    " accepted_text TEXT NOT NULL, difference TEXT NOT NULL, flags INTEGER NOT NULL,"
    " is_changed INTEGER NOT NULL, at_ms INTEGER NOT NULL);"
    "CREATE INDEX definition_of_source ON definition (source, sequence);"
    "CREATE INDEX definition_watched ON definition (sequence) WHERE is_changed <> 0 OR flags <> 0;",

    /* 30 -> 31: callers that are blocked */
    "CREATE TABLE block (sequence INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
    " task_id TEXT NOT NULL, scope TEXT NOT NULL, owner TEXT NOT NULL, source TEXT NOT NULL,"
    " client TEXT NOT NULL, principal TEXT NOT NULL, reason TEXT NOT NULL, person TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL DEFAULT 0,"
    " ended_by TEXT NOT NULL DEFAULT '');"
    "CREATE INDEX block_active ON block (sequence) WHERE ended_ms = 0;"
    "CREATE INDEX block_ended ON block (ended_ms) WHERE ended_ms > 0;",

    /* 31 -> 32: the begin of the execution */
    "ALTER TABLE task ADD COLUMN started_ms INTEGER NOT NULL DEFAULT 0;",

    /* 32 -> 33: the bytes of the requests of tasks that limits count, by owner */
    "ALTER TABLE limited ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;"
    "UPDATE limited SET bytes = (SELECT coalesce(sum(length(body)), 0) FROM task"
    " JOIN task_request ON task_request.task = task.sequence WHERE task.owner = limited.owner"
    " AND (state IN (0, 1) OR (state = 2 AND (accelerated OR promoted)))) WHERE owner <> '';",

    /* 33 -> 34: the row of a call that waits, so that its arguments need not be read for it */
    "ALTER TABLE task ADD COLUMN brief TEXT NOT NULL DEFAULT '';",

    /* 34 -> 35: tasks that a pending answer has named */
    "ALTER TABLE task ADD COLUMN promised INTEGER NOT NULL DEFAULT 0;",

    /* 35 -> 36: the outcomes of the calls of each tool and caller, by day */
    "CREATE TABLE tally (source TEXT NOT NULL, tool TEXT NOT NULL, owner TEXT NOT NULL,"
    " day_ms INTEGER NOT NULL, approved INTEGER NOT NULL, rejected INTEGER NOT NULL,"
    " expired INTEGER NOT NULL, failed INTEGER NOT NULL,"
    " PRIMARY KEY (source, tool, owner, day_ms));"
    "CREATE INDEX tally_by_day ON tally (day_ms);"
    "INSERT INTO tally SELECT ended.source, ended.tool, made.actor_name,"
    " ended.at_ms - ended.at_ms % 86400000 AS day_ms, sum(ended.event = 'approve'),"
    " sum(ended.event = 'reject'), sum(ended.event = 'expire'), sum(ended.event = 'fail')"
    " FROM audit AS ended JOIN audit AS made ON made.task_id = ended.task_id"
    " WHERE ended.at_ms >= (strftime('%s', 'now') / 86400 - 29) * 86400000"
    " AND ended.event IN ('approve', 'reject', 'expire', 'fail') AND ended.tool <> ''"
    " AND made.event = 'create' AND made.actor_name <> '' GROUP BY 1, 2, 3, 4;"
    "INSERT INTO tally SELECT source, tool, '', day_ms, sum(approved), sum(rejected),"
    " sum(expired), sum(failed) FROM tally WHERE owner <> '' GROUP BY source, tool, day_ms;"
    "CREATE INDEX audit_decided ON audit (source, tool)"
    " WHERE event IN ('approve', 'reject') AND person <> '';"
    "CREATE INDEX audit_approved ON audit (arguments_digest, source, tool, at_ms, task_id)"
    " WHERE event = 'approve';",
};
const int migration_count = sizeof migration_scripts / sizeof *migration_scripts;
_Static_assert(sizeof migration_scripts / sizeof *migration_scripts == MIGRATIONS_SCHEMA_VERSION,
               "write what the new migration leaves behind into schema.c, too");

/* A new file is empty; anything else must carry our mark. */
static bool check_ours(struct database *database, bool *is_new, struct error *error)
{
    int64_t application, tables;
    if (!database_number(database->handle, "PRAGMA application_id", &application) ||
        !database_number(database->handle, "SELECT count(*) FROM sqlite_schema", &tables))
        return database_error(database, "cannot read the schema", error);
    *is_new = tables == 0;
    if (application == MIGRATIONS_APPLICATION_ID || (application == 0 && *is_new))
        return true;
    return error_set(error,
                     "%s is an SQLite database of another program; name another file in "
                     "store.path",
                     database->path);
}

static bool migrations_run(struct database *database, const char *sql)
{
    return sqlite3_exec(database->handle, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Sets *version to the one that the last script has led to. */
static bool run_scripts(struct database *database, bool is_new, int *version)
{
    if (is_new && *version == 0) {
        if (!migrations_run(database, migration_schema))
            return false;
        *version = migration_count;
    }
    for (; *version < migration_count; ++*version) {
        if (!migrations_run(database, migration_scripts[*version]))
            return false;
    }
    return true;
}

/* In one transaction: a process that is killed in it leaves the file as it was. */
static bool migrate(struct database *database, bool is_new, int version, struct error *error)
{
    char marks[96];
    snprintf(marks, sizeof marks, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
             MIGRATIONS_APPLICATION_ID, migration_count);
    if (migrations_run(database, "BEGIN IMMEDIATE") && run_scripts(database, is_new, &version) &&
        migrations_run(database, marks))
        return true;
    OWNED char *what =
        version < migration_count
            ? memory_format("cannot bring the schema from version %d to %d", version, version + 1)
            : memory_format("cannot write the schema of version %d", version);
    database_error(database, what, error);
    migrations_run(database, "ROLLBACK");
    return false;
}

bool migrations_apply(struct database *database, struct error *error)
{
    int64_t version;
    bool is_new = false;
    if (!check_ours(database, &is_new, error))
        return false;
    if (!database_number(database->handle, "PRAGMA user_version", &version))
        return database_error(database, "cannot read the schema", error);
    if (version > migration_count || version < 0)
        return error_set(error,
                         "%s has schema version %d, and this taskgate knows versions up to %d; "
                         "run the newer taskgate that wrote it",
                         database->path, (int)version, migration_count);
    if (version == migration_count)
        return true;
    if (!migrate(database, is_new, (int)version, error))
        return false;
    log_debug("Database schema migrated", LOG_NUMBER("from", version),
              LOG_NUMBER("version", migration_count));
    return true;
}

/* ---- a trail from before there was a chain ---- */

struct sealing {
    struct database *database;
    struct store_chain end; /* of the sealed rows */
    bool has_failed;
    int64_t count;
};

static bool seal_row(void *context, const struct audit_row *given)
{
    struct sealing *sealing = context;
    struct store_chain *end = &sealing->end;
    struct audit_row sealed = *given, *row = &sealed;
    OWNED_BUFFER(decision);
    OWNED_BUFFER(text);
    audit_row_write_decision(&decision, row->texts[AUDIT_decision]);
    row->texts[AUDIT_decision] = buffer_str(&decision);
    audit_row_write(row, false, &text);
    store_chain_hash(end->hash, buffer_str(&text), end->hash);
    end->sequence = row->sequence;
    sqlite3_stmt *update = database_statement(sealing->database, STATEMENT_AUDIT_SEAL);
    sqlite3_bind_int64(update, 1, row->sequence);
    database_bind_text(update, 2, end->hash);
    database_bind_str(update, 3, row->texts[AUDIT_decision]);
    sealing->has_failed = !database_run(update);
    sealing->count += !sealing->has_failed;
    return !sealing->has_failed;
}

static bool seal_all(struct database *database)
{
    struct sealing sealing = {.database = database};
    int64_t before;
    /* All rows of before are sealed in one transaction, so the newest tells for all. */
    if (!audit_rows_end(database, &sealing.end))
        return false;
    if (sealing.end.sequence > 0)
        return true;
    if (!database_simple(database, STATEMENT_AUDIT_UNLOCK))
        return false;
    do {
        before = sealing.count;
        if (!audit_rows_page(database, sealing.end.sequence, 1, seal_row, &sealing) ||
            sealing.has_failed)
            return false;
    } while (sealing.count > before);
    if (sealing.count > 0)
        log_info("Audit rows of an older version were chained", LOG_NUMBER("rows", sealing.count));
    return database_simple(database, STATEMENT_AUDIT_LOCK);
}

bool migrations_seal(struct database *database, struct error *error)
{
    if (database_simple(database, STATEMENT_BEGIN_WRITE) && seal_all(database) &&
        database_simple(database, STATEMENT_COMMIT))
        return true;
    database_error(database, "cannot chain the audit trail", error);
    if (!sqlite3_get_autocommit(database->handle))
        database_simple(database, STATEMENT_ROLLBACK);
    return false;
}
