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
STATEMENT_ROW(TOTALS_GET, "SELECT tasks, pending, bytes FROM taskgate_totals")
/* Of the tables whose bytes nobody counts. */
STATEMENT_ROW(BESIDE_BYTES,
    "SELECT coalesce(sum(pg_relation_size(oid)"
    " + CASE WHEN reltoastrelid = 0 THEN 0 ELSE pg_relation_size(reltoastrelid) END), 0)::bigint"
    " FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    " AND (starts_with(relname, 'taskgate_outbox') OR relname IN"
    " ('taskgate_session', 'taskgate_pair', 'taskgate_sign_in', 'taskgate_sign_in_attempt', 'taskgate_grant', 'taskgate_block'))")
/* The numbers are given in the order of the lists. */
STATEMENT_ROW(FEED_ADD_ALL,
    "INSERT INTO taskgate_feed (task_id, replica, created, at_ms)"
    " SELECT told.id, $2, told.created::bigint, $4"
    " FROM unnest(string_to_array($1, ','), string_to_array($3, ',')) WITH ORDINALITY"
    " AS told (id, created, place) ORDER BY told.place")
STATEMENT_ROW(GRANT_ANY, "SELECT " GRANT_ANY)
/* And it lives with a replica. */
STATEMENT_ROW(TASK_INSERT_KEPT,
    "WITH made AS (INSERT INTO taskgate_task ({task_whole.*}) VALUES ({task_whole.?})"
    " RETURNING sequence) INSERT INTO taskgate_task_claim (task, replica, epoch)"
    " SELECT sequence, $64::text, $65::bigint FROM made")
/* With those of a list of ids that are there. Each is a look at the index, whatever is known of
 * the size of the table. The planner would take a plain $2 for a constant, and plan each time anew. */
OVERRIDE_ROW(LIMITED_COUNT,
    "SELECT $1::text, coalesce((SELECT tasks FROM taskgate_limited WHERE owner = $1), 0),"
    " coalesce((SELECT bytes FROM taskgate_limited WHERE owner = $1), 0),"
    " (SELECT string_agg((SELECT id FROM taskgate_task AS task WHERE task.id = asked.id), ',')"
    " FROM unnest(string_to_array((SELECT $2::text), ',')) AS asked (id))")
OVERRIDE_ROW(LIMITED_ADD,
    "INSERT INTO taskgate_limited AS counted (owner, tasks, bytes) VALUES ($1, $2, $3)"
    " ON CONFLICT (owner) DO UPDATE SET tasks = counted.tasks + excluded.tasks,"
    " bytes = counted.bytes + excluded.bytes")
OVERRIDE_ROW(LIMITED_PURGE, "DELETE FROM taskgate_limited WHERE tasks = 0")
/* With the bytes of the row. */
OVERRIDE_ROW(AUDIT_INSERT,
    "INSERT INTO taskgate_audit ({audit.*}, bytes) VALUES"
    " ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,"
    " $21, $22, $23, $24, $25)")
/* With its notice, where it is the last one, which SQLite's triggers remove. */
OVERRIDE_ROW(OUTBOX_DELETE,
    "WITH gone AS (DELETE FROM taskgate_outbox_delivery WHERE sequence = $1 RETURNING notice)"
    " DELETE FROM taskgate_outbox_notice AS notice USING gone WHERE notice.sequence = gone.notice"
    " AND NOT EXISTS (SELECT 1 FROM taskgate_outbox_delivery AS other"
    " WHERE other.notice = gone.notice AND other.sequence <> $1)")
/* And the notices that nobody waits for, which SQLite's triggers remove. */
OVERRIDE_ROW(STRAY_DELIVERIES_PURGE,
    "WITH gone AS (DELETE FROM {outbox_delivery} WHERE {rows} FROM {outbox_delivery} WHERE target = "
    STRAY_TARGET("{outbox_delivery}") " AND $1::bigint IS NOT NULL LIMIT $2{end}"
    " RETURNING sequence, notice),"
    " untold AS (DELETE FROM taskgate_outbox_notice AS notice WHERE sequence IN"
    " (SELECT gone.notice FROM gone) AND NOT EXISTS (SELECT 1 FROM taskgate_outbox_delivery AS other"
    " WHERE other.notice = notice.sequence AND other.sequence NOT IN (SELECT gone.sequence FROM gone)))"
    " SELECT 0::bigint FROM gone")
#define NUMBER_AFTER(table)                                                                        \
    "setval(pg_get_serial_sequence('" table "', 'sequence'),"                                      \
    " (SELECT coalesce(max(sequence), 0) + 1 FROM " table "), false)"
OVERRIDE_ROW(COPY_END,
    "SELECT " NUMBER_AFTER("taskgate_grant") ", " NUMBER_AFTER("taskgate_block") ", "
    NUMBER_AFTER("taskgate_definition") ", " NUMBER_AFTER("taskgate_outbox_notice") ", "
    NUMBER_AFTER("taskgate_outbox_delivery"))
/* clang-format on */
