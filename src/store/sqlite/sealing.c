/* A trail from before there was a chain. */
#include "audit_rows.h"
#include "taskgate/core/log.h"
#include "taskgate/store/chain.h"

static bool seal_row(struct database *database, struct audit_row *row, struct store_chain *end)
{
    struct buffer decision, text;
    buffer_init(&decision);
    buffer_init(&text);
    audit_row_write_decision(&decision, row->texts[AUDIT_decision]);
    row->texts[AUDIT_decision] = buffer_str(&decision);
    audit_row_write(row, false, &text);
    store_chain_hash(end->hash, buffer_str(&text), end->hash);
    end->sequence = row->sequence;
    sqlite3_stmt *update = database_statement(database, STATEMENT_AUDIT_SEAL);
    sqlite3_bind_int64(update, 1, row->sequence);
    database_bind_text(update, 2, end->hash);
    database_bind_str(update, 3, row->texts[AUDIT_decision]);
    bool done = database_run(update);
    buffer_finish(&decision);
    buffer_finish(&text);
    return done;
}

/* SQLITE_DONE: there is no further one. */
static int seal_next(struct database *database, struct store_chain *end)
{
    struct audit_row row;
    sqlite3_stmt *next = database_statement(database, STATEMENT_AUDIT_NEXT);
    sqlite3_bind_int64(next, 1, end->sequence);
    int code = sqlite3_step(next);
    if (code == SQLITE_ROW) {
        audit_rows_read(&row, next);
        code = seal_row(database, &row, end) ? SQLITE_ROW : SQLITE_ERROR;
    }
    database_release(next);
    return code;
}

static bool seal(struct database *database)
{
    struct store_chain end;
    int64_t sealed = 0;
    int code;
    /* All rows of before are sealed in one transaction, so the newest tells for all. */
    if (!sqlite_audit_rows.end(database, &end))
        return false;
    if (end.sequence > 0)
        return true;
    if (!database_simple(database, STATEMENT_AUDIT_UNLOCK))
        return false;
    while ((code = seal_next(database, &end)) == SQLITE_ROW)
        sealed++;
    if (sealed > 0)
        log_info("Audit rows of an older version were chained", LOG_NUMBER("rows", sealed));
    return code == SQLITE_DONE && database_simple(database, STATEMENT_AUDIT_LOCK);
}

bool audit_rows_seal(struct database *database, struct error *error)
{
    if (database_simple(database, STATEMENT_BEGIN_WRITE) && seal(database) &&
        database_simple(database, STATEMENT_COMMIT))
        return true;
    database_error(database, "cannot chain the audit trail", error);
    if (!sqlite3_get_autocommit(database->handle))
        database_simple(database, STATEMENT_ROLLBACK);
    return false;
}
