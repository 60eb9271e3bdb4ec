/* The history of calls, and what all readers beside the store share. */
#include "reader.h"

#include <stdlib.h>

#include "taskgate/core/memory.h"
#include "taskgate/store/history.h"

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

bool store_history_read(const struct store_site *site, int64_t since_ms,
                        store_history_visitor visitor, void *context, struct error *error)
{
    struct database *database = reader_open(site, error);
    bool is_read = database && site->backend->reading->calls(database, since_ms, visitor, context);
    return reader_close(site, database, is_read, error);
}
