/*
 * The statements of all databases: STATEMENT(symbol, SQL). Included many times; no guard on
 * purpose. "?1" is a value. "{grant}" is the table of that name in the database at hand,
 * "{grant.*}" its columns, and "{grant.new}" stands after INSERT INTO: the table, its columns but
 * for the sequence, and their values; "{grant.?}" are the values. "{grant.copy}" is "{grant.new}"
 * with the sequence. "{rows}" to "{end}" are the rows of a subquery that a limit cuts. What else a
 * database says in its own words is in its dialect; a statement that it has to write differently is
 * in its own_statements.h.
 */
/* clang-format off */
#ifndef STATEMENT
#error "define STATEMENT before including this table"
#endif
/* What goes by its age: ?1 is the time, ?2 the most rows. */
STATEMENT(TASK_PURGE,
    "DELETE FROM {task} WHERE {rows} FROM {task} WHERE purge_ms <= ?1"
    " ORDER BY purge_ms LIMIT ?2{end}{and bytes}")
STATEMENT(SESSION_PURGE,
    "DELETE FROM {session} WHERE {rows} FROM {session} WHERE seen_ms < ?1"
    " ORDER BY seen_ms LIMIT ?2{end}")
STATEMENT(PAIR_PURGE,
    "DELETE FROM {pair} WHERE {rows} FROM {pair} WHERE accepted_ms < ?1"
    " ORDER BY accepted_ms LIMIT ?2{end}")
/* But for sessions that are remembered. */
STATEMENT(HOME_PURGE,
    "DELETE FROM {session_home} WHERE {rows} FROM {session_home} AS home WHERE at_ms < ?1"
    " AND (SELECT 1 FROM {session} AS session WHERE session.source = home.source"
    " AND session.id_digest = home.session_digest) IS NULL ORDER BY at_ms LIMIT ?2{end}")
STATEMENT(SIGN_IN_PURGE,
    "DELETE FROM {sign_in} WHERE {rows} FROM {sign_in} WHERE until_ms <= ?1"
    " ORDER BY until_ms LIMIT ?2{end}")
/* Of sign-ins that an older version has begun. */
STATEMENT(ATTEMPT_PURGE,
    "DELETE FROM {sign_in_attempt} WHERE {rows} FROM {sign_in_attempt} WHERE until_ms <= ?1"
    " LIMIT ?2{end}")
STATEMENT(GRANT_PURGE,
    "DELETE FROM {grant} WHERE {rows} FROM {grant} WHERE ended_ms > 0 AND ended_ms <= ?1"
    " ORDER BY ended_ms LIMIT ?2{end}")
STATEMENT(BLOCK_PURGE,
    "DELETE FROM {block} WHERE {rows} FROM {block} WHERE ended_ms > 0 AND ended_ms <= ?1"
    " ORDER BY ended_ms LIMIT ?2{end}")
STATEMENT(TALLY_PURGE,
    "DELETE FROM {tally} WHERE {rows} FROM {tally} WHERE day_ms <= ?1 ORDER BY day_ms LIMIT ?2{end}")
STATEMENT(AUDIT_FORGET,
    "DELETE FROM {audit_kept} WHERE {rows} FROM {audit_kept} WHERE until_ms <= ?1"
    " ORDER BY until_ms LIMIT ?2{end}{and argument bytes}")
/* Its retention is an hour. Rows further ahead were written with a clock that was ahead. */
STATEMENT(FEED_PURGE,
    "DELETE FROM {feed} WHERE {rows} FROM {feed} WHERE sequence < (SELECT max(sequence) FROM {feed})"
    " ORDER BY sequence LIMIT ?2{end} AND (at_ms < ?1 OR at_ms > ?1 + 7200000)")
/* Of one of the targets that are no longer configured, whatever their age: a look at the index for
 * each target. */
#define STRAY_TARGET(table)                                                                        \
    "(WITH RECURSIVE place (target) AS (SELECT min(target) FROM " table                            \
    " UNION ALL SELECT (SELECT min(target) FROM " table                                            \
    " AS next WHERE next.target > place.target) FROM place WHERE place.target IS NOT NULL)"        \
    " SELECT target FROM place WHERE target IS NOT NULL"                                           \
    " AND target NOT IN (SELECT key FROM {outbox_target}) LIMIT 1)"
STATEMENT(STRAY_DELIVERIES_PURGE,
    "DELETE FROM {outbox_delivery} WHERE {rows} FROM {outbox_delivery} WHERE target = "
    STRAY_TARGET("{outbox_delivery}") " AND CAST(?1 AS BIGINT) IS NOT NULL LIMIT ?2{end}")
/* The references to what such a target was notified of. */
STATEMENT(STRAY_MESSAGES_PURGE,
    "DELETE FROM {outbox_thread} WHERE {rows} FROM {outbox_thread} WHERE target = "
    STRAY_TARGET("{outbox_thread}") " AND CAST(?1 AS BIGINT) IS NOT NULL LIMIT ?2{end}")
