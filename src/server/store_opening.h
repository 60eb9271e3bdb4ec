/*
 * The folder of the store, and the token that stands beside it.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/config/config.h"
#include "taskgate/core/error.h"
#include "taskgate/store/store.h"

/* The database's path: the configured one, or, when none is configured and the default folder
 * is not writable, ./taskgate.db, said in the log. The caller frees. */
char *store_folder_path(const struct config *config);
/* Whether that path's folder is there, and can be written to. */
bool store_folder_check(const char *store_path, struct error *error);
/* The SHA-256 of the operators' token beside the configured ones (behaviour 2.5): of
 * THOUGHTGATE_ADMIN_TOKEN; or, when no token is configured at all, of the one in <store
 * folder>/admin-token, which is generated if it is missing (0600). Else "". The log has the path,
 * never the token. */
bool store_folder_admin_token(const struct config *config, const char *store_path, char sha256[65],
                              struct error *error);

/*
 * The store at the start of the process. A SQLite file is one process's alone, and a pod that
 * replaces another one starts before that one has ended, so the file is tried again for a while.
 */

struct store_wait {
    int signals; /* signalfd(): one that asks the process to end also ends the wait */
    int64_t at_most_ms;
};

/* As store_open() of the configured database, with `path` for a file. Blocks for `at_most_ms` at
 * most. `*ended`: a signal has ended the wait; then there is no error. */
struct store *store_wait_open(const struct store_wait *wait, const struct config *config,
                              const char *path, const struct store_redaction *redaction,
                              bool *ended, struct error *error);
