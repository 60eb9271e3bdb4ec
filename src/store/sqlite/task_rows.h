/* Between rows and tasks. */
#pragma once

#include "rows.h"
#include "waiting_columns.h"

/* The columns of a task, in the order that task_rows_read() takes them. */
#define TASK_COLUMNS                                                                               \
    "task.sequence, task.id, task.state, task.source, task.owner, task.session, task.principal,"   \
    " task.tool, task.workflow, task.action, task.arguments_digest, task.definition_digest,"       \
    " task.progress_token, task.on_result, task.accelerated, task.keep_task, task.ttl_ms,"         \
    " task.poll_interval_ms, task.created_ms, task.decide_by_ms, task.updated_ms,"                 \
    " task.execute_by_ms, task.decided_ms, task.ended_ms, task.decided_by, task.reason,"           \
    " task.status_message, task.upstream_task, task.failure, task.outcome, task.client_name,"      \
    " task.client_version, task.promoted, task.retention_ms, task.expired_retention_ms,"           \
    " task.request_digest, task.headers_digest, task.refused_credentials, task.rule,"              \
    " task.policy_digest, task.owner_email, task.terms, task.votes, task.rule_digest,"             \
    " task.bound_digest, task.grant_facts, task.original_digest,"                                  \
    " task.original_request_digest, task.trace, task.maker, task.started_ms, task.brief,"          \
    " task.promised"
#define TASK_COLUMN_COUNT 53

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
