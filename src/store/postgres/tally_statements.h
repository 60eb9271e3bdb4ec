/* The tally's part of statements.h, which includes it each time; no guard on purpose. */
/* clang-format off */
#ifndef STATEMENT_ROW
#error "include statements.h"
#endif
STATEMENT_ROW(TALLY_ADD,
    "INSERT INTO taskgate_tally AS counted (source, tool, owner, day_ms, approved, rejected, expired, failed)"
    " VALUES ($1, $2, '', $4, $5, $6, $7, $8), ($1, $2, $3, $4, $5, $6, $7, $8)"
    " ON CONFLICT (source, tool, owner, day_ms) DO UPDATE SET"
    " approved = counted.approved + excluded.approved, rejected = counted.rejected + excluded.rejected,"
    " expired = counted.expired + excluded.expired, failed = counted.failed + excluded.failed")
STATEMENT_ROW(TALLY_GIVE,
    "INSERT INTO taskgate_tally AS counted (source, tool, owner, day_ms, approved, rejected, expired, failed)"
    " VALUES ($1, $2, $9, $4, $5, $6, $7, $8), ($1, $2, $3, $4, -$5, -$6, -$7, -$8)"
    " ON CONFLICT (source, tool, owner, day_ms) DO UPDATE SET"
    " approved = counted.approved + excluded.approved, rejected = counted.rejected + excluded.rejected,"
    " expired = counted.expired + excluded.expired, failed = counted.failed + excluded.failed")
STATEMENT_ROW(TALLY_READ,
    "SELECT coalesce(sum(approved), 0)::bigint, coalesce(sum(rejected), 0)::bigint,"
    " coalesce(sum(expired), 0)::bigint, coalesce(sum(failed), 0)::bigint FROM taskgate_tally"
    " WHERE source = $1 AND tool = $2 AND owner = $3 AND day_ms >= $4")
STATEMENT_ROW(TALLY_LAST,
    "SELECT event, at_ms, person, reason FROM taskgate_audit WHERE source = $1 AND tool = $2"
    " AND event IN ('approve', 'reject') AND person <> '' AND task_id <> $3"
    " ORDER BY sequence DESC LIMIT 1")
STATEMENT_ROW(TALLY_SAME,
    "SELECT count(*), coalesce(max(at_ms), 0) FROM (SELECT at_ms FROM taskgate_audit"
    " WHERE event = 'approve' AND arguments_digest = $1 AND source = $2 AND tool = $3"
    " AND at_ms >= $4 AND task_id <> $5 ORDER BY at_ms DESC LIMIT $6) AS equal")
/* clang-format on */
