/*
 * Work on a database that no gateway of this process serves: its schema, a copy, and the word that
 * it may be used after it has lost commits. Every function blocks, and belongs on no loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/store/site.h"
#include "taskgate/store/store.h"

enum store_work {
    STORE_WORK_DONE,
    STORE_WORK_CONFLICT, /* it is served, or is not empty: nothing was changed */
    STORE_WORK_FAILED,   /* nothing was changed, unless the error says that it is not known */
};

/* Brings the schema up, of a new database, too. Then `grant_to`, if it is not NULL, is a role of
 * PostgreSQL that may read and write all rows, also of tables that later versions add. */
enum store_work store_migrate(const struct store_site *site, const char *grant_to,
                              struct error *error);
/* The same as SQL for PostgreSQL, and nothing is changed. The caller frees; NULL with an error. */
char *store_migration(const struct store_site *site, const char *grant_to, struct error *error);
/* Lets the replicas decide and execute again. `*was_held`: whether they did not. */
enum store_work store_accept_timeline(const struct store_site *site, bool *was_held,
                                      struct error *error);

struct store_copied {
    int64_t tasks, audit_rows, others;
};
/* Copies all that lasts, in one transaction, into a database in which nothing is yet. The state of
 * running processes stays behind: replicas, their claims and leases, the feed. */
enum store_work store_copy(const struct store_site *from, const struct store_site *to,
                           struct store_copied *copied, struct error *error);

/* Copies the whole database, as it is at one moment, to a new file of `to`'s kind with mode 0600,
 * while processes use it. False with an error, and then no file is left behind; a file that is
 * there already is refused. */
bool store_backup(const struct store_site *from, const struct store_site *to, struct error *error);
