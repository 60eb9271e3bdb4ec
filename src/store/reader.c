/* A database that a command has opened for reading only: the history of calls, and the trail. */
#include <inttypes.h>

#include "audit_rows.h"
#include "backend.h"
#include "row.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/store/history.h"
#include "taskgate/store/trail.h"

/* ---- opening ---- */

static struct database *reader_open(const struct store_site *site, struct error *error)
{
    return site->backend->open_reader(site->place, error);
}

static bool reader_close(const struct store_site *site, struct database *database, bool is_good,
                         struct error *error)
{
    if (!is_good && database) {
        OWNED char *title = site->backend->title(site->place);
        OWNED char *what = memory_format("%s cannot be read as a task store", title);
        site->backend->describe(database, what, error);
    }
    site->backend->close(database);
    return is_good;
}

/* ---- the history ---- */

struct reading {
    store_history_visitor visitor;
    void *context;
};

static bool visit_call(void *context, const struct value *row)
{
    const struct reading *reading = context;
    const struct store_history_call call = {.at_ms = row[1].number,
                                            .task_id = row[2].text,
                                            .decision = row[3].text,
                                            .has_arguments = row[4].kind != VALUE_NOTHING,
                                            .arguments = row[4].text};
    return reading->visitor(reading->context, &call);
}

bool store_history_read(const struct store_site *site, int64_t since_ms,
                        store_history_visitor visitor, void *context, struct error *error)
{
    struct database *database = reader_open(site, error);
    const struct row_pages pages = {STATEMENT_HISTORY_CALLS, NULL, 0, INT64_MIN,
                                    VALUES(NUMBER(since_ms))};
    bool is_read = database && rows_read_pages(database, &pages, visit_call,
                                               &(struct reading){visitor, context});
    return reader_close(site, database, is_read, error);
}

/* ---- the trail ---- */

struct trail_reading {
    int64_t since_ms;
    store_trail_visitor visitor;
    void *context;
    struct buffer text;
};

static bool trail_visit_row(void *context, const struct audit_row *row)
{
    struct trail_reading *reading = context;
    if (row->at_ms < reading->since_ms)
        return true;
    buffer_clear(&reading->text);
    audit_row_write(row, true, &reading->text);
    return reading->visitor(reading->context, buffer_str(&reading->text));
}

/* No transaction: a slow reader of the output must not hold up the database. Rows do not change. */
static bool trail_read_rows(struct database *database, struct trail_reading *reading)
{
    int64_t first;
    enum row_result result = rows_find_number(database, STATEMENT_AUDIT_SINCE,
                                              VALUES(NUMBER(reading->since_ms)), &first);
    if (result != ROW_FOUND)
        return result == ROW_ABSENT;
    return audit_rows_all(database, first - 1, trail_visit_row, reading);
}

bool store_trail_read(const struct store_site *site, int64_t since_ms, store_trail_visitor visitor,
                      void *context, struct error *error)
{
    struct trail_reading reading = {.since_ms = since_ms, .visitor = visitor, .context = context};
    struct database *database = reader_open(site, error);
    buffer_init(&reading.text);
    bool is_read = database && trail_read_rows(database, &reading);
    buffer_finish(&reading.text);
    return reader_close(site, database, is_read, error);
}

/* ---- checking ---- */

struct walk {
    const struct store_backend *backend;
    struct database *database;
    struct store_trail_report *report;
    store_trail_check check;
    void *context;
    struct buffer text;
};

static bool check_place(struct walk *walk)
{
    struct store_trail_report *report = walk->report;
    return !walk->check || walk->check(walk->context, &report->end, &report->finding);
}

/* Begins behind the rows that `keep` has removed. */
static bool trail_begin(struct walk *walk)
{
    struct store_trail_report *report = walk->report;
    store_chain_init(&report->end);
    enum row_result result = audit_rows_anchor_start(walk->database, &report->start);
    report->has_start = result == ROW_FOUND;
    if (report->has_start)
        report->end = report->start.place;
    report->is_good = check_place(walk);
    return result != ROW_FAILED;
}

static bool trail_check_row(void *context, const struct audit_row *row)
{
    struct walk *walk = context;
    struct store_trail_report *report = walk->report;
    buffer_clear(&walk->text);
    audit_row_write(row, false, &walk->text);
    report->is_good = store_chain_next(&report->end, row->sequence, buffer_str(&walk->text),
                                       row->texts[AUDIT_hash], &report->finding) &&
                      check_place(walk);
    report->rows += report->is_good;
    return report->is_good;
}

/* Of STATEMENT_AUDIT_ALL_KEPT: sequence, digest, arguments. */
static bool check_kept_row(void *context, const struct value *row)
{
    struct walk *walk = context;
    struct store_trail_report *report = walk->report;
    char found[DIGEST_HEX_BYTES];
    digest_sha256_hex(row[2].text, found);
    report->is_good = str_equal(row[1].text, str_from(found)) ||
                      error_set(&report->finding,
                                "row %" PRId64 ": its kept arguments were changed", row[0].number);
    return report->is_good;
}

/* Rows that were cut off at the end leave no gap. But the database may count the numbers that it
 * gave, and has anchors. */
static bool check_end(struct walk *walk)
{
    struct store_trail_report *report = walk->report;
    struct store_anchor anchor;
    int64_t last;
    enum row_result result =
        rows_find_number(walk->database, STATEMENT_AUDIT_LAST_GIVEN, NO_VALUES, &last);
    if (result == ROW_FAILED)
        return false;
    if (result == ROW_ABSENT)
        last = 0;
    result = audit_rows_anchor_last(walk->database, &anchor);
    if (result == ROW_FOUND && anchor.place.sequence > last)
        last = anchor.place.sequence;
    if (last > report->end.sequence)
        report->is_good =
            error_set(&report->finding, "row %" PRId64 " is missing, and all behind it",
                      report->end.sequence + 1);
    return result != ROW_FAILED;
}

/* To the end, or to a bad row. The first page begins with all that there are: a row before the
 * start of the chain is a bad one. Kept arguments may have gone; those that are there are those
 * that were kept. */
static bool walk_all(struct walk *walk)
{
    static const struct row_pages kept = {.which = STATEMENT_AUDIT_ALL_KEPT, .after = INT64_MIN};
    const bool *is_good = &walk->report->is_good;
    /* One moment for all that is read. */
    return walk->backend->begin(walk->database, false) && trail_begin(walk) &&
           (!*is_good || audit_rows_all(walk->database, INT64_MIN, trail_check_row, walk)) &&
           (!*is_good || rows_read_pages(walk->database, &kept, check_kept_row, walk)) &&
           (!*is_good || check_end(walk));
}

bool store_trail_verify(const struct store_site *site, store_trail_check check, void *context,
                        struct store_trail_report *report, struct error *error)
{
    struct walk walk = {
        .backend = site->backend, .report = report, .check = check, .context = context};
    *report = (struct store_trail_report){.rows = 0};
    walk.database = reader_open(site, error);
    buffer_init(&walk.text);
    bool is_read = walk.database && walk_all(&walk);
    buffer_finish(&walk.text);
    return reader_close(site, walk.database, is_read, error);
}

/* ---- kept arguments ---- */

bool store_trail_arguments(const struct store_site *site, int64_t sequence, char **arguments,
                           struct error *error)
{
    struct database *database = reader_open(site, error);
    enum row_result result = database ? audit_rows_kept(database, sequence, arguments) : ROW_FAILED;
    return reader_close(site, database, result != ROW_FAILED, error) && result == ROW_FOUND;
}
