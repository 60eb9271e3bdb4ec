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
STATEMENT_ROW(TASK_INSERT,
    "INSERT INTO task (id, state, source, owner, session, principal, tool, workflow, action,"
    " arguments_digest, definition_digest, progress_token, on_result, accelerated, keep_task,"
    " ttl_ms, poll_interval_ms, created_ms, decide_by_ms, updated_ms, execute_by_ms, decided_ms,"
    " ended_ms, decided_by, reason, status_message, upstream_task, failure, outcome, deadline_ms,"
    " purge_ms, client_name, client_version, promoted, retention_ms, expired_retention_ms,"
    " request_digest, headers_digest, rule, policy_digest, owner_email, terms, rule_digest,"
    " bound_digest, trace, maker, brief)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,"
    " ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38,"
    " ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47)")
STATEMENT_ROW(REQUEST_INSERT,
    "INSERT INTO task_request (task, arguments, body, meta, other_params, mirrored_headers, shown)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")
STATEMENT_ROW(OUTCOME_PUT, "INSERT OR REPLACE INTO task_outcome (task, body) VALUES (?1, ?2)")
STATEMENT_ROW(TASK_GET,
    "SELECT " TASK_COLUMNS ", task_request.arguments, task_request.meta, task_request.other_params,"
    " task_request.original_arguments, task_request.shown, task_request.body, task_outcome.body,"
    " task_request.mirrored_headers FROM task"
    " JOIN task_request ON task_request.task = task.sequence"
    " LEFT JOIN task_outcome ON task_outcome.task = task.sequence WHERE task.id = ?1")
/* Compare-and-set: no row changes unless the task is still in the state it was read in. */
STATEMENT_ROW(TASK_MOVE,
    "UPDATE task SET state = ?3, updated_ms = ?4, execute_by_ms = ?5, decided_ms = ?6,"
    " ended_ms = ?7, decided_by = ?8, reason = ?9, status_message = ?10, upstream_task = ?11,"
    " failure = ?12, outcome = ?13, deadline_ms = ?14, purge_ms = ?15, refused_credentials = ?16,"
    " started_ms = ?17, brief = '' WHERE id = ?1 AND state = ?2")
STATEMENT_ROW(TASK_SEQUENCE, "SELECT sequence FROM task WHERE id = ?1")
STATEMENT_ROW(TASK_SET_VOTES, "UPDATE task SET votes = ?2, updated_ms = ?3 WHERE id = ?1")
STATEMENT_ROW(TASK_SET_GRANT, "UPDATE task SET grant_facts = ?2 WHERE id = ?1")
STATEMENT_ROW(TASK_EDIT,
    "UPDATE task SET arguments_digest = ?2, request_digest = ?3, original_digest = ?4,"
    " original_request_digest = ?5 WHERE id = ?1 AND state = 0")
STATEMENT_ROW(REQUEST_EDIT,
    "UPDATE task_request SET arguments = ?2, original_arguments = ?3, body = ?4"
    " WHERE task = (SELECT sequence FROM task WHERE id = ?1)")
STATEMENT_ROW(TASK_SET_UPSTREAM, "UPDATE task SET upstream_task = ?2 WHERE id = ?1")
STATEMENT_ROW(TASK_SET_MESSAGE, "UPDATE task SET status_message = ?2 WHERE id = ?1")
STATEMENT_ROW(TASK_SET_REACH,
    "UPDATE task SET owner = ?2, promised = ?3, on_result = ?4 WHERE id = ?1")
STATEMENT_ROW(TASK_DUE,
    "SELECT id FROM task WHERE deadline_ms <= ?1 ORDER BY deadline_ms LIMIT ?2")
STATEMENT_ROW(TASK_NEXT_DEADLINE, "SELECT min(deadline_ms) FROM task WHERE deadline_ms > ?1")
STATEMENT_ROW(TASK_OF_SESSION,
    "SELECT id FROM task WHERE owner = ?1 AND state IN (0, 1, 2) AND source = ?2"
    " AND (state < 2 OR promoted OR promised) ORDER BY sequence")
STATEMENT_ROW(TASK_HAND_OVER_ENDED,
    "UPDATE task SET owner = ?3 WHERE sequence IN (SELECT sequence FROM task WHERE owner = ?1"
    " AND state > 2 AND source = ?2 AND promised LIMIT ?4)"
    " RETURNING tool, state, iif(execute_by_ms > 0, decided_ms, 0), ended_ms")
STATEMENT_ROW(TASK_WAITING,
    "SELECT sequence" WAITING_COLUMNS("coalesce((SELECT shown FROM task_request"
    " WHERE task_request.task = task.sequence), '')") " FROM task WHERE state = 0"
    " AND (?1 = '' OR source = ?1) AND (?2 = '' OR tool = ?2) AND (?3 = '' OR workflow = ?3)"
    " AND (?4 = '' OR principal = ?4)")
STATEMENT_ROW(TASK_WAITING_COUNT,
    "SELECT count(*) FROM task WHERE state = 0 AND " DECIDE_BY_KEY " > ?1")
STATEMENT_ROW(LIMITED_COUNT,
    "SELECT coalesce((SELECT tasks FROM limited WHERE owner = ?1), 0),"
    " coalesce((SELECT bytes FROM limited WHERE owner = ?1), 0),"
    " coalesce((SELECT tasks FROM limited WHERE owner = ''), 0),"
    " coalesce((SELECT pending FROM limited WHERE owner = ''), 0)")
STATEMENT_ROW(LIMITED_ADD,
    "INSERT INTO limited (owner, tasks, pending, bytes) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (owner)"
    " DO UPDATE SET tasks = tasks + excluded.tasks, pending = pending + excluded.pending,"
    " bytes = bytes + excluded.bytes")
STATEMENT_ROW(LIMITED_PURGE, "DELETE FROM limited WHERE tasks = 0 AND pending = 0 AND owner <> ''")
STATEMENT_ROW(TASK_WAITS,
    "SELECT workflow, min(created_ms),"
    " max((?1 - created_ms) * 1000000 / max(decide_by_ms - created_ms, 1))"
    " FROM task WHERE state = 0 GROUP BY workflow")
STATEMENT_ROW(PAGE_COUNT, "PRAGMA page_count")
STATEMENT_ROW(FREE_PAGE_COUNT, "PRAGMA freelist_count")
STATEMENT_ROW(PAGE_SIZE, "PRAGMA page_size")
STATEMENT_ROW(REQUEST_END,
    "UPDATE task_request SET body = x'', mirrored_headers = '', arguments = ?2, meta = ?3,"
    " other_params = ?4, redacted = ?5, original_arguments = ?6"
    " WHERE task = (SELECT sequence FROM task WHERE id = ?1)")
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
    " WHERE audit.event = 'create' AND audit.at_ms >= ?1 AND audit.sequence > ?2"
    " ORDER BY audit.sequence LIMIT ?3")
OVERRIDE_ROW(AUDIT_LAST_GIVEN, "SELECT seq FROM sqlite_sequence WHERE name = 'audit'")
/* clang-format on */
