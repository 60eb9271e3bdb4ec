/* The history of calls, and what all readers beside the store share. */
#include "reader.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"
#include "taskgate/store/history.h"

#define PAGE_ROWS 1000

struct database *reader_open(const struct store_site *site, struct error *error)
{
    return site->backend->open_reader(site->place, error);
}

bool reader_close(const struct store_site *site, struct database *database, bool is_good,
                  struct error *error)
{
    if (!is_good && database) {
        char *title = site->backend->title(site->place);
        char *what = memory_format("%s cannot be read as a task store", title);
        site->backend->describe(database, what, error);
        free(what);
        free(title);
    }
    site->backend->close(database);
    return is_good;
}

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