STATEMENT(GRANT_INSERT, "INSERT INTO {grant.new}")
STATEMENT(GRANT_OF_TOOL,
    "SELECT {grant_list.*} FROM {grant} WHERE owner = ?1 AND source = ?2 AND tool = ?3 AND ended_ms = 0"
    " ORDER BY sequence")
STATEMENT(GRANT_GET, "SELECT {grant.*} FROM {grant} WHERE id = ?1")
STATEMENT(GRANT_ACTIVE, "SELECT {grant_list.*} FROM {grant} WHERE ended_ms = 0 ORDER BY sequence")
STATEMENT(GRANT_DUE,
    "SELECT {grant_list.*} FROM {grant} WHERE ended_ms = 0 AND until_ms <= ?1 ORDER BY until_ms LIMIT ?2")
STATEMENT(GRANT_NEXT_END, "SELECT min(until_ms) FROM {grant} WHERE ended_ms = 0")
STATEMENT(GRANT_COUNT, "SELECT count(*) FROM {grant} WHERE ended_ms = 0")
/* The newest first. */
STATEMENT(GRANT_PAGE,
    "SELECT {grant.*} FROM {grant} WHERE sequence < ?1 ORDER BY sequence DESC LIMIT ?2")
STATEMENT(GRANT_PAGE_ACTIVE,
    "SELECT {grant.*} FROM {grant} WHERE ended_ms = 0 AND sequence < ?1"
    " ORDER BY sequence DESC LIMIT ?2")
/* No row changes unless the grant is in force and has a call left. */
STATEMENT(GRANT_USE,
    "UPDATE {grant} SET used = used + 1 WHERE id = ?1 AND ended_ms = 0 AND used < calls")
STATEMENT(GRANT_END,
    "UPDATE {grant} SET ended_ms = ?2, end_cause = ?3, ended_by = ?4, end_reason = ?5"
    " WHERE id = ?1 AND ended_ms = 0")
STATEMENT(BLOCK_INSERT, "INSERT INTO {block.new}")
STATEMENT(BLOCK_GET, "SELECT {block.*} FROM {block} WHERE id = ?1")
STATEMENT(BLOCK_ACTIVE, "SELECT {block.*} FROM {block} WHERE ended_ms = 0 ORDER BY sequence")
/* The newest first. */
STATEMENT(BLOCK_PAGE,
    "SELECT {block.*} FROM {block} WHERE sequence < ?1 AND (?2 = 0 OR ended_ms = 0)"
    " ORDER BY sequence DESC LIMIT ?3")
STATEMENT(BLOCK_END, "UPDATE {block} SET ended_ms = ?2, ended_by = ?3 WHERE id = ?1 AND ended_ms = 0")
/* The undecided and approved tasks of the callers that it is about. */
STATEMENT(BLOCK_TASKS,
    "SELECT id FROM {task} WHERE state IN (0, 1) AND CASE ?1 WHEN 'owner' THEN owner = ?2"
    " WHEN 'client' THEN source = ?3 AND client_name = ?4 ELSE source = ?3 END ORDER BY sequence")
STATEMENT(DEFINITION_INSERT, "INSERT INTO {definition.new}")
STATEMENT(DEFINITION_UPDATE,
    "UPDATE {definition} SET digest = ?2, accepted = ?3, counted = ?4, difference = ?5, flags = ?6,"
    " is_changed = ?7, at_ms = ?8, text = ?9, accepted_text = ?10 WHERE id = ?1")
STATEMENT(DEFINITION_GET, "SELECT {definition.*} FROM {definition} WHERE id = ?1")
STATEMENT(DEFINITION_PAGE,
    "SELECT {definition_list.*} FROM {definition} WHERE sequence > ?1 AND (?2 = '' OR source = ?2)"
    " AND (?3 = '' OR kind = ?3) AND is_changed >= ?4 AND (?5 = 0 OR flags <> 0)"
    " AND (?7 = '' OR name = ?7) ORDER BY sequence LIMIT ?6")
STATEMENT(DEFINITION_PAGE_WATCHED,
    "SELECT {definition_list.*} FROM {definition} WHERE (is_changed <> 0 OR flags <> 0)"
    " AND sequence > ?1 AND (?2 = '' OR source = ?2) AND (?3 = '' OR kind = ?3)"
    " AND is_changed >= ?4 AND (?5 = 0 OR flags <> 0) AND (?7 = '' OR name = ?7)"
    " ORDER BY sequence LIMIT ?6")
STATEMENT(DEFINITION_COUNT, "SELECT count(*) FROM {definition} WHERE source = ?1")
/* A write for its own sake: whether a database that has failed works again. */
STATEMENT(PROBE,
    "INSERT INTO {probe} (id, at_ms) VALUES (1, ?1)"
    " ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms")
