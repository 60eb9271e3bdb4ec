/* The tables of functions that make up store_postgres. */
#pragma once

#include "connection.h"

extern const struct task_rows postgres_task_rows;
extern const struct copy_rows postgres_copy_rows;

/* Asks for something that is not known yet, and waits. */
bool known_ask(struct database *database, unsigned which, int kind, const bool *is_known);
/* Makes the totals of this transaction known. */
bool totals_know(struct database *database);
/* Takes the bytes of rows that have gone, the first number of `rows`, from the totals; clears it.
 */
bool totals_give_back(struct database *database, PGresult *rows);

/* A task of the columns of `row`: TASK_COLUMNS behind the sequence, and the first five of
 * TASK_BULK_COLUMNS; so without request and outcome. */
struct task *task_row_read(const PGresult *rows, int row);

/* A task of WAITING_COLUMNS, after the sequence. */
struct task *task_row_read_waiting(const PGresult *rows, int row);

/* Members of struct task_rows. */
enum row_result postgres_task_get(struct database *database, struct str id, struct task **task);
bool postgres_task_insert(struct database *database, const struct task *task,
                          const struct keeper *keeper);
enum row_result postgres_task_move(struct database *database, const struct task *task,
                                   enum task_state from, bool with_outcome);
bool postgres_task_end_request(struct database *database, struct task *task, bool is_redacted);
bool postgres_task_list_waiting(struct database *database, const struct store_task_query *query,
                                task_visitor visit, void *context);
bool postgres_task_edit(struct database *database, const struct task *task);
bool postgres_task_set_votes(struct database *database, const struct task *task);
bool postgres_task_set_grant(struct database *database, const struct task *task);
bool postgres_task_set_upstream(struct database *database, const struct task *task);
bool postgres_task_set_message(struct database *database, const struct task *task);
bool postgres_task_set_reach(struct database *database, const struct task *task);
bool postgres_task_list(struct database *database, const struct store_task_query *query,
                        size_t limit, task_visitor visit, void *context);
