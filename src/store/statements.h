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
/* clang-format on */
