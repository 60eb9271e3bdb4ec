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
STATEMENT_ROW(PROBE, "INSERT INTO probe (id, at_ms) VALUES (1, ?1)"
                     " ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms")
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
STATEMENT_ROW(SESSION_PUT,
    "INSERT INTO session (source, id_digest, version, client_name, client_version,"
    " client_capabilities, upstream_tasks, upstream_sse, seen_ms, owner)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (source, id_digest) DO UPDATE SET"
    " version = excluded.version, client_name = excluded.client_name,"
    " client_version = excluded.client_version,"
    " client_capabilities = excluded.client_capabilities,"
    " upstream_tasks = excluded.upstream_tasks, upstream_sse = excluded.upstream_sse,"
    " seen_ms = excluded.seen_ms, owner = excluded.owner")
STATEMENT_ROW(SESSION_SEEN,
    "UPDATE session SET seen_ms = ?3 WHERE source = ?1 AND id_digest = ?2 AND seen_ms < ?3")
/* Those behind the latest ?2 (?1) ones, of which some go at a time. */
STATEMENT_ROW(SESSION_DROP_OF_OWNER,
    "DELETE FROM session WHERE rowid IN (SELECT rowid FROM session WHERE owner = ?1"
    " ORDER BY seen_ms DESC LIMIT 500 OFFSET ?2)")
STATEMENT_ROW(SESSION_DROP_OLDEST,
    "DELETE FROM session WHERE rowid IN (SELECT rowid FROM session"
    " ORDER BY seen_ms DESC LIMIT 500 OFFSET ?1)")
STATEMENT_ROW(SESSION_GET,
    "SELECT source, id_digest, version, client_name, client_version, client_capabilities,"
    " upstream_tasks, upstream_sse, seen_ms FROM session WHERE source = ?1 AND id_digest = ?2")
STATEMENT_ROW(SESSION_DELETE, "DELETE FROM session WHERE source = ?1 AND id_digest = ?2")
STATEMENT_ROW(PAIR_PUT,
    "INSERT INTO pair (source, session_digest, token_digest, accepted_ms) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (source, session_digest, token_digest)"
    " DO UPDATE SET accepted_ms = max(accepted_ms, excluded.accepted_ms)")
STATEMENT_ROW(PAIR_GET,
    "SELECT 1 FROM pair WHERE source = ?1 AND session_digest = ?2 AND token_digest = ?3")
STATEMENT_ROW(PAIR_DELETE, "DELETE FROM pair WHERE source = ?1 AND session_digest = ?2")
STATEMENT_ROW(PAIR_DROP_OLDEST,
    "DELETE FROM pair WHERE rowid IN (SELECT rowid FROM pair"
    " ORDER BY accepted_ms DESC LIMIT 500 OFFSET ?1)")
