/*
 * The store at the start of the process. A SQLite file is one process's alone, and a pod that
 * replaces another one starts before that one has ended, so the file is tried again for a while.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/store/store.h"

struct store_wait {
    int signals; /* signalfd(): one that asks the process to end also ends the wait */
    int64_t at_most_ms;
};

/* As store_open() of the configured database, with `path` for a file. Blocks for `at_most_ms` at
 * most. `*ended`: a signal has ended the wait; then there is no error. */
struct store *store_wait_open(const struct store_wait *wait, const struct config *config,
                              const char *path, const struct store_redaction *redaction,
                              bool *ended, struct error *error);
