/*
 * A database of the gateway's, opened by another process that can change nothing. It takes no lock
 * that anybody waits for.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "taskgate/core/error.h"

/* false with an error when the file is no database of this version of the gateway's, or cannot be
 * read. Close `*handle` with sqlite3_close() either way. */
bool read_only_open(const char *path, sqlite3 **handle, struct error *error);
/* The facts of the file that tell whether somebody has written to it. */
struct read_only_file {
    bool is_quiet; /* there is no log beside it: it is read without asking anybody */
    ino_t inode;
    off_t size;
    struct timespec changed;
};
void read_only_look(const char *path, struct read_only_file *file);
/* "PATH cannot be read as a task store: …" Returns false. */
bool read_only_fail(sqlite3 *handle, const char *path, struct error *error);
