/* Between rows and tasks. */
#pragma once

#include "database.h"
#include "taskgate/task/task.h"

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
    " task.bound_digest, task.grant_facts, task.original_digest"
#define TASK_COLUMN_COUNT 47

enum row_result { ROW_FOUND, ROW_ABSENT, ROW_FAILED };

/* The whole task with request and outcome; the caller owns the reference. */
enum row_result task_rows_get(struct database *database, struct str id, struct task **task);
/* TASK_COLUMNS of a stepped statement, and arguments, meta, other_params and shown, which must
 * follow, as a task without its bulk: no request, no outcome text. */
struct task *task_rows_read(sqlite3_stmt *row);
/* Deletes the request of a task that has ended, and writes its arguments, meta and other params
 * anew. `is_redacted`: these are no longer what the client sent. */
bool task_rows_end_request(struct database *database, struct task *task, bool is_redacted);
/* The bytes of the task that a client wrote. They may be as many as a body has. */
size_t task_rows_bytes(const struct task *task);
bool task_rows_insert(struct database *database, const struct task *task);
/* Writes what a transition from `from` changed. ROW_ABSENT: the row is not in `from`. */
enum row_result task_rows_move(struct database *database, const struct task *task,
                               enum task_state from, bool with_outcome);