STATEMENT(SESSION_PUT,
    "INSERT INTO {session.new} ON CONFLICT (source, id_digest) DO UPDATE SET"
    " version = excluded.version, client_name = excluded.client_name,"
    " client_version = excluded.client_version,"
    " client_capabilities = excluded.client_capabilities,"
    " upstream_tasks = excluded.upstream_tasks, upstream_sse = excluded.upstream_sse,"
    " seen_ms = excluded.seen_ms, owner = excluded.owner")
STATEMENT(SESSION_SEEN,
    "UPDATE {session} SET seen_ms = ?3 WHERE source = ?1 AND id_digest = ?2 AND seen_ms < ?3")
/* Those after the latest ?2 (?1) ones, of which some go at a time. */
STATEMENT(SESSION_DROP_OF_OWNER,
    "{with homes}DELETE FROM {session} WHERE {rows} FROM {session} WHERE owner = ?1"
    " ORDER BY seen_ms DESC LIMIT 500 OFFSET ?2{end}{their homes}")
STATEMENT(SESSION_DROP_OLDEST,
    "{with homes}DELETE FROM {session} WHERE {rows} FROM {session}"
    " ORDER BY seen_ms DESC LIMIT 500 OFFSET ?1{end}{their homes}")
STATEMENT(SESSION_GET, "SELECT {session.*} FROM {session} WHERE source = ?1 AND id_digest = ?2")
STATEMENT(SESSION_DELETE, "DELETE FROM {session} WHERE source = ?1 AND id_digest = ?2")
STATEMENT(PAIR_PUT,
    "INSERT INTO {pair} AS known ({pair.*}) VALUES ({pair.?}) ON CONFLICT (source, session_digest, token_digest)"
    " DO UPDATE SET accepted_ms = {greatest}(known.accepted_ms, excluded.accepted_ms)")
STATEMENT(PAIR_GET,
    "SELECT 1 FROM {pair} WHERE source = ?1 AND session_digest = ?2 AND token_digest = ?3")
STATEMENT(PAIR_DELETE, "DELETE FROM {pair} WHERE source = ?1 AND session_digest = ?2")
STATEMENT(PAIR_DROP_OLDEST,
    "DELETE FROM {pair} WHERE {rows} FROM {pair} ORDER BY accepted_ms DESC LIMIT 500 OFFSET ?1{end}")
STATEMENT(SIGN_IN_PUT, "INSERT INTO {sign_in.new}")
/* Numbers may have gaps: rows are counted. */
STATEMENT(SIGN_IN_DROP_OLDEST,
    "DELETE FROM {sign_in} WHERE sequence <= (SELECT sequence FROM {sign_in}"
    " ORDER BY sequence DESC LIMIT 1 OFFSET ?1)")
STATEMENT(SIGN_IN_GET, "SELECT {sign_in.*} FROM {sign_in} WHERE digest = ?1 AND until_ms > ?2")
STATEMENT(SIGN_IN_DELETE, "DELETE FROM {sign_in} WHERE digest = ?1")
STATEMENT(REPLICA_JOIN,
    "INSERT INTO {replica} AS known (id, epoch, alive_ms, seen_ms) VALUES (?1, 1, ?2, ?2)"
    " ON CONFLICT (id) DO UPDATE SET epoch = known.epoch + 1, alive_ms = excluded.alive_ms,"
    " seen_ms = excluded.seen_ms RETURNING epoch")
STATEMENT(REPLICA_BEAT,
    "UPDATE {replica} SET alive_ms = ?3, seen_ms = {greatest}(seen_ms, ?3)"
    " WHERE id = ?1 AND epoch = ?2")
STATEMENT(REPLICA_FENCE,
    "UPDATE {replica} SET epoch = epoch + 1, alive_ms = 0"
    " WHERE id <> ?1 AND alive_ms > 0 AND (alive_ms < ?2 OR alive_ms > ?3)")
/* The task is executed by this replica. No row changes where its epoch is over. */
STATEMENT(CLAIM_PUT,
    "INSERT INTO {task_claim} (task, replica, epoch) SELECT sequence, ?2, ?3 FROM {task}"
    " WHERE id = ?1"
    " AND EXISTS (SELECT 1 FROM {replica} AS self WHERE self.id = ?2 AND self.epoch = ?3)"
    " ON CONFLICT (task) DO UPDATE SET replica = excluded.replica, epoch = excluded.epoch")
/* Never in the place of a claim in an epoch that goes on. */
STATEMENT(CLAIM_KEEP,
    "INSERT INTO {task_claim} AS held (task, replica, epoch)"
    " SELECT sequence, ?2, ?3 FROM {task} WHERE id = ?1"
    " ON CONFLICT (task) DO UPDATE SET replica = excluded.replica, epoch = excluded.epoch"
    " WHERE NOT EXISTS (SELECT 1 FROM {replica} AS r"
    " WHERE r.id = held.replica AND r.epoch = held.epoch AND r.alive_ms > 0)")
