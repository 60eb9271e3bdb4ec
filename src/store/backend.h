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

#include "row.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"
#include "taskgate/store/store.h"
#include "taskgate/task/task.h"

/* Tasks that limits count: of one owner, with the bytes of their requests; of all; and those of all
 * that wait for a decision. */
struct limited_counts {
    int64_t of_owner, bytes, of_all, pending;
};
/* By how much they change. */
struct limited_change {
    int64_t tasks, pending, bytes;
};

/* A replica that a task lives with, in one of its epochs. */
struct keeper {
    const char *replica;
    int64_t epoch;
};

/* A task that has ended, as what counts outcomes asks for it. The name is valid during the visit.
 */
struct ended_task {
    struct str tool;
    enum task_state state;
    int64_t approved_ms, ended_ms; /* approved_ms: 0: nobody approved it */
};

/* Takes the reference over; false ends the list. */
typedef bool (*task_visitor)(void *context, struct task *task, int64_t sequence);
/* Writes a part of a task. */
typedef bool task_writer(struct database *database, const struct task *task);

struct task_rows {
    /* The whole task with request and outcome; the caller owns the reference. */
    enum row_result (*get)(struct database *database, struct str id, struct task **task);
    /* `keeper`: the task lives with this replica; NULL: with none yet. */
    bool (*insert)(struct database *database, const struct task *task, const struct keeper *keeper);
    /* Writes what a transition from `from` changed. ROW_ABSENT: the row is not in `from`. */
    enum row_result (*move)(struct database *database, const struct task *task,
                            enum task_state from, bool with_outcome);
    /* Deletes the request of a task that has ended, also in `task`, and writes its arguments, meta
     * and other params anew. `is_redacted`: these are no longer what the client sent. */
    bool (*end_request)(struct database *database, struct task *task, bool is_redacted);
    /* Of a task whose arguments an approver has changed: all of its request, and what it was. */
    task_writer *edit;
    /* With its votes when it was changed. Its reach: the owner, `promised` and `on_result`. */
    task_writer *set_votes, *set_grant, *set_upstream, *set_message, *set_reach;
    /* Those with a deadline that has passed, the oldest first. */
    bool (*find_due)(struct database *database, int64_t now_ms, size_t limit, struct id_list *list);
    /* The nearest deadline behind `now_ms`; INT64_MAX: there is none. */
    bool (*next_deadline)(struct database *database, int64_t now_ms, int64_t *deadline_ms);
    /* Of an owner at a source: the undecided, the promoted and the promised ones that run. */
    bool (*find_of_session)(struct database *database, const char *owner, const char *source,
                            struct id_list *list);
    /* Makes `heir` the owner of at most `most` promised ones that have ended, if there are any. A
     * visit that fails is a failure of the database's. */
    enum row_result (*hand_over_ended)(struct database *database, const char *owner,
                                       const char *source, const char *heir, size_t most,
                                       bool (*visit)(void *context, const struct ended_task *task),
                                       void *context);
    /* Forgets the counts of owners without such tasks. */
    bool (*forget_limited)(struct database *database);
    /* Says early that these tasks will be inserted, and those of their owners be counted. */
    bool (*expect_inserts)(struct database *database, const struct task *const *tasks,
                           size_t count);
    /* The tasks that limits count. From reading to the end of the transaction nobody else may
     * change the counts. */
    bool (*count_limited)(struct database *database, const char *owner,
                          struct limited_counts *counts);
    /* Adds to the row of an owner alone; "": of all, which the store writes once a transaction. */
    bool (*add_limited_to)(struct database *database, const char *owner,
                           const struct limited_change *change);
    /* Of the undecided tasks of each workflow: since when the oldest waits, and the largest share
     * of its time that one has used, in millionths (beyond 0 to 1,000,000 where a clock leapt). */
    bool (*find_waits)(struct database *database, int64_t now_ms,
                       void (*visit)(void *context, struct str workflow, int64_t created_ms,
                                     int64_t used_millionths),
                       void *context);
    /* At most `limit` tasks in the order that the query asks for, without request and outcome. */
    bool (*list)(struct database *database, const struct store_task_query *query, size_t limit,
                 task_visitor visit, void *context);
    /* All that wait for a decision and have source, tool, workflow and principal of the query, in
     * no order, without any long text. */
    bool (*list_waiting)(struct database *database, const struct store_task_query *query,
                         task_visitor visit, void *context);
    /* All that wait for a decision, and are not due. */
    bool (*count_waiting)(struct database *database, int64_t now_ms, int64_t *count);
};

