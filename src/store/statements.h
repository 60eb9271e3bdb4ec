/*
 * The statements of all databases: STATEMENT(symbol, SQL). Included many times; no guard on
 * purpose. "?1" is a value. "{grant}" is the table of that name in the database at hand,
 * "{grant.*}" its columns, and "{grant.new}" stands after INSERT INTO: the table, its columns but
 * for the sequence, and their values. "{rows}" to "{end}" are the rows of a subquery that a limit
 * cuts. What else a database says in its own words is in its dialect; a statement that it has to
 * write differently is in its overrides.h.
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
    "SELECT {grant.*} FROM {grant} WHERE owner = ?1 AND source = ?2 AND tool = ?3 AND ended_ms = 0"
    " ORDER BY sequence")
STATEMENT(GRANT_GET, "SELECT {grant.*} FROM {grant} WHERE id = ?1")
STATEMENT(GRANT_ACTIVE, "SELECT {grant.*} FROM {grant} WHERE ended_ms = 0 ORDER BY sequence")
STATEMENT(GRANT_DUE,
    "SELECT {grant.*} FROM {grant} WHERE ended_ms = 0 AND until_ms <= ?1 ORDER BY until_ms LIMIT ?2")
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
    "INSERT INTO {pair} AS known (source, session_digest, token_digest, accepted_ms)"
    " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (source, session_digest, token_digest)"
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
    "INSERT INTO {tally} AS counted"
    " (source, tool, owner, day_ms, approved, rejected, expired, failed)"
    " VALUES (?1, ?2, ?9, ?4, ?5, ?6, ?7, ?8), (?1, ?2, ?3, ?4, CAST(?10 AS BIGINT) * ?5,"
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
/* clang-format on */
