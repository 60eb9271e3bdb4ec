/* The demands of readers beside the store on a database: a part of backend.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"
#include "taskgate/store/history.h"

struct database;

/* The rows that commands read beside the processes that use the database, on a connection of
 * open_reader().
 */
struct reading_rows {
    /* The first row of the trail that is not older; INT64_MAX: there is none. */
    bool (*first_since)(struct database *database, int64_t since_ms, int64_t *sequence);
    /* The largest number that a row was given; 0: the database does not count them. */
    bool (*last_given)(struct database *database, int64_t *sequence);
    /* The arguments that are kept beside rows of the trail, with the digest that the row has. The
     * values are valid during the visit; false ends the reading. */
    bool (*kept)(struct database *database,
                 bool (*visit)(void *context, int64_t sequence, struct str digest,
                               struct str arguments),
                 void *context);
    /* Every call that became a task, as store_history_read() gives it. */
    bool (*calls)(struct database *database, int64_t since_ms, store_history_visitor visitor,
                  void *context);
};
