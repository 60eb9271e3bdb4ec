/* The database's files before SQLite sees them: private, and one process's at a time. */
#pragma once

#include "taskgate/core/error.h"

/* Creates `path` if it is not there, and makes it readable by its owner alone; SQLite gives
 * its -wal and -shm the same mode. */
bool files_make_private(const char *path, struct error *error);
/* Takes the lock beside the database, held until the descriptor is closed or the process ends.
 * -1: another process has it, or the lock file cannot be opened; `error` says which. */
int files_lock(const char *path, struct error *error);
