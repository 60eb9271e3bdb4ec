/*
 * The store's demands on a database. The store says what an operation means: limits, deadlines,
 * votes, the chain of the trail. A backend keeps rows and runs transactions. Everything here takes
 * and gives values: no statement and no type of a database passes this door.
 *
 * A function that returns bool returns false when the database has failed; then the store undoes
 * the operation. One thread at a time uses a connection: the opener's, then the store's.
 * tests/unit/store/ tests what each function promises.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"
#include "taskgate/task/task.h"

/* The end of a commit's error, where it is not known what became of it. */
#define BACKEND_UNSURE "it is not known whether the last changes were stored"
/* A part of an open's error, if another process has the database alone. */
#define BACKEND_IN_USE "is in use by another taskgate process"

/* When a backend wants backend.upkeep to be called: LOOK_UPKEEP. */
enum backend_upkeep {
    BACKEND_UPKEEP_NONE,
    BACKEND_UPKEEP_LATER, /* in an idle moment, seconds from now */
    BACKEND_UPKEEP_SOON,  /* in the next idle moment */
    BACKEND_UPKEEP_NOW,   /* before the next transaction */
};

/* What a backend knows, most of it without asking the database. */
enum backend_fact {
    /* How far the database's clock is ahead of this process's: deadlines are by the database's. */
    LOOK_AHEAD_MS,
    /* A number that grows with each row that is written. */
    LOOK_WRITTEN,
    /* This and the next two are 1 or 0, and are said once. Whether another process has committed
     * something since. It may miss one: the feed does not. */
    LOOK_HINT,
    /* Whether a commit, of which it was not known, was done after all. This process's view of its
     * rows may then differ from the database. */
    LOOK_LATE_COMMIT,
    /* Whether what this process had committed was missing when it connected anew. */
    LOOK_LOSS,
    /* The bytes that limits.store_bytes counts, with those that this transaction has written; less
     * than 0: the database has failed. */
    LOOK_BYTES,
    LOOK_UPKEEP, /* enum backend_upkeep */
    /* A descriptor to wait for beside the queue, readable when there may be a hint; -1: none. */
    LOOK_WAKE_FD,
};

enum backend_mark {
    MARK_SET,
    MARK_FORGET,
    /* What was done since is undone. false also where more than that has failed: then nothing of it
     * was done, and describe() still says why. */
    MARK_RETURN,
};

enum commit_result {
    COMMIT_DONE,
    COMMIT_NOTHING, /* nothing was committed, and nothing of it can show up later */
    COMMIT_UNSURE,  /* it is not known */
};

/* A connection. Each backend defines its own; it begins with a pointer to the backend. */
struct database;

struct store_backend {
    const char *name; /* for the log */
    /* Other processes may use the database at the same time. */
    bool is_shared;
    /* A place as people are shown it: without secrets. The caller frees. */
    char *(*title)(const char *place);
    /* Opens the database that `place` names, brings its schema up, and makes sure that no process
     * uses it that must not. NULL with an error. A shared database that cannot be reached now is no
     * error: it is not in place, and begin() tries again. */
    struct database *(*open)(const char *place, struct error *error);
    /* Opens it for reading alone, while others use it: nothing there is changed, and nobody waits.
     * Its transactions see one moment. NULL with an error, also where the schema is not this
     * version's, or the database cannot be reached. */
    struct database *(*open_reader)(const char *place, struct error *error);
    /* store_migrate() and store_migration(). Both NULL: the database has no roles. */
    bool (*grant)(struct database *database, const char *role, struct error *error);
    char *(*statements)(const char *place, const char *role, struct error *error);
    void (*close)(struct database *database); /* NULL is allowed */
    /* Copies all of it, as it is at one moment, to the file `target`, which is there and empty.
     * NULL: it does not know such files, and its rows are copied. */
    bool (*backup)(const char *place, const char *target, struct error *error);

    /* A transaction; one that does not write may be refused each write. Those that write to a
     * shared database come one after the other. */
    bool (*begin)(struct database *database, bool writes);
    /* With an error, unless it is done. */
    enum commit_result (*commit)(struct database *database, struct error *error);
    void (*rollback)(struct database *database); /* also where no transaction is open */
    /* A point in the transaction: MARK_SET, then one of the other two. */
    bool (*mark)(struct database *database, enum backend_mark what);
    /* "what: the database's own words". Returns false. */
    bool (*describe)(const struct database *database, const char *what, struct error *error);
    /* Whether it is still the database that was opened. If not, nobody may be told of anything that
     * it commits. */
    bool (*is_in_place)(const struct database *database, struct error *error);
    int64_t (*look)(struct database *database, enum backend_fact fact);
    /* Statements of statements.h, as row.h has them. A write may be queued: that it has failed is
     * seen with the next of the others, or with the commit. */
    bool (*write)(struct database *database, enum statement which, const struct value *values,
                  size_t count);
    /* Waits for a write, and counts the rows that it has changed. */
    bool (*change)(struct database *database, enum statement which, const struct value *values,
                   size_t count, int64_t *changed);
    bool (*read)(struct database *database, enum statement which, const struct value *values,
                 size_t count, row_visitor *visit, void *context);
    /* The same of a text that varies. */
    bool (*read_text)(struct database *database, const char *sql, const struct value *values,
                      size_t count, row_visitor *visit, void *context);
    bool compares_rows; /* an index finds "(a, b) > (?1, ?2)" */
    /* Says early that these tasks will be inserted, and those of their owners be counted. NULL: it
     * need not know. */
    bool (*expect_inserts)(struct database *database, const struct task *const *tasks,
                           size_t count);
    void (*upkeep)(struct database *database); /* NULL: LOOK_UPKEEP never wants it */
};