STATEMENT_ROW(SIGN_IN_PUT,
    "INSERT INTO sign_in (digest, person, issuer, claims, created_ms, until_ms)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
STATEMENT_ROW(SIGN_IN_DROP_OLDEST,
    "DELETE FROM sign_in WHERE sequence <= (SELECT max(sequence) FROM sign_in) - ?1")
STATEMENT_ROW(SIGN_IN_GET,
    "SELECT digest, person, issuer, claims, created_ms, until_ms FROM sign_in"
    " WHERE digest = ?1 AND until_ms > ?2")
STATEMENT_ROW(SIGN_IN_DELETE, "DELETE FROM sign_in WHERE digest = ?1")
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
STATEMENT_ROW(REPLICA_JOIN,
    "INSERT INTO replica (id, epoch, alive_ms, seen_ms) VALUES (?1, 1, ?2, ?2)"
    " ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1, alive_ms = excluded.alive_ms,"
    " seen_ms = excluded.seen_ms")
STATEMENT_ROW(REPLICA_EPOCH, "SELECT epoch FROM replica WHERE id = ?1")
STATEMENT_ROW(REPLICA_BEAT, 
    "UPDATE replica SET alive_ms = ?3, seen_ms = max(seen_ms, ?3) WHERE id = ?1 AND epoch = ?2")
STATEMENT_ROW(REPLICA_FENCE,
    "UPDATE replica SET epoch = epoch + 1, alive_ms = 0"
    " WHERE id <> ?1 AND alive_ms > 0 AND (alive_ms < ?2 OR alive_ms > ?3)")
STATEMENT_ROW(CLAIM_PUT,
    "INSERT OR REPLACE INTO task_claim (task, replica, epoch)"
    " SELECT sequence, ?2, ?3 FROM task WHERE id = ?1"
    " AND EXISTS (SELECT 1 FROM replica WHERE id = ?2 AND epoch = ?3)")
/* Never in the place of a claim in an epoch that goes on. */
STATEMENT_ROW(CLAIM_KEEP,
    "INSERT INTO task_claim (task, replica, epoch)"
    " SELECT sequence, ?2, ?3 FROM task WHERE id = ?1"
    " ON CONFLICT (task) DO UPDATE SET replica = excluded.replica, epoch = excluded.epoch"
    " WHERE NOT EXISTS (SELECT 1 FROM replica AS r WHERE r.id = task_claim.replica"
    " AND r.epoch = task_claim.epoch AND r.alive_ms > 0)")
STATEMENT_ROW(CLAIM_GET,
    "SELECT replica, epoch FROM task_claim JOIN task ON task.sequence = task_claim.task"
    " WHERE task.id = ?1")
STATEMENT_ROW(TASK_HOME,
    "SELECT task_claim.replica, coalesce(replica.address, ''), task_claim.epoch, task.state,"
    " NOT coalesce(replica.alive_ms > 0 AND replica.epoch = task_claim.epoch, 0) FROM task"
    " JOIN task_claim ON task_claim.task = task.sequence"
    " LEFT JOIN replica ON replica.id = task_claim.replica WHERE task.id = ?1")
STATEMENT_ROW(CLAIM_LOST,
    "SELECT id FROM task WHERE state = 2 AND NOT EXISTS (SELECT 1 FROM task_claim JOIN replica"
    " ON replica.id = task_claim.replica AND replica.epoch = task_claim.epoch"
    " WHERE task_claim.task = task.sequence AND replica.alive_ms > 0) ORDER BY sequence")
/* One that lies further ahead than twice its length was written with a clock that was ahead. */
STATEMENT_ROW(LEASE_TAKE,
    "INSERT INTO lease (name, replica, epoch, until_ms) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (name) DO UPDATE SET replica = excluded.replica, epoch = excluded.epoch,"
    " until_ms = excluded.until_ms WHERE lease.until_ms <= ?5 OR lease.replica = excluded.replica"
    " OR lease.until_ms > 2 * excluded.until_ms - ?5")
STATEMENT_ROW(FEED_ADD,
    "INSERT INTO feed (task_id, replica, created, at_ms) VALUES (?1, ?2, ?3, ?4)")
STATEMENT_ROW(FEED_END, "SELECT coalesce(max(sequence), 0) FROM feed")
STATEMENT_ROW(FEED_READ,
    "SELECT sequence, task_id, replica, created FROM feed WHERE sequence > ?1"
    " ORDER BY sequence LIMIT ?2")
STATEMENT_ROW(REPLICA_ANNOUNCE, "UPDATE replica SET address = ?2 WHERE id = ?1")
STATEMENT_ROW(REPLICA_LIST,
    "SELECT id, address, epoch, alive_ms, seen_ms FROM replica ORDER BY id")
STATEMENT_ROW(REPLICA_FORGET, "DELETE FROM replica WHERE alive_ms = 0 AND seen_ms < ?1")
STATEMENT_ROW(HOME_TAKE,
    "INSERT INTO session_home (source, session_digest, replica, epoch, at_ms)"
    " SELECT ?1, ?2, ?3, ?4, ?5 WHERE EXISTS (SELECT 1 FROM session WHERE source = ?1"
    " AND id_digest = ?2) ON CONFLICT (source, session_digest) DO UPDATE SET"
    " lost_replica = replica, lost_epoch = epoch, replica = excluded.replica,"
    " epoch = excluded.epoch, at_ms = excluded.at_ms WHERE NOT EXISTS (SELECT 1 FROM replica AS r"
    " WHERE r.id = session_home.replica AND r.epoch = session_home.epoch AND r.alive_ms > 0)"
    " RETURNING lost_replica, lost_epoch")
STATEMENT_ROW(HOME_GET,
    "SELECT replica, epoch FROM session_home WHERE source = ?1 AND session_digest = ?2")
STATEMENT_ROW(HOME_LOST_TASKS,
    "SELECT task.id FROM task JOIN task_claim ON task_claim.task = task.sequence"
    " WHERE task.source = ?1 AND task.session = ?2 AND task.session <> '' AND task.state = ?3"
    " AND task_claim.replica = ?4 AND task_claim.epoch = ?5 ORDER BY task.sequence")
STATEMENT_ROW(HOME_DELETE,
    "DELETE FROM session_home WHERE source = ?1 AND session_digest = ?2")
STATEMENT_ROW(HOLD_PUT,
    "INSERT INTO hold (id, replica, at_ms) VALUES (1, ?1, ?2) ON CONFLICT (id) DO NOTHING")
STATEMENT_ROW(HOLD_COUNT, "SELECT count(*) FROM hold")
STATEMENT_ROW(HOLD_DELETE, "DELETE FROM hold")
STATEMENT_ROW(OUTBOX_DELETE, "DELETE FROM outbox_delivery WHERE sequence = ?1")
STATEMENT_ROW(TALLY_ADD,
    "INSERT INTO tally (source, tool, owner, day_ms, approved, rejected, expired, failed)"
    " VALUES (?1, ?2, '', ?4, ?5, ?6, ?7, ?8), (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    " ON CONFLICT (source, tool, owner, day_ms) DO UPDATE SET"
    " approved = approved + excluded.approved, rejected = rejected + excluded.rejected,"
    " expired = expired + excluded.expired, failed = failed + excluded.failed")
STATEMENT_ROW(TALLY_GIVE,
    "INSERT INTO tally (source, tool, owner, day_ms, approved, rejected, expired, failed)"
    " VALUES (?1, ?2, ?9, ?4, ?5, ?6, ?7, ?8), (?1, ?2, ?3, ?4, -?5, -?6, -?7, -?8)"
    " ON CONFLICT (source, tool, owner, day_ms) DO UPDATE SET"
    " approved = approved + excluded.approved, rejected = rejected + excluded.rejected,"
    " expired = expired + excluded.expired, failed = failed + excluded.failed")
STATEMENT_ROW(TALLY_READ,
    "SELECT coalesce(sum(approved), 0), coalesce(sum(rejected), 0),"
    " coalesce(sum(expired), 0), coalesce(sum(failed), 0) FROM tally"
    " WHERE source = ?1 AND tool = ?2 AND owner = ?3 AND day_ms >= ?4")
STATEMENT_ROW(TALLY_LAST,
    "SELECT event, at_ms, person, reason FROM audit WHERE source = ?1 AND tool = ?2"
    " AND event IN ('approve', 'reject') AND person <> '' AND task_id <> ?3"
    " ORDER BY sequence DESC LIMIT 1")
STATEMENT_ROW(TALLY_SAME,
    "SELECT count(*), coalesce(max(at_ms), 0) FROM (SELECT at_ms FROM audit"
    " WHERE event = 'approve' AND arguments_digest = ?1 AND source = ?2 AND tool = ?3"
    " AND at_ms >= ?4 AND task_id <> ?5 ORDER BY at_ms DESC LIMIT ?6)")
STATEMENT_ROW(REMINDER_INSERT,
    "INSERT INTO reminder (task, event, due_ms) SELECT sequence, ?2, ?3 FROM task WHERE id = ?1")
STATEMENT_ROW(REMINDER_DUE,
    "SELECT task.id FROM reminder JOIN task ON task.sequence = reminder.task"
    " WHERE reminder.event = ?1 AND reminder.due_ms <= ?2 ORDER BY reminder.due_ms LIMIT ?3")
STATEMENT_ROW(REMINDER_DELETE,
    "DELETE FROM reminder WHERE task = (SELECT sequence FROM task WHERE id = ?1) AND event = ?2")
STATEMENT_ROW(REMINDER_NEXT, "SELECT min(due_ms) FROM reminder WHERE event = ?1 AND due_ms > ?2")
/* clang-format on */
