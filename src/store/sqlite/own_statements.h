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
STATEMENT_ROW(AUDIT_INSERT,
    "INSERT INTO audit (" AUDIT_COLUMNS ") VALUES"
    " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
STATEMENT_ROW(AUDIT_LAST,
    "SELECT sequence, hash, at_ms, '' FROM audit ORDER BY sequence DESC LIMIT 1")
/* A trigger that may abort costs each UPDATE a journal of its own. */
STATEMENT_ROW(AUDIT_UNLOCK, "DROP TRIGGER IF EXISTS audit_is_not_updated")
STATEMENT_ROW(AUDIT_LOCK,
    "CREATE TRIGGER audit_is_not_updated BEFORE UPDATE ON audit BEGIN"
    " SELECT RAISE (ABORT, 'the audit trail is append-only'); END")
STATEMENT_ROW(AUDIT_SEAL, "UPDATE audit SET hash = ?2, decision = ?3 WHERE sequence = ?1")
STATEMENT_ROW(AUDIT_NEXT,
    "SELECT " AUDIT_COLUMNS " FROM audit WHERE sequence > ?1 ORDER BY sequence LIMIT 1")
STATEMENT_ROW(AUDIT_PAGE,
    "SELECT " AUDIT_COLUMNS " FROM audit WHERE sequence > ?1 ORDER BY sequence LIMIT ?2")
STATEMENT_ROW(AUDIT_OLDEST, "SELECT sequence, hash, at_ms FROM audit ORDER BY sequence LIMIT ?1")
STATEMENT_ROW(AUDIT_REMOVE, "DELETE FROM audit WHERE sequence <= ?1")
STATEMENT_ROW(AUDIT_REMOVE_KEPT, "DELETE FROM audit_kept WHERE sequence <= ?1")
STATEMENT_ROW(AUDIT_KEEP,
    "INSERT INTO audit_kept (sequence, arguments, until_ms) VALUES (?1, ?2, ?3)")
STATEMENT_ROW(AUDIT_KEPT, "SELECT arguments FROM audit_kept WHERE sequence = ?1")
STATEMENT_ROW(AUDIT_START,
    "SELECT sequence, hash, at_ms, signature FROM audit_anchor WHERE is_start"
    " ORDER BY sequence DESC LIMIT 1")
STATEMENT_ROW(ANCHOR_LAST,
    "SELECT sequence, hash, at_ms, signature FROM audit_anchor ORDER BY sequence DESC LIMIT 1")
STATEMENT_ROW(ANCHOR_PUT,
    "INSERT OR REPLACE INTO audit_anchor (sequence, hash, at_ms, signature, is_start)"
    " VALUES (?1, ?2, ?3, ?4, ?5)")
STATEMENT_ROW(ANCHOR_REMOVE, "DELETE FROM audit_anchor WHERE sequence < ?1")
STATEMENT_ROW(AUDIT_LIST,
    "SELECT sequence, at_ms, task_id, event, from_state, to_state, actor_kind, actor_name, reason"
    " FROM audit WHERE task_id = ?1 ORDER BY sequence")
STATEMENT_ROW(AUDIT_HAS, "SELECT 1 FROM audit WHERE task_id = ?1 AND event = ?2 LIMIT 1")
STATEMENT_ROW(OUTBOX_TARGET_CLEAR, "DELETE FROM outbox_target")
STATEMENT_ROW(OUTBOX_TARGET_INSERT,
    "INSERT INTO outbox_target (key, events, with_arguments) VALUES (?1, ?2, ?3)")
/* NULL when no target wants any of the events. */
STATEMENT_ROW(OUTBOX_WANTED, "SELECT max(with_arguments) FROM outbox_target WHERE events & ?1")
STATEMENT_ROW(OUTBOX_NOTICE_INSERT,
    "INSERT INTO outbox_notice (task_id, source, tool, workflow, principal, arguments_digest,"
    " decided_by, reason, status_message, arguments, at_ms, state, created_ms, decide_by_ms,"
    " decided_ms, is_emergency, anchor)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)")
/* A change has bits of events; the lowest that the target wants is sent. */
STATEMENT_ROW(OUTBOX_DELIVERY_INSERT,
    "INSERT INTO outbox_delivery (id, notice, target, task_id, event, attempts, due_ms)"
    " SELECT lower(hex(randomblob(16))), ?2, key, ?3, (events & ?1) & -(events & ?1), 0,"
    " " DUE_UNLESS_WAITING " FROM outbox_target WHERE events & ?1")
/* To those that do not want it. */
STATEMENT_ROW(OUTBOX_OTHERS, "SELECT max(with_arguments) FROM outbox_target WHERE NOT events & ?1")
STATEMENT_ROW(OUTBOX_DELIVERY_OTHERS,
    "INSERT INTO outbox_delivery (id, notice, target, task_id, event, attempts, due_ms)"
    " SELECT lower(hex(randomblob(16))), ?2, key, ?3, ?1, 0, " DUE_UNLESS_WAITING
    " FROM outbox_target WHERE NOT events & ?1")
STATEMENT_ROW(OUTBOX_DUE,
    "SELECT outbox_delivery.sequence, id, event, attempts, " NOTICE_COLUMNS ","
    " (SELECT reference FROM outbox_thread WHERE outbox_thread.target = outbox_delivery.target"
    " AND outbox_thread.task_id = outbox_delivery.task_id) FROM outbox_delivery"
    " JOIN outbox_notice ON outbox_notice.sequence = notice"
    " WHERE target = ?1 AND due_ms <= ?2 AND NOT EXISTS (SELECT 1 FROM outbox_delivery AS earlier"
    " WHERE earlier.target = outbox_delivery.target AND earlier.task_id = outbox_delivery.task_id"
    " AND earlier.sequence < outbox_delivery.sequence)"
    " ORDER BY due_ms, outbox_delivery.sequence LIMIT ?3")
STATEMENT_ROW(OUTBOX_NEXT,
    "SELECT min(due_ms) FROM outbox_delivery WHERE target = ?1 AND due_ms > ?2")
STATEMENT_ROW(OUTBOX_OVERDUE,
    "SELECT outbox_delivery.sequence FROM outbox_notice CROSS JOIN outbox_delivery"
    " ON notice = outbox_notice.sequence WHERE at_ms <= ?1 ORDER BY at_ms LIMIT ?2")
STATEMENT_ROW(OUTBOX_GET,
    "SELECT outbox_delivery.sequence, id, event, attempts, " NOTICE_COLUMNS " FROM outbox_delivery"
    " JOIN outbox_notice ON outbox_notice.sequence = notice WHERE outbox_delivery.sequence = ?1")
STATEMENT_ROW(OUTBOX_POSTPONE,
    "UPDATE outbox_delivery SET attempts = attempts + 1, due_ms = ?2 WHERE sequence = ?1")
/* An answer to a change may tell less of the message than that to its making. */
STATEMENT_ROW(OUTBOX_THREAD_PUT,
    "INSERT INTO outbox_thread (target, task_id, reference)"
    " SELECT target, task_id, ?2 FROM outbox_delivery WHERE sequence = ?1"
    " AND EXISTS (SELECT 1 FROM task WHERE task.id = task_id)"
    " ON CONFLICT (target, task_id) DO UPDATE SET reference = excluded.reference, seen = ''"
    " WHERE substr(reference || ' ', 1, length(excluded.reference) + 1)"
    " <> excluded.reference || ' '")
STATEMENT_ROW(OUTBOX_MESSAGES,
    "SELECT target, outbox_thread.task_id, reference, seen FROM outbox_thread"
    " JOIN task ON task.id = outbox_thread.task_id WHERE target = ?1 AND state = 0"
    " ORDER BY task.sequence DESC LIMIT ?2")
STATEMENT_ROW(OUTBOX_MESSAGES_OF,
    "SELECT target, task_id, reference, seen FROM outbox_thread WHERE task_id = ?1 LIMIT ?2")
STATEMENT_ROW(OUTBOX_SEE,
    "UPDATE outbox_thread SET seen = ?3 WHERE task_id = ?1 AND target = ?2")
/* No more is told of a task that has ended, or has gone. */
STATEMENT_ROW(OUTBOX_THREAD_END,
    "DELETE FROM outbox_thread WHERE (target, task_id) IN (SELECT target, outbox_delivery.task_id"
    " FROM outbox_delivery JOIN outbox_notice ON outbox_notice.sequence = notice"
    " WHERE outbox_delivery.sequence = ?1 AND outbox_notice.state > 2)")
STATEMENT_ROW(OUTBOX_DELETE, "DELETE FROM outbox_delivery WHERE sequence = ?1")
/* The numbers have no gap behind the newest: the place that the oldest may have needs no look. */
OVERRIDE_ROW(SIGN_IN_DROP_OLDEST,
    "DELETE FROM sign_in WHERE sequence <= (SELECT max(sequence) FROM sign_in) - ?1")
/* clang-format on */
