/*
 * Further statements, of PostgreSQL's only: STATEMENT_ROW(symbol, SQL), and others in the place of
 * those of ../statements.h: OVERRIDE_ROW. Included many times; no guard on purpose.
 */
/* clang-format off */
#if !defined(STATEMENT_ROW) || !defined(OVERRIDE_ROW)
#error "define STATEMENT_ROW and OVERRIDE_ROW before including this table"
#endif
STATEMENT_ROW(BEGIN_READ, "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")
STATEMENT_ROW(BEGIN_MOMENT, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
STATEMENT_ROW(BEGIN_WRITE, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
/* One writer at a time, of all replicas: the feed, the chain and the limits are in the order of the
 * commits. It is no lock on a row, because that would make each transaction write to the disk. */
STATEMENT_ROW(LOCK,
    "SELECT pg_advisory_xact_lock(hashtext('taskgate'), hashtext(current_schema()))")
/* Each transaction begins with it. Behind the lock it is a statement of its own, which sees all
 * that was committed before. A trail without rows goes on from an anchor: AUDIT_END. */
STATEMENT_ROW(LOOK, "SELECT " CLOCK_MS ", tasks, pending, bytes FROM taskgate_totals")
STATEMENT_ROW(LOOK_WRITE,
    "SELECT " CLOCK_MS ", tasks, pending, bytes, " GRANT_ANY ", (SELECT string_agg("
    "concat(events, ':', with_arguments), ',') FROM taskgate_outbox_target), sequence, hash"
    " FROM taskgate_totals LEFT JOIN (SELECT sequence, hash FROM taskgate_audit"
    " ORDER BY sequence DESC LIMIT 1) AS trail ON true")
STATEMENT_ROW(COMMIT, "COMMIT")
STATEMENT_ROW(ROLLBACK, "ROLLBACK")
STATEMENT_ROW(SAVEPOINT, "SAVEPOINT operation")
STATEMENT_ROW(RELEASE, "RELEASE SAVEPOINT operation")
STATEMENT_ROW(ROLLBACK_TO, "ROLLBACK TO SAVEPOINT operation")
/* Each transaction that writes ends with it: its mark, its counts, and a hint for the others if it
 * has added to the feed. */
STATEMENT_ROW(CLOSE,
    "WITH marked AS (INSERT INTO taskgate_mark (owner, number, at_ms) VALUES ($1, $2, $3)"
    " ON CONFLICT (owner) DO UPDATE SET number = excluded.number, at_ms = excluded.at_ms),"
    " counted AS (UPDATE taskgate_totals SET tasks = tasks + $4::bigint,"
    " pending = pending + $5::bigint, bytes = bytes + $6::bigint"
    " WHERE $4::bigint <> 0 OR $5::bigint <> 0 OR $6::bigint <> 0)"
    " SELECT pg_notify('taskgate_feed', '') WHERE $7::bigint <> 0")
STATEMENT_ROW(MARK_GET, "SELECT number FROM taskgate_mark WHERE owner = $1")
STATEMENT_ROW(PROBE,
    "INSERT INTO taskgate_probe (id, at_ms) VALUES (1, $1)"
    " ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms")
STATEMENT_ROW(TOTALS_GET, "SELECT tasks, pending, bytes FROM taskgate_totals")
/* Of the tables whose bytes nobody counts. */
STATEMENT_ROW(BESIDE_BYTES,
    "SELECT coalesce(sum(pg_relation_size(oid)"
    " + CASE WHEN reltoastrelid = 0 THEN 0 ELSE pg_relation_size(reltoastrelid) END), 0)::bigint"
    " FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    " AND (starts_with(relname, 'taskgate_outbox') OR relname IN"
    " ('taskgate_session', 'taskgate_pair', 'taskgate_sign_in', 'taskgate_sign_in_attempt', 'taskgate_grant', 'taskgate_block'))")
STATEMENT_ROW(TASK_INSERT,
    "INSERT INTO taskgate_task (deadline_ms, purge_ms, bytes" TASK_COLUMNS ", " TASK_BULK_COLUMNS ")"
    " VALUES (" TASK_PLACEHOLDERS ")")
/* And it lives with a replica. */
STATEMENT_ROW(TASK_INSERT_KEPT,
    "WITH made AS (INSERT INTO taskgate_task (deadline_ms, purge_ms, bytes" TASK_COLUMNS ", "
    TASK_BULK_COLUMNS ") VALUES (" TASK_PLACEHOLDERS ") RETURNING sequence)"
    " INSERT INTO taskgate_task_claim (task, replica, epoch)"
    " SELECT sequence, $64::text, $65::bigint FROM made")
STATEMENT_ROW(TASK_GET,
    "SELECT sequence" TASK_COLUMNS ", " TASK_BULK_COLUMNS " FROM taskgate_task WHERE id = $1")
/* Compare-and-set: no row changes unless the task is still in the state it was read in. */
STATEMENT_ROW(TASK_MOVE,
    "UPDATE taskgate_task SET state = $3, updated_ms = $4, execute_by_ms = $5, decided_ms = $6,"
    " ended_ms = $7, decided_by = $8, reason = $9, status_message = $10, upstream_task = $11,"
    " failure = $12, outcome = $13, deadline_ms = $14, purge_ms = $15, refused_credentials = $16,"
    " started_ms = $17, brief = '' WHERE id = $1 AND state = $2")
STATEMENT_ROW(TASK_SET_OUTCOME, 
    "UPDATE taskgate_task SET outcome_body = $2, bytes = bytes + $3 WHERE id = $1")
STATEMENT_ROW(TASK_SET_VOTES, "UPDATE taskgate_task SET votes = $2, updated_ms = $3 WHERE id = $1")
STATEMENT_ROW(TASK_SET_GRANT, "UPDATE taskgate_task SET grant_facts = $2 WHERE id = $1")
STATEMENT_ROW(TASK_SET_UPSTREAM, "UPDATE taskgate_task SET upstream_task = $2 WHERE id = $1")
STATEMENT_ROW(TASK_SET_MESSAGE, "UPDATE taskgate_task SET status_message = $2 WHERE id = $1")
STATEMENT_ROW(TASK_SET_REACH,
    "UPDATE taskgate_task SET owner = $2, promised = $3, on_result = $4 WHERE id = $1")
STATEMENT_ROW(TASK_EDIT,
    "UPDATE taskgate_task SET arguments_digest = $2, request_digest = $3, original_digest = $4,"
    " original_request_digest = $5, arguments = $6, original_arguments = $7, body = $8"
    " WHERE id = $1 AND state = 0")
STATEMENT_ROW(TASK_END_REQUEST,
    "UPDATE taskgate_task SET body = '', mirrored_headers = '', arguments = $2, meta = $3,"
    " other_params = $4, is_redacted = $5, original_arguments = $6, bytes = bytes - $7"
    " WHERE id = $1")
STATEMENT_ROW(TASK_DUE,
    "SELECT id FROM taskgate_task WHERE deadline_ms <= $1 ORDER BY deadline_ms LIMIT $2")
STATEMENT_ROW(TASK_NEXT_DEADLINE,
    "SELECT min(deadline_ms) FROM taskgate_task WHERE deadline_ms > $1")
STATEMENT_ROW(TASK_OF_SESSION,
    "SELECT id FROM taskgate_task WHERE owner = $1 AND state IN (0, 1, 2) AND source = $2"
    " AND (state < 2 OR promoted <> 0 OR promised <> 0) ORDER BY sequence")
STATEMENT_ROW(TASK_HAND_OVER_ENDED,
    "UPDATE taskgate_task SET owner = $3 WHERE ctid = ANY (ARRAY"
    " (SELECT ctid FROM taskgate_task WHERE owner = $1 AND state > 2 AND source = $2"
    " AND promised <> 0 LIMIT $4))"
    " RETURNING tool, state, CASE WHEN execute_by_ms > 0 THEN decided_ms ELSE 0 END, ended_ms")
STATEMENT_ROW(TASK_WAITING,
    "SELECT sequence" WAITING_COLUMNS("shown") " FROM taskgate_task WHERE state = 0"
    " AND ($1 = '' OR source = $1) AND ($2 = '' OR tool = $2) AND ($3 = '' OR workflow = $3)"
    " AND ($4 = '' OR principal = $4)")
STATEMENT_ROW(TASK_WAITING_COUNT,
    "SELECT count(*) FROM taskgate_task WHERE state = 0 AND " DECIDE_BY_KEY " > $1")
STATEMENT_ROW(TASK_WAITS,
    "SELECT workflow, min(created_ms),"
    " max(($1 - created_ms) * 1000000 / greatest(decide_by_ms - created_ms, 1))"
    " FROM taskgate_task WHERE state = 0 GROUP BY workflow")
/* With those of a list of ids that are there. Each is a look at the index, whatever is known of
 * the size of the table. The planner would take a plain $2 for a constant, and plan each time anew. */
STATEMENT_ROW(LIMITED_GET,
    "SELECT $1::text, coalesce((SELECT tasks FROM taskgate_limited WHERE owner = $1), 0),"
    " coalesce((SELECT bytes FROM taskgate_limited WHERE owner = $1), 0),"
    " (SELECT string_agg((SELECT id FROM taskgate_task AS task WHERE task.id = asked.id), ',')"
    " FROM unnest(string_to_array((SELECT $2::text), ',')) AS asked (id))")
STATEMENT_ROW(LIMITED_ADD,
    "INSERT INTO taskgate_limited AS counted (owner, tasks, bytes) VALUES ($1, $2, $3)"
    " ON CONFLICT (owner) DO UPDATE SET tasks = counted.tasks + excluded.tasks,"
    " bytes = counted.bytes + excluded.bytes")
STATEMENT_ROW(LIMITED_PURGE, "DELETE FROM taskgate_limited WHERE tasks = 0")
STATEMENT_ROW(SESSION_PUT,
    "INSERT INTO taskgate_session (source, id_digest, version, client_name, client_version,"
    " client_capabilities, upstream_tasks, upstream_sse, seen_ms, owner)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (source, id_digest) DO UPDATE SET"
    " version = excluded.version, client_name = excluded.client_name,"
    " client_version = excluded.client_version,"
    " client_capabilities = excluded.client_capabilities,"
    " upstream_tasks = excluded.upstream_tasks, upstream_sse = excluded.upstream_sse,"
    " seen_ms = excluded.seen_ms, owner = excluded.owner")
STATEMENT_ROW(SESSION_SEEN,
    "UPDATE taskgate_session SET seen_ms = $3 WHERE source = $1 AND id_digest = $2 AND seen_ms < $3")
/* Those behind the latest $2 ($1) ones, of which some go at a time; their homes, too. */
STATEMENT_ROW(SESSION_DROP_OF_OWNER,
    "WITH gone AS (DELETE FROM taskgate_session WHERE ctid = ANY (ARRAY"
    " (SELECT ctid FROM taskgate_session WHERE owner = $1"
    " ORDER BY seen_ms DESC LIMIT 500 OFFSET $2)) RETURNING source, id_digest)"
    " DELETE FROM taskgate_session_home AS home USING gone"
    " WHERE home.source = gone.source AND home.session_digest = gone.id_digest")
STATEMENT_ROW(SESSION_DROP_OLDEST,
    "WITH gone AS (DELETE FROM taskgate_session WHERE ctid = ANY (ARRAY"
    " (SELECT ctid FROM taskgate_session"
    " ORDER BY seen_ms DESC LIMIT 500 OFFSET $1)) RETURNING source, id_digest)"
    " DELETE FROM taskgate_session_home AS home USING gone"
    " WHERE home.source = gone.source AND home.session_digest = gone.id_digest")
STATEMENT_ROW(SESSION_GET,
    "SELECT source, id_digest, version, client_name, client_version, client_capabilities,"
    " upstream_tasks, upstream_sse, seen_ms FROM taskgate_session"
    " WHERE source = $1 AND id_digest = $2")
STATEMENT_ROW(SESSION_DELETE, "DELETE FROM taskgate_session WHERE source = $1 AND id_digest = $2")
STATEMENT_ROW(PAIR_PUT,
    "INSERT INTO taskgate_pair AS known (source, session_digest, token_digest, accepted_ms)"
    " VALUES ($1, $2, $3, $4) ON CONFLICT (source, session_digest, token_digest)"
    " DO UPDATE SET accepted_ms = greatest(known.accepted_ms, excluded.accepted_ms)")
STATEMENT_ROW(PAIR_GET,
    "SELECT 1 FROM taskgate_pair WHERE source = $1 AND session_digest = $2 AND token_digest = $3")
STATEMENT_ROW(PAIR_DELETE, "DELETE FROM taskgate_pair WHERE source = $1 AND session_digest = $2")
STATEMENT_ROW(PAIR_DROP_OLDEST,
    "DELETE FROM taskgate_pair WHERE ctid = ANY (ARRAY"
    " (SELECT ctid FROM taskgate_pair ORDER BY accepted_ms DESC LIMIT 500 OFFSET $1))")
STATEMENT_ROW(SIGN_IN_PUT,
    "INSERT INTO taskgate_sign_in (digest, person, issuer, claims, created_ms, until_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6)")
/* Numbers may have gaps: rows are counted. */
STATEMENT_ROW(SIGN_IN_DROP_OLDEST,
    "DELETE FROM taskgate_sign_in WHERE sequence <= (SELECT sequence FROM taskgate_sign_in"
    " ORDER BY sequence DESC OFFSET $1 LIMIT 1)")
STATEMENT_ROW(SIGN_IN_GET,
    "SELECT digest, person, issuer, claims, created_ms, until_ms FROM taskgate_sign_in"
    " WHERE digest = $1 AND until_ms > $2")
STATEMENT_ROW(SIGN_IN_DELETE, "DELETE FROM taskgate_sign_in WHERE digest = $1")
STATEMENT_ROW(AUDIT_INSERT,
    "INSERT INTO taskgate_audit (" AUDIT_COLUMNS ", bytes) VALUES"
    " ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,"
    " $21, $22, $23, $24, $25)")
STATEMENT_ROW(AUDIT_END,
    "SELECT sequence, hash FROM ((SELECT sequence, hash FROM taskgate_audit"
    " ORDER BY sequence DESC LIMIT 1) UNION ALL"
    " (SELECT sequence, hash FROM taskgate_audit_anchor WHERE is_start <> 0"
    " ORDER BY sequence DESC LIMIT 1)) AS ends ORDER BY sequence DESC LIMIT 1")
STATEMENT_ROW(AUDIT_PAGE,
    "SELECT " AUDIT_COLUMNS " FROM taskgate_audit WHERE sequence > $1 ORDER BY sequence LIMIT $2")
STATEMENT_ROW(AUDIT_REMOVE,
    "WITH gone AS (DELETE FROM taskgate_audit WHERE sequence <= $1 RETURNING bytes)"
    " SELECT coalesce(sum(bytes), 0)::bigint FROM gone")
STATEMENT_ROW(AUDIT_REMOVE_KEPT,
    "WITH gone AS (DELETE FROM taskgate_audit_kept WHERE sequence <= $1 RETURNING arguments)"
    " SELECT coalesce(sum(octet_length(arguments)), 0)::bigint FROM gone")
STATEMENT_ROW(AUDIT_KEEP,
    "INSERT INTO taskgate_audit_kept (sequence, arguments, until_ms) VALUES ($1, $2, $3)")
STATEMENT_ROW(AUDIT_KEPT, "SELECT arguments FROM taskgate_audit_kept WHERE sequence = $1")
STATEMENT_ROW(AUDIT_START,
    "SELECT sequence, hash, at_ms, signature FROM taskgate_audit_anchor WHERE is_start <> 0"
    " ORDER BY sequence DESC LIMIT 1")
STATEMENT_ROW(ANCHOR_LAST,
    "SELECT sequence, hash, at_ms, signature FROM taskgate_audit_anchor"
    " ORDER BY sequence DESC LIMIT 1")
STATEMENT_ROW(ANCHOR_PUT,
    "INSERT INTO taskgate_audit_anchor (sequence, hash, at_ms, signature, is_start)"
    " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (sequence) DO UPDATE SET hash = excluded.hash,"
    " at_ms = excluded.at_ms, signature = excluded.signature, is_start = excluded.is_start")
STATEMENT_ROW(ANCHOR_REMOVE, "DELETE FROM taskgate_audit_anchor WHERE sequence < $1")
STATEMENT_ROW(AUDIT_LIST,
    "SELECT sequence, at_ms, task_id, event, from_state, to_state, actor_kind, actor_name, reason"
    " FROM taskgate_audit WHERE task_id = $1 ORDER BY sequence")
STATEMENT_ROW(AUDIT_HAS,
    "SELECT 1 FROM taskgate_audit WHERE task_id = $1 AND event = $2 LIMIT 1")
STATEMENT_ROW(OUTBOX_TARGET_CLEAR, "DELETE FROM taskgate_outbox_target")
STATEMENT_ROW(OUTBOX_TARGET_INSERT,
    "INSERT INTO taskgate_outbox_target (key, events, with_arguments) VALUES ($1, $2, $3)")
STATEMENT_ROW(OUTBOX_TARGETS, "SELECT events, with_arguments FROM taskgate_outbox_target")
/* The notice, and a delivery for each target. A change has bits of events; the lowest that the
 * target wants is sent. */
STATEMENT_ROW(OUTBOX_INSERT, "WITH notice AS (" OUTBOX_NOTICE_INSERT ")"
    " INSERT INTO taskgate_outbox_delivery (id, notice, target, task_id, event, attempts, due_ms)"
    " SELECT replace(gen_random_uuid()::text, '-', ''), notice.sequence, key, $1,"
    " (events & $18) & -(events & $18), 0, " DUE_UNLESS_WAITING
    " FROM taskgate_outbox_target, notice WHERE events & $18 <> 0")
STATEMENT_ROW(OUTBOX_INSERT_OTHERS, "WITH notice AS (" OUTBOX_NOTICE_INSERT ")"
    " INSERT INTO taskgate_outbox_delivery (id, notice, target, task_id, event, attempts, due_ms)"
    " SELECT replace(gen_random_uuid()::text, '-', ''), notice.sequence, key, $1, $18, 0, "
    DUE_UNLESS_WAITING " FROM taskgate_outbox_target, notice WHERE events & $18 = 0")
STATEMENT_ROW(OUTBOX_DUE,
    "SELECT delivery.sequence, delivery.id, event, attempts, " NOTICE_COLUMNS ","
    " (SELECT reference FROM taskgate_outbox_thread AS thread WHERE thread.target = delivery.target"
    " AND thread.task_id = delivery.task_id) FROM taskgate_outbox_delivery AS delivery"
    " JOIN taskgate_outbox_notice AS notice ON notice.sequence = delivery.notice"
    " WHERE target = $1 AND due_ms <= $2 AND NOT EXISTS (SELECT 1"
    " FROM taskgate_outbox_delivery AS earlier"
    " WHERE earlier.target = delivery.target AND earlier.task_id = delivery.task_id"
    " AND earlier.sequence < delivery.sequence)"
    " ORDER BY due_ms, delivery.sequence LIMIT $3")
STATEMENT_ROW(OUTBOX_NEXT,
    "SELECT min(due_ms) FROM taskgate_outbox_delivery WHERE target = $1 AND due_ms > $2")
STATEMENT_ROW(OUTBOX_OVERDUE,
    "SELECT delivery.sequence FROM taskgate_outbox_notice AS notice"
    " JOIN taskgate_outbox_delivery AS delivery ON delivery.notice = notice.sequence"
    " WHERE at_ms <= $1 ORDER BY at_ms LIMIT $2")
STATEMENT_ROW(OUTBOX_GET,
    "SELECT delivery.sequence, delivery.id, event, attempts, " NOTICE_COLUMNS
    " FROM taskgate_outbox_delivery AS delivery"
    " JOIN taskgate_outbox_notice AS notice ON notice.sequence = delivery.notice"
    " WHERE delivery.sequence = $1")
STATEMENT_ROW(OUTBOX_POSTPONE,
    "UPDATE taskgate_outbox_delivery SET attempts = attempts + 1, due_ms = $2 WHERE sequence = $1")
/* An answer to a change may tell less of the message than that to its making. */
STATEMENT_ROW(OUTBOX_THREAD_PUT,
    "INSERT INTO taskgate_outbox_thread AS thread (target, task_id, reference)"
    " SELECT target, task_id, $2 FROM taskgate_outbox_delivery AS delivery WHERE sequence = $1"
    " AND EXISTS (SELECT 1 FROM taskgate_task AS task WHERE task.id = delivery.task_id)"
    " ON CONFLICT (target, task_id) DO UPDATE SET reference = excluded.reference, seen = ''"
    " WHERE NOT starts_with(thread.reference || ' ', excluded.reference || ' ')")
STATEMENT_ROW(OUTBOX_MESSAGES,
    "SELECT target, thread.task_id, reference, seen FROM taskgate_outbox_thread AS thread"
    " JOIN taskgate_task AS task ON task.id = thread.task_id WHERE target = $1 AND state = 0"
    " ORDER BY task.sequence DESC LIMIT $2")
STATEMENT_ROW(OUTBOX_MESSAGES_OF,
    "SELECT target, task_id, reference, seen FROM taskgate_outbox_thread WHERE task_id = $1"
    " LIMIT $2")
STATEMENT_ROW(OUTBOX_SEE,
    "UPDATE taskgate_outbox_thread SET seen = $3 WHERE task_id = $1 AND target = $2")
/* No more is told of a task that has ended, or has gone. */
STATEMENT_ROW(OUTBOX_THREAD_END,
    "DELETE FROM taskgate_outbox_thread WHERE (target, task_id) IN"
    " (SELECT target, delivery.task_id FROM taskgate_outbox_delivery AS delivery"
    " JOIN taskgate_outbox_notice AS notice ON notice.sequence = delivery.notice"
    " WHERE delivery.sequence = $1 AND notice.state > 2)")
/* With its notice, where it is the last one. */
STATEMENT_ROW(OUTBOX_DELETE,
    "WITH gone AS (DELETE FROM taskgate_outbox_delivery WHERE sequence = $1 RETURNING notice)"
    " DELETE FROM taskgate_outbox_notice AS notice USING gone WHERE notice.sequence = gone.notice"
    " AND NOT EXISTS (SELECT 1 FROM taskgate_outbox_delivery AS other"
    " WHERE other.notice = gone.notice AND other.sequence <> $1)")
STATEMENT_ROW(REPLICA_JOIN,
    "INSERT INTO taskgate_replica AS known (id, epoch, alive_ms, seen_ms) VALUES ($1, 1, $2, $2)"
    " ON CONFLICT (id) DO UPDATE SET epoch = known.epoch + 1, alive_ms = excluded.alive_ms,"
    " seen_ms = excluded.seen_ms RETURNING epoch")
STATEMENT_ROW(REPLICA_BEAT,
    "UPDATE taskgate_replica SET alive_ms = $3, seen_ms = greatest(seen_ms, $3)"
    " WHERE id = $1 AND epoch = $2")
STATEMENT_ROW(REPLICA_FENCE,
    "UPDATE taskgate_replica SET epoch = epoch + 1, alive_ms = 0"
    " WHERE id <> $1 AND alive_ms > 0 AND (alive_ms < $2 OR alive_ms > $3)")
STATEMENT_ROW(CLAIM_PUT,
    "INSERT INTO taskgate_task_claim (task, replica, epoch)"
    " SELECT sequence, $2, $3 FROM taskgate_task WHERE id = $1"
    " AND EXISTS (SELECT 1 FROM taskgate_replica AS self WHERE self.id = $2 AND self.epoch = $3)"
    " ON CONFLICT (task) DO UPDATE SET replica = excluded.replica, epoch = excluded.epoch")
/* Never in the place of a claim in an epoch that goes on. */
STATEMENT_ROW(CLAIM_KEEP,
    "INSERT INTO taskgate_task_claim AS held (task, replica, epoch)"
    " SELECT sequence, $2, $3 FROM taskgate_task WHERE id = $1"
    " ON CONFLICT (task) DO UPDATE SET replica = excluded.replica, epoch = excluded.epoch"
    " WHERE NOT EXISTS (SELECT 1 FROM taskgate_replica AS r"
    " WHERE r.id = held.replica AND r.epoch = held.epoch AND r.alive_ms > 0)")
STATEMENT_ROW(CLAIM_GET,
    "SELECT claim.replica, claim.epoch FROM taskgate_task_claim AS claim"
    " JOIN taskgate_task AS task ON task.sequence = claim.task WHERE task.id = $1")
STATEMENT_ROW(TASK_HOME,
    "SELECT claim.replica, coalesce(replica.address, ''), claim.epoch, task.state,"
    " CASE WHEN replica.alive_ms > 0 AND replica.epoch = claim.epoch THEN 0 ELSE 1 END::bigint"
    " FROM taskgate_task AS task JOIN taskgate_task_claim AS claim ON claim.task = task.sequence"
    " LEFT JOIN taskgate_replica AS replica ON replica.id = claim.replica WHERE task.id = $1")
STATEMENT_ROW(CLAIM_LOST,
    "SELECT id FROM taskgate_task AS task WHERE state = 2 AND NOT EXISTS (SELECT 1"
    " FROM taskgate_task_claim AS claim JOIN taskgate_replica AS replica"
    " ON replica.id = claim.replica AND replica.epoch = claim.epoch"
    " WHERE claim.task = task.sequence AND replica.alive_ms > 0) ORDER BY sequence")
/* One that lies further ahead than twice its length was written with a clock that was ahead. */
STATEMENT_ROW(LEASE_TAKE,
    "INSERT INTO taskgate_lease AS lease (name, replica, epoch, until_ms) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (name) DO UPDATE SET replica = excluded.replica, epoch = excluded.epoch,"
    " until_ms = excluded.until_ms WHERE lease.until_ms <= $5 OR lease.replica = excluded.replica"
    " OR lease.until_ms > 2 * excluded.until_ms - $5")
STATEMENT_ROW(FEED_ADD,
    "INSERT INTO taskgate_feed (task_id, replica, created, at_ms) VALUES ($1, $2, $3, $4)")
/* The numbers are given in the order of the lists. */
STATEMENT_ROW(FEED_ADD_ALL,
    "INSERT INTO taskgate_feed (task_id, replica, created, at_ms)"
    " SELECT told.id, $2, told.created::bigint, $4"
    " FROM unnest(string_to_array($1, ','), string_to_array($3, ',')) WITH ORDINALITY"
    " AS told (id, created, place) ORDER BY told.place")
STATEMENT_ROW(FEED_END, "SELECT coalesce(max(sequence), 0) FROM taskgate_feed")
STATEMENT_ROW(FEED_READ,
    "SELECT sequence, task_id, replica, created FROM taskgate_feed WHERE sequence > $1"
    " ORDER BY sequence LIMIT $2")
STATEMENT_ROW(REPLICA_ANNOUNCE, "UPDATE taskgate_replica SET address = $2 WHERE id = $1")
STATEMENT_ROW(REPLICA_LIST,
    "SELECT id, address, epoch, alive_ms, seen_ms FROM taskgate_replica ORDER BY id")
STATEMENT_ROW(REPLICA_FORGET, "DELETE FROM taskgate_replica WHERE alive_ms = 0 AND seen_ms < $1")
STATEMENT_ROW(HOME_TAKE,
    "INSERT INTO taskgate_session_home (source, session_digest, replica, epoch, at_ms)"
    " SELECT $1::text, $2::text, $3::text, $4::bigint, $5::bigint WHERE EXISTS (SELECT 1"
    " FROM taskgate_session WHERE source = $1 AND id_digest = $2)"
    " ON CONFLICT (source, session_digest) DO UPDATE SET"
    " lost_replica = taskgate_session_home.replica, lost_epoch = taskgate_session_home.epoch,"
    " replica = excluded.replica, epoch = excluded.epoch, at_ms = excluded.at_ms"
    " WHERE NOT EXISTS (SELECT 1 FROM taskgate_replica AS r"
    " WHERE r.id = taskgate_session_home.replica AND r.epoch = taskgate_session_home.epoch"
    " AND r.alive_ms > 0) RETURNING lost_replica, lost_epoch")
STATEMENT_ROW(HOME_GET,
    "SELECT replica, epoch FROM taskgate_session_home WHERE source = $1 AND session_digest = $2")
STATEMENT_ROW(HOME_LOST_TASKS,
    "SELECT task.id FROM taskgate_task AS task JOIN taskgate_task_claim AS claim"
    " ON claim.task = task.sequence WHERE task.source = $1 AND task.session = $2"
    " AND task.session <> '' AND task.state = $3"
    " AND claim.replica = $4 AND claim.epoch = $5 ORDER BY task.sequence")
STATEMENT_ROW(HOME_DELETE,
    "DELETE FROM taskgate_session_home WHERE source = $1 AND session_digest = $2")
STATEMENT_ROW(HOLD_PUT,
    "INSERT INTO taskgate_hold (id, replica, at_ms) VALUES (1, $1, $2) ON CONFLICT (id) DO NOTHING")
STATEMENT_ROW(HOLD_COUNT, "SELECT count(*) FROM taskgate_hold")
STATEMENT_ROW(HOLD_DELETE, "DELETE FROM taskgate_hold")
STATEMENT_ROW(GRANT_ANY, "SELECT " GRANT_ANY)
/* And the notices that nobody waits for, which SQLite's triggers remove. */
OVERRIDE_ROW(STRAY_DELIVERIES_PURGE,
    "WITH gone AS (DELETE FROM {outbox_delivery} WHERE {rows} FROM {outbox_delivery} WHERE target = "
    STRAY_TARGET("{outbox_delivery}") " AND $1::bigint IS NOT NULL LIMIT $2{end}"
    " RETURNING sequence, notice),"
    " untold AS (DELETE FROM taskgate_outbox_notice AS notice WHERE sequence IN"
    " (SELECT gone.notice FROM gone) AND NOT EXISTS (SELECT 1 FROM taskgate_outbox_delivery AS other"
    " WHERE other.notice = notice.sequence AND other.sequence NOT IN (SELECT gone.sequence FROM gone)))"
    " SELECT 0::bigint FROM gone")
#include "tally_statements.h"
STATEMENT_ROW(REMINDER_INSERT,
    "INSERT INTO taskgate_reminder (task, event, due_ms)"
    " SELECT sequence, $2, $3 FROM taskgate_task WHERE id = $1")
STATEMENT_ROW(REMINDER_DUE,
    "SELECT task.id FROM taskgate_reminder AS reminder"
    " JOIN taskgate_task AS task ON task.sequence = reminder.task"
    " WHERE reminder.event = $1 AND reminder.due_ms <= $2 ORDER BY reminder.due_ms LIMIT $3")
STATEMENT_ROW(REMINDER_DELETE,
    "DELETE FROM taskgate_reminder"
    " WHERE task = (SELECT sequence FROM taskgate_task WHERE id = $1) AND event = $2")
STATEMENT_ROW(REMINDER_NEXT,
    "SELECT min(due_ms) FROM taskgate_reminder WHERE event = $1 AND due_ms > $2")
/* clang-format on */
