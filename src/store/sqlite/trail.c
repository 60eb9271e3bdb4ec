/* Reading and checking the audit trail beside the store that writes it. */
#include "taskgate/store/trail.h"

#include "audit_rows.h"
#include "columns.h"
#include "reader.h"

static const char rows_since[] =
    "SELECT " AUDIT_COLUMNS " FROM audit WHERE at_ms >= ?1 ORDER BY sequence";
static const char all_rows[] = "SELECT " AUDIT_COLUMNS " FROM audit ORDER BY sequence";
static const char kept_beside[] =
    "SELECT sequence, kept_digest, arguments FROM audit_kept JOIN audit USING (sequence)"
    " ORDER BY sequence";
static const char start_of_chain[] = "SELECT sequence, hash, at_ms, signature FROM audit_anchor"
                                     " WHERE is_start ORDER BY sequence DESC LIMIT 1";
static const char end_of_chain[] = "SELECT seq FROM sqlite_sequence WHERE name = 'audit'";
static const char kept[] = "SELECT arguments FROM audit_kept WHERE sequence = ?1";

/* ---- reading ---- */

static int visit(sqlite3_stmt *statement, store_trail_visitor visitor, void *context)
{
    struct audit_row row;
    struct buffer text;
    int code;
    buffer_init(&text);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        audit_rows_read(&row, statement);
        buffer_clear(&text);
        audit_row_write(&row, true, &text);
        if (!visitor(context, buffer_str(&text))) {
            code = SQLITE_DONE;
            break;
        }
    }
    buffer_finish(&text);
    return code;
}

bool store_trail_read(const char *path, int64_t since_ms, store_trail_visitor visitor,
                      void *context, struct error *error)
{
    sqlite3 *handle;
    sqlite3_stmt *statement = NULL;
    bool good = false;
    if (!reader_open(path, &handle, error))
        goto done;
    if (sqlite3_prepare_v2(handle, rows_since, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, since_ms);
        good = visit(statement, visitor, context) == SQLITE_DONE;
    }
    if (!good)
        reader_fail(handle, path, error);

done:
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return good;
}

/* ---- checking ---- */

struct walk {
    sqlite3 *handle;
    struct store_trail_report *report;
    store_trail_check check;
    void *context;
};

static bool check_place(struct walk *walk)
{
    struct store_trail_report *report = walk->report;
    return !walk->check || walk->check(walk->context, &report->end, &report->finding);
}

/* Where `keep` has removed rows. */
static bool begin(struct walk *walk)
{
    struct store_trail_report *report = walk->report;
    sqlite3_stmt *statement = NULL;
    store_chain_init(&report->end);
    bool read = sqlite3_prepare_v2(walk->handle, start_of_chain, -1, &statement, NULL) == SQLITE_OK;
    int code = read ? sqlite3_step(statement) : SQLITE_ERROR;
    if (code == SQLITE_ROW) {
        report->has_start = true;
        audit_rows_read_anchor(statement, &report->start);
        report->end = report->start.place;
    }
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

/* SQLITE_DONE: to the end, or to a bad row. */
static int walk_rows(struct walk *walk, sqlite3_stmt *statement)
{
    struct store_trail_report *report = walk->report;
    struct audit_row row;
    struct buffer text;
    int code = SQLITE_DONE;
    buffer_init(&text);
    report->is_good = check_place(walk);
    while (report->is_good && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        audit_rows_read(&row, statement);
        buffer_clear(&text);
        audit_row_write(&row, false, &text);
        report->is_good = store_chain_next(&report->end, row.sequence, buffer_str(&text),
                                           row.texts[AUDIT_hash], &report->finding) &&
                          check_place(walk);
        report->rows += report->is_good;
    }
    buffer_finish(&text);
    return report->is_good ? code : SQLITE_DONE;
}

static bool is_kept(sqlite3_stmt *statement, struct error *finding)
{
    char digest[DIGEST_HEX_BYTES];
    digest_sha256_hex(database_column_bytes(statement, 2), digest);
    return str_equal(database_column_bytes(statement, 1), str_from(digest)) ||
           error_set(finding, "row %lld: its kept arguments were changed",
                     (long long)sqlite3_column_int64(statement, 0));
}

/* Kept arguments may have gone; those that are there are those that were kept. */
static bool check_kept(struct walk *walk)
{
    struct store_trail_report *report = walk->report;
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(walk->handle, kept_beside, -1, &statement, NULL) == SQLITE_OK
                   ? SQLITE_ROW
                   : SQLITE_ERROR;
    while (report->is_good && code == SQLITE_ROW && (code = sqlite3_step(statement)) == SQLITE_ROW)
        report->is_good = is_kept(statement, &report->finding);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

/* Rows that were cut off at the end leave no gap. But SQLite counts the numbers that it gave. */
static bool check_end(struct walk *walk)
{
    struct store_trail_report *report = walk->report;
    sqlite3_stmt *statement = NULL;
    if (!report->is_good)
        return true;
    bool read = sqlite3_prepare_v2(walk->handle, end_of_chain, -1, &statement, NULL) == SQLITE_OK;
    int code = read ? sqlite3_step(statement) : SQLITE_ERROR;
    if (code == SQLITE_ROW && sqlite3_column_int64(statement, 0) > report->end.sequence)
        report->is_good = error_set(&report->finding, "row %lld is missing, and all behind it",
                                    (long long)report->end.sequence + 1);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE;
}

bool store_trail_verify(const char *path, store_trail_check check, void *context,
                        struct store_trail_report *report, struct error *error)
{
    struct walk walk = {.report = report, .check = check, .context = context};
    sqlite3_stmt *statement = NULL;
    bool good = false;
    *report = (struct store_trail_report){.rows = 0};
    if (!reader_open(path, &walk.handle, error))
        goto done;
    /* One moment for all that is read. */
    good = sqlite3_exec(walk.handle, "BEGIN", NULL, NULL, NULL) == SQLITE_OK && begin(&walk) &&
           sqlite3_prepare_v2(walk.handle, all_rows, -1, &statement, NULL) == SQLITE_OK &&
           walk_rows(&walk, statement) == SQLITE_DONE && check_kept(&walk) && check_end(&walk);
    if (!good)
        reader_fail(walk.handle, path, error);

done:
    sqlite3_finalize(statement);
    sqlite3_close(walk.handle);
    return good;
}

/* ---- kept arguments ---- */

bool store_trail_arguments(const char *path, int64_t sequence, char **arguments,
                           struct error *error)
{
    sqlite3 *handle;
    sqlite3_stmt *statement = NULL;
    bool found = false;
    if (!reader_open(path, &handle, error))
        goto done;
    if (sqlite3_prepare_v2(handle, kept, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, sequence);
        found = sqlite3_step(statement) == SQLITE_ROW;
    }
    if (found)
        *arguments = database_take_text(statement, 0);

done:
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return found;
}