STATEMENT(CLAIM_GET,
    "SELECT claim.replica, claim.epoch FROM {task_claim} AS claim"
    " JOIN {task} AS task ON task.sequence = claim.task WHERE task.id = ?1")
STATEMENT(TASK_HOME,
    "SELECT claim.replica, coalesce(replica.address, ''), claim.epoch, task.state,"
    " CASE WHEN replica.alive_ms > 0 AND replica.epoch = claim.epoch THEN 0 ELSE 1 END"
    " FROM {task} AS task JOIN {task_claim} AS claim ON claim.task = task.sequence"
    " LEFT JOIN {replica} AS replica ON replica.id = claim.replica WHERE task.id = ?1")
/* The executing tasks that no replica holds in an epoch that goes on. */
STATEMENT(CLAIM_LOST,
    "SELECT id FROM {task} AS task WHERE state = 2 AND NOT EXISTS (SELECT 1"
    " FROM {task_claim} AS claim JOIN {replica} AS replica"
    " ON replica.id = claim.replica AND replica.epoch = claim.epoch"
    " WHERE claim.task = task.sequence AND replica.alive_ms > 0) ORDER BY sequence")
/* Takes or prolongs a lease. No row changes where another replica holds it. One that lies further
 * ahead than twice its length was written with a clock that was ahead. */
STATEMENT(LEASE_TAKE,
    "INSERT INTO {lease} AS lease (name, replica, epoch, until_ms) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (name) DO UPDATE SET replica = excluded.replica, epoch = excluded.epoch,"
    " until_ms = excluded.until_ms WHERE lease.until_ms <= ?5 OR lease.replica = excluded.replica"
    " OR lease.until_ms > 2 * excluded.until_ms - ?5")
STATEMENT(FEED_ADD,
    "INSERT INTO {feed} (task_id, replica, created, at_ms) VALUES (?1, ?2, ?3, ?4)")
STATEMENT(FEED_END, "SELECT coalesce(max(sequence), 0) FROM {feed}")
STATEMENT(FEED_READ,
    "SELECT sequence, task_id, replica, created FROM {feed} WHERE sequence > ?1"
    " ORDER BY sequence LIMIT ?2")
/* Publishes the replica's address for the others; "": it has none. It stays over its epochs. */
STATEMENT(REPLICA_ANNOUNCE, "UPDATE {replica} SET address = ?2 WHERE id = ?1")
STATEMENT(REPLICA_LIST, "SELECT id, address, epoch, alive_ms, seen_ms FROM {replica} ORDER BY id")
/* Those whose epoch has ended and that were seen last before. */
STATEMENT(REPLICA_FORGET, "DELETE FROM {replica} WHERE alive_ms = 0 AND seen_ms < ?1")
STATEMENT(HOME_TAKE,
    "INSERT INTO {session_home} AS home (source, session_digest, replica, epoch, at_ms)"
    " SELECT CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS TEXT), CAST(?4 AS BIGINT),"
    " CAST(?5 AS BIGINT) WHERE EXISTS (SELECT 1 FROM {session}"
    " WHERE source = ?1 AND id_digest = ?2)"
    " ON CONFLICT (source, session_digest) DO UPDATE SET"
    " lost_replica = home.replica, lost_epoch = home.epoch, replica = excluded.replica,"
    " epoch = excluded.epoch, at_ms = excluded.at_ms WHERE NOT EXISTS (SELECT 1"
    " FROM {replica} AS r WHERE r.id = home.replica AND r.epoch = home.epoch AND r.alive_ms > 0)"
    " RETURNING lost_replica, lost_epoch")
STATEMENT(HOME_GET,
    "SELECT replica, epoch FROM {session_home} WHERE source = ?1 AND session_digest = ?2")
/* The tasks of the session that a replica has claimed in this epoch and that are failed. */
STATEMENT(HOME_LOST_TASKS,
    "SELECT task.id FROM {task} AS task JOIN {task_claim} AS claim ON claim.task = task.sequence"
    " WHERE task.source = ?1 AND task.session = ?2 AND task.session <> '' AND task.state = ?3"
    " AND claim.replica = ?4 AND claim.epoch = ?5 ORDER BY task.sequence")
STATEMENT(HOME_DELETE, "DELETE FROM {session_home} WHERE source = ?1 AND session_digest = ?2")
/* Says for all replicas that commits are missing. */
STATEMENT(HOLD_PUT,
    "INSERT INTO {hold} (id, replica, at_ms) VALUES (1, ?1, ?2) ON CONFLICT (id) DO NOTHING")
STATEMENT(HOLD_COUNT, "SELECT count(*) FROM {hold}")
STATEMENT(HOLD_DELETE, "DELETE FROM {hold}")
/* To a day of the owner ?3, ?10 times, and to that of ?9. */
STATEMENT(TALLY_ADD,
    "INSERT INTO {tally} AS counted ({tally.*}) VALUES (?1, ?2, ?9, ?4, ?5, ?6, ?7, ?8), (?1, ?2, ?3, ?4, CAST(?10 AS BIGINT) * ?5,"
    " CAST(?10 AS BIGINT) * ?6, CAST(?10 AS BIGINT) * ?7, CAST(?10 AS BIGINT) * ?8)"
    " ON CONFLICT (source, tool, owner, day_ms) DO UPDATE SET"
    " approved = counted.approved + excluded.approved,"
    " rejected = counted.rejected + excluded.rejected,"
    " expired = counted.expired + excluded.expired, failed = counted.failed + excluded.failed")
