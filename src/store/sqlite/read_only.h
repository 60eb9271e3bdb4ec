/*
 * A database of the gateway's, opened by another process that can change nothing. It takes no lock
 * that anybody waits for.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "taskgate/core/error.h"

/* false with an error when the file is no database of this version of the gateway's, or cannot be
 * read. Close `*handle` with sqlite3_close() either way. */
bool read_only_open(const char *path, sqlite3 **handle, struct error *error);
/* "PATH cannot be read as a task store: …" Returns false. */
bool read_only_fail(sqlite3 *handle, const char *path, struct error *error);
