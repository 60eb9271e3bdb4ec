/* A database that a command has opened for reading only: the history of calls, and the trail. */
#include <inttypes.h>
#include <stdlib.h>

#include "audit_rows.h"
#include "backend.h"
#include "row.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/store/history.h"
#include "taskgate/store/trail.h"

#define PAGE_ROWS 1000

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
    int64_t last;
    size_t seen; /* of this page */
    bool is_stopped;
};

static bool visit_call(void *context, const struct value *row)
{
    struct reading *reading = context;
    const struct store_history_call call = {.at_ms = row[1].number,
                                            .task_id = row[2].text,
                                            .decision = row[3].text,
                                            .has_arguments = row[4].kind != VALUE_NOTHING,
                                            .arguments = row[4].text};
    reading->last = row[0].number;
    reading->seen++;
    reading->is_stopped = !reading->visitor(reading->context, &call);
    return !reading->is_stopped;
}

/* In pages, because libpq holds a whole result. */
static bool read_calls(struct database *database, int64_t since_ms, store_history_visitor visitor,
                       void *context)
{
    struct reading reading = {visitor, context, INT64_MIN, 0, false};
    bool is_read;
    do {
        reading.seen = 0;
        is_read = rows_read(database, STATEMENT_HISTORY_CALLS,
                            VALUES(NUMBER(since_ms), NUMBER(reading.last), NUMBER(PAGE_ROWS)),
                            visit_call, &reading);
    } while (is_read && !reading.is_stopped && reading.seen == PAGE_ROWS);
    return is_read;
}

bool store_history_read(const struct store_site *site, int64_t since_ms,
                        store_history_visitor visitor, void *context, struct error *error)
{
    struct database *database = reader_open(site, error);
    bool is_read = database && read_calls(database, since_ms, visitor, context);
    return reader_close(site, database, is_read, error);
}

/* ---- the trail ---- */

struct trail_reading {
    int64_t since_ms, last;
    store_trail_visitor visitor;
    void *context;
    struct buffer text;
    size_t seen; /* of this page */
    bool is_stopped;
};

static bool trail_visit_row(void *context, const struct audit_row *row)
{
    struct trail_reading *reading = context;
    reading->last = row->sequence;
    reading->seen++;
    if (row->at_ms < reading->since_ms)
        return true;
    buffer_clear(&reading->text);
    audit_row_write(row, true, &reading->text);
    reading->is_stopped = !reading->visitor(reading->context, buffer_str(&reading->text));
    return !reading->is_stopped;
}

static bool take_first(void *context, const struct value *row)
{
    ((struct trail_reading *)context)->last = row[0].number - 1;
    return false;
}

/* No transaction: a slow reader of the output must not hold up the database. Rows do not change. */
static bool trail_read_rows(struct database *database, struct trail_reading *reading)
{
    if (!rows_read(database, STATEMENT_AUDIT_SINCE, VALUES(NUMBER(reading->since_ms)), take_first,
                   reading))
        return false;
    if (reading->last == INT64_MAX)
        return true;
    do {
        reading->seen = 0;
        if (!audit_rows_page(database, reading->last, PAGE_ROWS, trail_visit_row, reading))
            return false;
    } while (reading->seen == PAGE_ROWS && !reading->is_stopped);
    return true;
}

bool store_trail_read(const struct store_site *site, int64_t since_ms, store_trail_visitor visitor,
                      void *context, struct error *error)
{
    struct trail_reading reading = {
        .since_ms = since_ms, .last = INT64_MAX, .visitor = visitor, .context = context};
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
    size_t seen;  /* of this page */
    int64_t last; /* number that was read */
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
    walk->seen++;
    buffer_clear(&walk->text);
    audit_row_write(row, false, &walk->text);
    report->is_good = store_chain_next(&report->end, row->sequence, buffer_str(&walk->text),
                                       row->texts[AUDIT_hash], &report->finding) &&
                      check_place(walk);
    report->rows += report->is_good;
    return report->is_good;
}

/* To the end, or to a bad row. A page begins behind the last row, and the first with all that there
 * are: a row before the start of the chain is a bad one. */
static bool walk_rows(struct walk *walk)
{
    int64_t after = INT64_MIN;
    bool is_read = true;
    do {
        walk->seen = 0;
        is_read = audit_rows_page(walk->database, after, PAGE_ROWS, trail_check_row, walk);
        after = walk->report->end.sequence;
    } while (is_read && walk->report->is_good && walk->seen == PAGE_ROWS);
    return is_read;
}

/* Of STATEMENT_AUDIT_ALL_KEPT: sequence, digest, arguments. */
static bool check_kept_row(void *context, const struct value *row)
{
    struct walk *walk = context;
    struct store_trail_report *report = walk->report;
    char found[DIGEST_HEX_BYTES];
    walk->seen++;
    walk->last = row[0].number;
    digest_sha256_hex(row[2].text, found);
    report->is_good =
        str_equal(row[1].text, str_from(found)) ||
        error_set(&report->finding, "row %" PRId64 ": its kept arguments were changed", walk->last);
    return report->is_good;
}

static bool walk_kept(struct walk *walk)
{
    bool is_read;
    walk->last = INT64_MIN;
    do {
        walk->seen = 0;
        is_read = rows_read(walk->database, STATEMENT_AUDIT_ALL_KEPT,
                            VALUES(NUMBER(walk->last), NUMBER(PAGE_ROWS)), check_kept_row, walk);
    } while (is_read && walk->report->is_good && walk->seen == PAGE_ROWS);
    return is_read;
}

static bool trail_take_last(void *context, const struct value *row)
{
    ((struct walk *)context)->last = row[0].number;
    return false;
}

/* Rows that were cut off at the end leave no gap. But the database may count the numbers that it
 * gave, and has anchors. */
static bool check_end(struct walk *walk)
{
    struct store_trail_report *report = walk->report;
    struct store_anchor anchor;
    walk->last = 0;
    if (!rows_read(walk->database, STATEMENT_AUDIT_LAST_GIVEN, NO_VALUES, trail_take_last, walk))
        return false;
    enum row_result result = audit_rows_anchor_last(walk->database, &anchor);
    if (result == ROW_FOUND && anchor.place.sequence > walk->last)
        walk->last = anchor.place.sequence;
    if (walk->last > report->end.sequence)
        report->is_good =
            error_set(&report->finding, "row %" PRId64 " is missing, and all behind it",
                      report->end.sequence + 1);
    return result != ROW_FAILED;
}

/* Kept arguments may have gone; those that are there are those that were kept. */
static bool walk_all(struct walk *walk)
{
    struct store_trail_report *report = walk->report;
    /* One moment for all that is read. */
    bool is_read = walk->backend->begin(walk->database, false) && trail_begin(walk) &&
                   (!report->is_good || walk_rows(walk));
    if (is_read && report->is_good)
        is_read = walk_kept(walk);
    if (is_read && report->is_good)
        is_read = check_end(walk);
    return is_read;
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
