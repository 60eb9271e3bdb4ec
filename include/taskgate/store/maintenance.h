/*
 * Work on a database that no gateway of this process serves: its schema, a copy, and the word that
 * it may be used after it has lost commits. Every function blocks, and belongs on no loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/store/store.h"

/* A database: its kind and where it is. */
struct store_site {
    const struct store_backend *backend;
    const char *place;
};

enum store_work {
    STORE_WORK_DONE,
    STORE_WORK_CONFLICT, /* it is served, or is not empty: nothing was changed */
    STORE_WORK_FAILED,   /* nothing was changed */
};

/* Brings the schema up, of a new database, too. */
enum store_work store_migrate(const struct store_site *site, struct error *error);
/* Lets the replicas decide and execute again. `*was_held`: whether they did not. */
enum store_work store_accept_timeline(const struct store_site *site, bool *was_held,
                                      struct error *error);

struct store_copied {
    int64_t tasks, audit_rows, others;
};
/* Copies all that lasts, in one transaction, into a database in which nothing is yet. What belongs
 * to running processes stays behind: replicas, their claims and leases, the feed. */
enum store_work store_copy(const struct store_site *from, const struct store_site *to,
                           struct store_copied *copied, struct error *error);