STATEMENT(TALLY_READ,
    "SELECT CAST(coalesce(sum(approved), 0) AS BIGINT), CAST(coalesce(sum(rejected), 0) AS BIGINT),"
    " CAST(coalesce(sum(expired), 0) AS BIGINT), CAST(coalesce(sum(failed), 0) AS BIGINT)"
    " FROM {tally} WHERE source = ?1 AND tool = ?2 AND owner = ?3 AND day_ms >= ?4")
/* The last decision by a person about another task than ?3. */
STATEMENT(TALLY_LAST,
    "SELECT event, at_ms, person, reason FROM {audit} WHERE source = ?1 AND tool = ?2"
    " AND event IN ('approve', 'reject') AND person <> '' AND task_id <> ?3"
    " ORDER BY sequence DESC LIMIT 1")
/* Approvals of other tasks with the arguments of ?5. */
STATEMENT(TALLY_SAME,
    "SELECT count(*), coalesce(max(at_ms), 0) FROM (SELECT at_ms FROM {audit}"
    " WHERE event = 'approve' AND arguments_digest = ?1 AND source = ?2 AND tool = ?3"
    " AND at_ms >= ?4 AND task_id <> ?5 ORDER BY at_ms DESC LIMIT ?6) AS same")
STATEMENT(REMINDER_INSERT,
    "INSERT INTO {reminder} (task, event, due_ms) SELECT sequence, ?2, ?3 FROM {task} WHERE id = ?1")
STATEMENT(REMINDER_DUE,
    "SELECT task.id FROM {reminder} AS reminder JOIN {task} AS task ON task.sequence = reminder.task"
    " WHERE reminder.event = ?1 AND reminder.due_ms <= ?2 ORDER BY reminder.due_ms LIMIT ?3")
STATEMENT(REMINDER_DELETE,
    "DELETE FROM {reminder} WHERE task = (SELECT sequence FROM {task} WHERE id = ?1) AND event = ?2")
STATEMENT(REMINDER_NEXT, "SELECT min(due_ms) FROM {reminder} WHERE event = ?1 AND due_ms > ?2")
STATEMENT(AUDIT_INSERT, "INSERT INTO {audit.new}")
/* If all rows are gone, the chain goes on from an anchor. */
STATEMENT(AUDIT_END,
    "SELECT sequence, hash FROM (SELECT sequence, hash FROM {audit}"
    " ORDER BY sequence DESC LIMIT 1) AS trail UNION ALL"
    " SELECT sequence, hash FROM (SELECT sequence, hash FROM {audit_anchor} WHERE {is start}"
    " ORDER BY sequence DESC LIMIT 1) AS start ORDER BY sequence DESC LIMIT 1")
STATEMENT(AUDIT_PAGE,
    "SELECT {audit.*} FROM {audit} WHERE sequence > ?1 ORDER BY sequence LIMIT ?2")
/* The rows up to this one, what is kept of them, and the anchors before it. */
STATEMENT(AUDIT_REMOVE, "DELETE FROM {audit} WHERE sequence <= ?1{and bytes}")
STATEMENT(AUDIT_REMOVE_KEPT, "DELETE FROM {audit_kept} WHERE sequence <= ?1{and argument bytes}")
STATEMENT(ANCHOR_REMOVE, "DELETE FROM {audit_anchor} WHERE sequence < ?1")
STATEMENT(AUDIT_KEEP, "INSERT INTO {audit_kept.new}")
STATEMENT(AUDIT_KEPT, "SELECT arguments FROM {audit_kept} WHERE sequence = ?1")
STATEMENT(ANCHOR_START,
    "SELECT sequence, hash, at_ms, signature FROM {audit_anchor} WHERE {is start}"
    " ORDER BY sequence DESC LIMIT 1")
STATEMENT(ANCHOR_LAST,
    "SELECT sequence, hash, at_ms, signature FROM {audit_anchor} ORDER BY sequence DESC LIMIT 1")
STATEMENT(ANCHOR_PUT,
    "INSERT INTO {audit_anchor.new} ON CONFLICT (sequence) DO UPDATE SET hash = excluded.hash,"
    " at_ms = excluded.at_ms, signature = excluded.signature, is_start = excluded.is_start")