/* A column of a row that is copied to another database. */
struct copy_value {
    bool is_number; /* else text */
    int64_t number;
    struct str text;
};

/* Rows of the tables of copy_table.h, which are no more than values here. `columns` are names with
 * ", " between them. */
struct copy_rows {
    /* All, by the first column. The values are valid during the visit; false ends the reading. */
    bool (*read)(struct database *database, const char *table, const char *columns,
                 bool (*visit)(void *context, const struct copy_value *values), void *context);
    bool (*write)(struct database *database, const char *table, const char *columns,
                  const struct copy_value *values, size_t count);
    bool (*reminders)(struct database *database,
                      bool (*visit)(void *context, const char *task_id, unsigned event,
                                    int64_t due_ms),
                      void *context);
    /* Rows written from now on get numbers behind those that were copied. */
    bool (*finish)(struct database *database);
};

/* The end of a commit's error, where it is not known what became of it. */
#define BACKEND_UNSURE "it is not known whether the last changes were stored"
/* A part of an open's error, if another process has the database alone. */
#define BACKEND_IN_USE "is in use by another taskgate process"

/* When a backend wants backend.upkeep to be called. */
enum backend_upkeep {
    BACKEND_UPKEEP_NONE,
    BACKEND_UPKEEP_LATER, /* in an idle moment, seconds from now */
    BACKEND_UPKEEP_SOON,  /* in the next idle moment */
    BACKEND_UPKEEP_NOW,   /* before the next transaction */
};

enum commit_result {
    COMMIT_DONE,
    COMMIT_NOTHING, /* nothing was committed, and nothing of it can show up later */
    COMMIT_UNSURE,  /* it is not known */
};

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
    /* A point in the transaction, to come back to; then one of the two. */
    bool (*mark)(struct database *database);
    bool (*forget_mark)(struct database *database);
    bool (*return_to_mark)(struct database *database);
    /* Whether only what was done since the mark has failed, so that the transaction can go on. */
    bool (*can_go_on)(const struct database *database);
    /* "what: the database's own words". Returns false. */
    bool (*describe)(const struct database *database, const char *what, struct error *error);
    /* Whether it is still the database that was opened. If not, nobody may be told of anything that
     * it commits. */
    bool (*is_in_place)(const struct database *database, struct error *error);
    /* How far the database's clock is ahead of this process's: deadlines are by the database's. */
    int64_t (*ahead_ms)(const struct database *database);
    /* A number that grows with each row that is written. */
    int64_t (*written)(const struct database *database);
    /* The bytes that limits.store_bytes counts, with those that this transaction has written. */
    bool (*used_bytes)(struct database *database, int64_t *bytes);
    /* Statements of statements.h, as row.h has them. A write may be queued: that it has failed is
     * seen with the next of the others, or with the commit. */
    bool (*write)(struct database *database, enum statement which, const struct value *values,
                  size_t count);
    /* Waits for a write, and counts the rows that it has changed. */
    bool (*change)(struct database *database, enum statement which, const struct value *values,
                   size_t count, int64_t *changed);
    bool (*read)(struct database *database, enum statement which, const struct value *values,
                 size_t count, row_visitor *visit, void *context);
    enum backend_upkeep (*wants_upkeep)(const struct database *database);
    void (*upkeep)(struct database *database);
    /* A descriptor to wait for beside the queue, readable when there may be a hint; -1: none. */
    int (*wake_fd)(const struct database *database);
    /* Whether another process has committed something since. It may miss one: the feed does not. */
    bool (*take_hint)(struct database *database);
    /* Whether a commit, of which it was not known, was done after all; tells it once. This
     * process's view of its rows may then differ from the database. */
    bool (*take_late_commit)(struct database *database);
    /* Whether what this process had committed was missing when it connected anew; tells it once. */
    bool (*take_loss)(struct database *database);

    const struct task_rows *tasks;
    const struct copy_rows *copy;
};
