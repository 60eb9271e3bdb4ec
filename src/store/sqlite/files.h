/*
 * The database's file beside SQLite: private, one process's at a time, and still the one that its
 * path names.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "taskgate/core/error.h"

/* Opens `path`, creates it if it is not there, makes it readable by its owner alone (SQLite gives
 * its -wal and -shm the same mode), and takes the lock on the file itself: a flock(), which
 * SQLite's own locks and readers do not meet. The lock is held until the descriptor is closed.
 * Close it after SQLite has closed the file, for with any descriptor of a file the process loses
 * SQLite's locks on it. -1: another process has the lock, or the file cannot be used; `error` says
 * which. */
int files_open(const char *path, struct error *error);

/* The files that SQLite works on, as they were when it opened them. */
struct files_opened {
    int database; /* the descriptor of files_open(); borrowed */
    char *path;   /* without symbolic links */
    char *log_path;
    dev_t log_device;
    ino_t log_inode;
};

/* After SQLite has opened the database and its log. false: one of them is not there, or not the
 * file that was locked. Finish it either way. */
bool files_note(struct files_opened *files, int database, const char *path, struct error *error);
void files_finish(struct files_opened *files);
/* Whether the paths still name the open files. Writes to a file that no path names any more are
 * lost. */
bool files_are_in_place(const struct files_opened *files);