STATEMENT(AUDIT_LIST, "SELECT {audit_entry.*} FROM {audit} WHERE task_id = ?1 ORDER BY sequence")
STATEMENT(AUDIT_HAS, "SELECT 1 FROM {audit} WHERE task_id = ?1 AND event = ?2 LIMIT 1")
/* What commands read beside the gateway. */
STATEMENT(AUDIT_SINCE, "SELECT sequence FROM {audit} WHERE at_ms >= ?1 ORDER BY sequence LIMIT 1")
/* The largest number that a row was given. No row: the database does not count them. */
STATEMENT(AUDIT_LAST_GIVEN, "SELECT 0 WHERE 1 = 0")
STATEMENT(AUDIT_ALL_KEPT,
    "SELECT sequence, kept_digest, kept.arguments FROM {audit_kept} AS kept"
    " JOIN {audit} AS audit USING (sequence) WHERE sequence > ?1 ORDER BY sequence LIMIT ?2")
STATEMENT(HISTORY_CALLS,
    "SELECT audit.sequence, audit.at_ms, audit.task_id, audit.decision,"
    " CASE WHEN task.is_redacted = 0 THEN task.arguments END FROM {audit} AS audit"
    " LEFT JOIN {task} AS task ON task.id = audit.task_id"
    " WHERE audit.event = 'create' AND audit.at_ms >= ?3 AND audit.sequence > ?1"
    " ORDER BY audit.sequence LIMIT ?2")
STATEMENT(OUTBOX_TARGET_CLEAR, "DELETE FROM {outbox_target}")
STATEMENT(OUTBOX_TARGET_INSERT, "INSERT INTO {outbox_target.new}")
STATEMENT(OUTBOX_TARGETS, "SELECT events, with_arguments FROM {outbox_target}")
STATEMENT(OUTBOX_NOTICE_INSERT, "INSERT INTO {outbox_notice.new}")
/* A delivery of the notice that was inserted last, which nobody else does meanwhile, for each
 * target. A change has bits of events; the lowest that the target wants is sent. It is never due
 * while an earlier one of its task waits. */
#define DELIVERY_INSERT(event, whom)                                                               \
    "INSERT INTO {outbox_delivery} (id, notice, target, task_id, event, attempts, due_ms)"         \
    " SELECT {random id}, (SELECT max(sequence) FROM {outbox_notice}), key, CAST(?2 AS TEXT),"     \
    " " event ", 0, CASE WHEN EXISTS (SELECT 1 FROM {outbox_delivery} AS earlier"                  \
    " WHERE earlier.target = key AND earlier.task_id = ?2) THEN 9223372036854775807 ELSE ?3 END"   \
    " FROM {outbox_target} WHERE " whom
STATEMENT(OUTBOX_DELIVERY_INSERT,
    DELIVERY_INSERT("(events & ?1) & -(events & ?1)", "(events & ?1) <> 0"))
/* To those that do not want it. */
STATEMENT(OUTBOX_DELIVERY_TO_OTHERS,
    DELIVERY_INSERT("CAST(?1 AS BIGINT)", "(events & CAST(?1 AS BIGINT)) = 0"))
/* What a notice takes from its task. It is NULL if the task has gone; some of it, too, if the notice
 * is without arguments. */
#define OF_NOTICED_TASK(column) "(SELECT " column " FROM {told} WHERE told.id = notice.task_id)"
#define WITH_ARGUMENTS(column) "CASE WHEN notice.arguments <> '' THEN " OF_NOTICED_TASK(column) " END"
#define DELIVERY_COLUMNS                                                                           \
    "delivery.sequence, delivery.id, delivery.event, delivery.attempts, notice.at_ms,"             \
    " notice.task_id, notice.state, notice.source, notice.tool, notice.workflow,"                  \
    " notice.principal, notice.arguments_digest, notice.decided_by, notice.reason,"                \
    " notice.status_message, notice.arguments, notice.created_ms, notice.decide_by_ms,"            \
    " notice.decided_ms, notice.is_emergency, notice.anchor, " OF_NOTICED_TASK("shown") ", "       \
    OF_NOTICED_TASK("terms") ", " OF_NOTICED_TASK("votes") ", " WITH_ARGUMENTS("meta") ", "        \
    WITH_ARGUMENTS("other_params") ", " OF_NOTICED_TASK("request_digest") ", "                     \
    OF_NOTICED_TASK("owner")
/* Longest due first, without those that wait for an earlier one of their task. */
STATEMENT(OUTBOX_DUE,
    "SELECT " DELIVERY_COLUMNS ", (SELECT reference FROM {outbox_thread} AS thread"
    " WHERE thread.target = delivery.target AND thread.task_id = delivery.task_id)"
    " FROM {outbox_delivery} AS delivery"
    " JOIN {outbox_notice} AS notice ON notice.sequence = delivery.notice"
    " WHERE target = ?1 AND due_ms <= ?2 AND NOT EXISTS (SELECT 1"
    " FROM {outbox_delivery} AS earlier"
    " WHERE earlier.target = delivery.target AND earlier.task_id = delivery.task_id"
    " AND earlier.sequence < delivery.sequence)"
    " ORDER BY due_ms, delivery.sequence LIMIT ?3")
