/* Columns that several statements select, in the order in which their readers take them. */
#pragma once

#include "waiting_columns.h"

/* As the index task_by_decide_by has it: a task without a deadline is the last. */
#define DECIDE_BY_KEY "iif(decide_by_ms = 0, 9223372036854775807, decide_by_ms)"

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
