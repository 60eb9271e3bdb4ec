/*
 * The history of calls that became tasks, for other processes: the audit trail of a
 * database that a gateway may be using at the same time, or of a copy. Reads only, takes no lock
 * that anybody waits for. Blocks; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"
#include "taskgate/store/site.h"

struct store_history_call {
    int64_t at_ms;
    struct str task_id;
    struct str decision;  /* JSON as task.decision; empty where nothing was kept */
    bool has_arguments;   /* the task is still there, and nothing of them is hidden */
    struct str arguments; /* JSON text */
};
/* `call` is valid during the callback only. False ends the reading. */
typedef bool (*store_history_visitor)(void *context, const struct store_history_call *call);

/* Every call from `since_ms` on, oldest first. False with an error when the site is no database
 * of this version of the gateway's, or cannot be read. */
bool store_history_read(const struct store_site *site, int64_t since_ms,
                        store_history_visitor visitor, void *context, struct error *error);