STATEMENT(OUTBOX_NEXT,
    "SELECT min(due_ms) FROM {outbox_delivery} WHERE target = ?1 AND due_ms > ?2")
/* Of notices that are not younger, the oldest first. */
STATEMENT(OUTBOX_OVERDUE,
    "SELECT delivery.sequence FROM {outbox_notice} AS notice"
    " {then join} {outbox_delivery} AS delivery ON delivery.notice = notice.sequence"
    " WHERE at_ms <= ?1 ORDER BY at_ms LIMIT ?2")
STATEMENT(OUTBOX_GET,
    "SELECT " DELIVERY_COLUMNS ", NULL FROM {outbox_delivery} AS delivery"
    " JOIN {outbox_notice} AS notice ON notice.sequence = delivery.notice"
    " WHERE delivery.sequence = ?1")
STATEMENT(OUTBOX_POSTPONE,
    "UPDATE {outbox_delivery} SET attempts = attempts + 1, due_ms = ?2 WHERE sequence = ?1")
/* An answer to a change may tell less of the message than that to its making. */
STATEMENT(OUTBOX_THREAD_PUT,
    "INSERT INTO {outbox_thread} AS thread (target, task_id, reference)"
    " SELECT target, task_id, ?2 FROM {outbox_delivery} AS delivery WHERE sequence = ?1"
    " AND EXISTS (SELECT 1 FROM {task} AS task WHERE task.id = delivery.task_id)"
    " ON CONFLICT (target, task_id) DO UPDATE SET reference = excluded.reference, seen = ''"
    " WHERE substr(thread.reference || ' ', 1, length(excluded.reference) + 1)"
    " <> excluded.reference || ' '")
STATEMENT(OUTBOX_MESSAGES,
    "SELECT target, thread.task_id, reference, seen FROM {outbox_thread} AS thread"
    " JOIN {task} AS task ON task.id = thread.task_id WHERE target = ?1 AND state = 0"
    " ORDER BY task.sequence DESC LIMIT ?2")
STATEMENT(OUTBOX_MESSAGES_OF,
    "SELECT {outbox_thread.*} FROM {outbox_thread} WHERE task_id = ?1 LIMIT ?2")
/* Notes the reactions seen on such a message. */
STATEMENT(OUTBOX_SEE, "UPDATE {outbox_thread} SET seen = ?3 WHERE task_id = ?1 AND target = ?2")
/* Nobody is notified of a task any more that has ended, or has gone. */
STATEMENT(OUTBOX_THREAD_END,
    "DELETE FROM {outbox_thread} WHERE (target, task_id) IN"
    " (SELECT target, delivery.task_id FROM {outbox_delivery} AS delivery"
    " JOIN {outbox_notice} AS notice ON notice.sequence = delivery.notice"
    " WHERE delivery.sequence = ?1 AND notice.state > 2)")
STATEMENT(OUTBOX_DELETE, "DELETE FROM {outbox_delivery} WHERE sequence = ?1")
/* Times, bytes, the columns of a task, and its bulk; then the replica that it lives with, or "". */
STATEMENT(TASK_INSERT, "INSERT INTO {task} ({task_whole.*}) VALUES ({task_whole.?})")
STATEMENT(TASK_GET,
    "SELECT sequence, {task.*}, arguments, meta, other_params, original_arguments, shown,"
    " {body}, {outcome body}, mirrored_headers FROM {whole task} WHERE task.id = ?1")
/* Compare-and-set: no row changes unless the task is still in the state it was read in. */
STATEMENT(TASK_MOVE,
    "UPDATE {task} SET state = ?3, updated_ms = ?4, execute_by_ms = ?5, decided_ms = ?6,"
    " ended_ms = ?7, decided_by = ?8, reason = ?9, status_message = ?10, upstream_task = ?11,"
    " failure = ?12, outcome = ?13, deadline_ms = ?14, purge_ms = ?15, refused_credentials = ?16,"
    " started_ms = ?17, brief = '' WHERE id = ?1 AND state = ?2")
/* ?3: its bytes. */
STATEMENT(TASK_SET_OUTCOME,
    "UPDATE {task} SET outcome_body = ?2, bytes = bytes + ?3 WHERE id = ?1")
STATEMENT(TASK_SET_VOTES, "UPDATE {task} SET votes = ?2, updated_ms = ?3 WHERE id = ?1")
STATEMENT(TASK_SET_GRANT, "UPDATE {task} SET grant_facts = ?2 WHERE id = ?1")
STATEMENT(TASK_SET_UPSTREAM, "UPDATE {task} SET upstream_task = ?2 WHERE id = ?1")
STATEMENT(TASK_SET_MESSAGE, "UPDATE {task} SET status_message = ?2 WHERE id = ?1")
STATEMENT(TASK_SET_REACH,
    "UPDATE {task} SET owner = ?2, promised = ?3, on_result = ?4 WHERE id = ?1")
