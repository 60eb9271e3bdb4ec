/* Between rows and tasks. */
#pragma once

#include "columns.h"
#include "rows.h"

/* TASK_COLUMNS of a stepped statement, and arguments, meta, other_params, original_arguments
 * and shown, which must follow, as a task without its bulk: no request, no outcome text. */
struct task *task_rows_read(sqlite3_stmt *row);

/* WAITING_COLUMNS of a stepped statement, after the sequence. */
struct task *task_rows_read_waiting(sqlite3_stmt *row);

/* Members of struct task_rows. */
enum row_result task_rows_get(struct database *database, struct str id, struct task **task);
bool task_rows_insert(struct database *database, const struct task *task,
                      const struct keeper *keeper);
bool task_rows_edit(struct database *database, const struct task *task);
enum row_result task_rows_move(struct database *database, const struct task *task,
                               enum task_state from, bool with_outcome);
bool task_rows_end_request(struct database *database, struct task *task, bool is_redacted);
bool task_rows_set_votes(struct database *database, const struct task *task);
bool task_rows_set_grant(struct database *database, const struct task *task);
bool task_rows_set_upstream(struct database *database, const struct task *task);
bool task_rows_set_message(struct database *database, const struct task *task);
bool task_rows_list_waiting(struct database *database, const struct store_task_query *query,
                            task_visitor visit, void *context);
bool task_rows_set_reach(struct database *database, const struct task *task);
bool task_rows_list(struct database *database, const struct store_task_query *query, size_t limit,
                    task_visitor visit, void *context);
