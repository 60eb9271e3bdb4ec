/* A trail from before there was a chain. */
#include "sealing.h"

#include "audit_rows.h"
#include "taskgate/core/log.h"
#include "taskgate/store/chain.h"

struct sealing {
    struct database *database;
    struct store_chain end; /* of the sealed rows */
    bool has_failed;
    int64_t count;
};

static bool seal_row(void *context, const struct audit_row *given)
{
    struct sealing *sealing = context;
    struct store_chain *end = &sealing->end;
    struct audit_row sealed = *given, *row = &sealed;
    struct buffer decision, text;
    buffer_init(&decision);
    buffer_init(&text);
    audit_row_write_decision(&decision, row->texts[AUDIT_decision]);
    row->texts[AUDIT_decision] = buffer_str(&decision);
    audit_row_write(row, false, &text);
    store_chain_hash(end->hash, buffer_str(&text), end->hash);
    end->sequence = row->sequence;
    sqlite3_stmt *update = database_statement(sealing->database, STATEMENT_AUDIT_SEAL);
    sqlite3_bind_int64(update, 1, row->sequence);
    database_bind_text(update, 2, end->hash);
    database_bind_str(update, 3, row->texts[AUDIT_decision]);
    sealing->has_failed = !database_run(update);
    sealing->count += !sealing->has_failed;
    buffer_finish(&decision);
    buffer_finish(&text);
    return !sealing->has_failed;
}

static bool seal(struct database *database)
{
    struct sealing sealing = {.database = database};
    int64_t before;
    /* All rows of before are sealed in one transaction, so the newest tells for all. */
    if (!audit_rows_end(database, &sealing.end))
        return false;
    if (sealing.end.sequence > 0)
        return true;
    if (!database_simple(database, STATEMENT_AUDIT_UNLOCK))
        return false;
    do {
        before = sealing.count;
        if (!audit_rows_page(database, sealing.end.sequence, 1, seal_row, &sealing) ||
            sealing.has_failed)
            return false;
    } while (sealing.count > before);
    if (sealing.count > 0)
        log_info("Audit rows of an older version were chained", LOG_NUMBER("rows", sealing.count));
    return database_simple(database, STATEMENT_AUDIT_LOCK);
}

bool sealing_run(struct database *database, struct error *error)
{
    if (database_simple(database, STATEMENT_BEGIN_WRITE) && seal(database) &&
        database_simple(database, STATEMENT_COMMIT))
        return true;
    database_error(database, "cannot chain the audit trail", error);
    if (!sqlite3_get_autocommit(database->handle))
        database_simple(database, STATEMENT_ROLLBACK);
    return false;
}