STATEMENT(TASK_EDIT,
    "UPDATE {task} SET arguments_digest = ?2, request_digest = ?3, original_digest = ?4,"
    " original_request_digest = ?5 WHERE id = ?1 AND state = 0")
STATEMENT(REQUEST_EDIT,
    "UPDATE {task_request} SET arguments = ?2, original_arguments = ?3, body = ?4 WHERE {of task}")
/* ?7: the bytes that go. */
STATEMENT(REQUEST_END,
    "UPDATE {task_request} SET body = {no bytes}, mirrored_headers = '', arguments = ?2, meta = ?3,"
    " other_params = ?4, {redacted} = ?5, original_arguments = ?6{less bytes} WHERE {of task}")
/* Those with a deadline that has passed, the oldest first. */
STATEMENT(TASK_DUE, "SELECT id FROM {task} WHERE deadline_ms <= ?1 ORDER BY deadline_ms LIMIT ?2")
STATEMENT(TASK_NEXT_DEADLINE, "SELECT min(deadline_ms) FROM {task} WHERE deadline_ms > ?1")
/* Of an owner at a source: the undecided, the promoted and the promised ones that run. */
STATEMENT(TASK_OF_SESSION,
    "SELECT id FROM {task} WHERE owner = ?1 AND state IN (0, 1, 2) AND source = ?2"
    " AND (state < 2 OR promoted <> 0 OR promised <> 0) ORDER BY sequence")
STATEMENT(TASK_HAND_OVER_ENDED,
    "UPDATE {task} SET owner = ?3 WHERE {rows} FROM {task} WHERE owner = ?1 AND state > 2"
    " AND source = ?2 AND promised <> 0 LIMIT ?4{end}"
    " RETURNING tool, state, CASE WHEN execute_by_ms > 0 THEN decided_ms ELSE 0 END, ended_ms")
/* The last one is `shown`, of which the risk is read for a call without a brief, as an earlier
 * version stored it; '' for the others, because it may be long. */
STATEMENT(TASK_WAITING,
    "SELECT sequence, {task_waiting.*}, CASE WHEN brief = '' THEN {shown} ELSE '' END"
    " FROM {task} AS task WHERE state = 0"
    " AND (?1 = '' OR source = ?1) AND (?2 = '' OR tool = ?2) AND (?3 = '' OR workflow = ?3)"
    " AND (?4 = '' OR principal = ?4)")
/* And are not due. */
STATEMENT(TASK_WAITING_COUNT,
    "SELECT count(*) FROM {task} WHERE state = 0 AND {decide by} > ?1")
/* Of the undecided tasks of each workflow: since when the oldest waits, and the largest share of its
 * time that one has used, in millionths (beyond 0 to 1,000,000 where a clock leapt). */
STATEMENT(TASK_WAITS,
    "SELECT workflow, min(created_ms),"
    " max((?1 - created_ms) * 1000000 / {greatest}(decide_by_ms - created_ms, 1))"
    " FROM {task} WHERE state = 0 GROUP BY workflow")
STATEMENT(LIMITED_COUNT,
    "SELECT coalesce((SELECT tasks FROM {limited} WHERE owner = ?1), 0),"
    " coalesce((SELECT bytes FROM {limited} WHERE owner = ?1), 0),"
    " coalesce((SELECT tasks FROM {limited} WHERE owner = ''), 0),"
    " coalesce((SELECT pending FROM {limited} WHERE owner = ''), 0)")
STATEMENT(LIMITED_ADD,
    "INSERT INTO {limited} AS counted (owner, tasks, pending, bytes) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (owner) DO UPDATE SET tasks = counted.tasks + excluded.tasks,"
    " pending = counted.pending + excluded.pending, bytes = counted.bytes + excluded.bytes")
/* The counts of owners without such tasks. */
STATEMENT(LIMITED_PURGE, "DELETE FROM {limited} WHERE tasks = 0 AND pending = 0 AND owner <> ''")
/* Rows of another database, as they are there. */
STATEMENT(GRANT_COPY, "INSERT INTO {grant.copy}")
STATEMENT(BLOCK_COPY, "INSERT INTO {block.copy}")
STATEMENT(DEFINITION_COPY, "INSERT INTO {definition.copy}")
STATEMENT(TALLY_COPY, "INSERT INTO {tally.new}")
STATEMENT(OUTBOX_NOTICE_COPY, "INSERT INTO {outbox_notice.copy}")
STATEMENT(OUTBOX_DELIVERY_COPY, "INSERT INTO {outbox_delivery.copy}")
STATEMENT(OUTBOX_THREAD_COPY, "INSERT INTO {outbox_thread.new}")
STATEMENT(REMINDER_ALL,
    "SELECT task.id, reminder.event, reminder.due_ms FROM {reminder} AS reminder"
    " JOIN {task} AS task ON task.sequence = reminder.task")
/* Rows written after a copy get numbers after those that were copied. */
STATEMENT(COPY_END, "SELECT 0")
/* clang-format on */
