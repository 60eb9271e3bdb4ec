/* Tasks as rows; the counts of those that limits count. */
#pragma once

#include "row.h"
#include "taskgate/store/store.h"

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
typedef bool ended_visitor(void *context, const struct ended_task *task);
/* Writes a part of a task. */
typedef bool task_writer(struct database *database, const struct task *task);

/* The whole task with request and outcome; the caller owns the reference. */
enum row_result task_rows_get(struct database *database, struct str id, struct task **task);
/* `keeper`: the task lives with this replica; NULL: with none yet. */
bool task_rows_insert(struct database *database, const struct task *task,
                      const struct keeper *keeper);
/* Writes what a transition from `from` changed. ROW_ABSENT: the row is not in `from`. */
enum row_result task_rows_move(struct database *database, const struct task *task,
                               enum task_state from, bool with_outcome);
/* Deletes the request of a task that has ended, also in `task`, and writes its arguments, meta and
 * other params anew. `is_redacted`: these are no longer what the client sent. */
bool task_rows_end_request(struct database *database, struct task *task, bool is_redacted);
/* Of a task whose arguments an approver has changed: all of its request, and what it was. */
task_writer task_rows_edit;
/* With its votes when it was changed. Its reach: the owner, `promised` and `on_result`. */
task_writer task_rows_set_votes, task_rows_set_grant, task_rows_set_upstream, task_rows_set_message,
    task_rows_set_reach;
/* Makes `heir` the owner of at most `most` promised ones that have ended, if there are any. A visit
 * that fails is a failure of the database's. */
enum row_result task_rows_hand_over_ended(struct database *database, const char *owner,
                                          const char *source, const char *heir, size_t most,
                                          ended_visitor *visit, void *context);
/* The tasks that limits count. From reading to the end of the transaction nobody else may change
 * the counts. */
bool task_rows_count_limited(struct database *database, const char *owner,
                             struct limited_counts *counts);
/* Adds to the row of an owner only; "": of all, which the store writes once a transaction. */
bool task_rows_add_limited(struct database *database, const char *owner,
                           const struct limited_change *change);
/* At most `limit` tasks in the order that the query asks for, without request and outcome. */
bool task_rows_list(struct database *database, const struct store_task_query *query, size_t limit,
                    task_visitor visit, void *context);
/* All that wait for a decision and have source, tool, workflow and principal of the query, in no
 * order, without any long text. */
bool task_rows_list_waiting(struct database *database, const struct store_task_query *query,
                            task_visitor visit, void *context);
