/*
 * Further statements, of SQLite's only: STATEMENT_ROW(symbol, SQL), and others in the place of
 * those of ../statements.h: OVERRIDE_ROW. Included many times; no guard on purpose.
 */
/* clang-format off */
#if !defined(STATEMENT_ROW) || !defined(OVERRIDE_ROW)
#error "define STATEMENT_ROW and OVERRIDE_ROW before including this table"
#endif
STATEMENT_ROW(BEGIN, "BEGIN")
STATEMENT_ROW(BEGIN_WRITE, "BEGIN IMMEDIATE")
STATEMENT_ROW(COMMIT, "COMMIT")
STATEMENT_ROW(ROLLBACK, "ROLLBACK")
STATEMENT_ROW(SAVEPOINT, "SAVEPOINT operation")
STATEMENT_ROW(RELEASE, "RELEASE operation")
STATEMENT_ROW(ROLLBACK_TO, "ROLLBACK TO operation")
STATEMENT_ROW(PAGE_COUNT, "PRAGMA page_count")
STATEMENT_ROW(FREE_PAGE_COUNT, "PRAGMA freelist_count")
STATEMENT_ROW(PAGE_SIZE, "PRAGMA page_size")
/* A trigger that may abort costs each UPDATE a journal of its own. */
STATEMENT_ROW(AUDIT_UNLOCK, "DROP TRIGGER IF EXISTS audit_is_not_updated")
STATEMENT_ROW(AUDIT_LOCK,
    "CREATE TRIGGER audit_is_not_updated BEFORE UPDATE ON audit BEGIN"
    " SELECT RAISE (ABORT, 'the audit trail is append-only'); END")
STATEMENT_ROW(AUDIT_SEAL, "UPDATE audit SET hash = ?2, decision = ?3 WHERE sequence = ?1")
/* The numbers have no gap behind the newest: the place that the oldest may have needs no look. */
OVERRIDE_ROW(SIGN_IN_DROP_OLDEST,
    "DELETE FROM sign_in WHERE sequence <= (SELECT max(sequence) FROM sign_in) - ?1")
/* Tasks have their arguments in a table of their own. */
OVERRIDE_ROW(HISTORY_CALLS,
    "SELECT audit.sequence, audit.at_ms, audit.task_id, audit.decision,"
    " CASE WHEN task_request.redacted THEN NULL ELSE task_request.arguments END FROM audit"
    " LEFT JOIN task ON task.id = audit.task_id"
    " LEFT JOIN task_request ON task_request.task = task.sequence"
    " WHERE audit.event = 'create' AND audit.at_ms >= ?3 AND audit.sequence > ?1"
    " ORDER BY audit.sequence LIMIT ?2")
OVERRIDE_ROW(AUDIT_LAST_GIVEN, "SELECT seq FROM sqlite_sequence WHERE name = 'audit'")
/* The bulk is in tables of its own: the driver writes it there. */
OVERRIDE_ROW(TASK_INSERT, "INSERT INTO task ({task_row.*}) VALUES ({task_row.?})")
STATEMENT_ROW(REQUEST_INSERT,
    "INSERT INTO task_request (task, arguments, meta, other_params, original_arguments, shown, body,"
    " mirrored_headers) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")
STATEMENT_ROW(OUTCOME_INSERT, "INSERT INTO task_outcome (task, body) VALUES (?1, ?2)")
OVERRIDE_ROW(TASK_SET_OUTCOME,
    "INSERT OR REPLACE INTO task_outcome (task, body) SELECT sequence, ?2 FROM task WHERE id = ?1")
/* clang-format on */
