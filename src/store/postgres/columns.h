/* Columns that several statements name, in the order in which their readers take them. */
#pragma once

#include "waiting_columns.h"

/* As the index taskgate_task_by_decide_by has it: a task without a deadline is the last. */
#define DECIDE_BY_KEY "(CASE WHEN decide_by_ms = 0 THEN 9223372036854775807 ELSE decide_by_ms END)"

/*
 * A task: COLUMN(kind, column, field). TEXT is a text that the task owns, FIXED an array in it, and
 * STATE, FAILURE and OUTCOME are its numbers of these types.
 */
#define TASK_COLUMN_TABLE(COLUMN)                                                                  \
    COLUMN(FIXED, id, id)                                                                          \
    COLUMN(STATE, state, state)                                                                    \
    COLUMN(TEXT, source, source)                                                                   \
    COLUMN(TEXT, owner, owner)                                                                     \
    COLUMN(TEXT, session, session)                                                                 \
    COLUMN(TEXT, principal, principal)                                                             \
    COLUMN(TEXT, tool, tool)                                                                       \
    COLUMN(TEXT, workflow, workflow)                                                               \
    COLUMN(TEXT, action, action)                                                                   \
    COLUMN(FIXED, arguments_digest, arguments_digest)                                              \
    COLUMN(FIXED, definition_digest, definition_digest)                                            \
    COLUMN(TEXT, progress_token, progress_token)                                                   \
    COLUMN(FLAG, on_result, on_result)                                                             \
    COLUMN(FLAG, accelerated, accelerated)                                                         \
    COLUMN(FLAG, keep_task, keep_task)                                                             \
    COLUMN(NUMBER, ttl_ms, ttl_ms)                                                                 \
    COLUMN(NUMBER, poll_interval_ms, poll_interval_ms)                                             \
    COLUMN(NUMBER, created_ms, created_ms)                                                         \
    COLUMN(NUMBER, decide_by_ms, decide_by_ms)                                                     \
    COLUMN(NUMBER, updated_ms, updated_ms)                                                         \
    COLUMN(NUMBER, execute_by_ms, execute_by_ms)                                                   \
    COLUMN(NUMBER, decided_ms, decided_ms)                                                         \
    COLUMN(NUMBER, ended_ms, ended_ms)                                                             \
    COLUMN(TEXT, decided_by, decided_by)                                                           \
    COLUMN(TEXT, reason, reason)                                                                   \
    COLUMN(TEXT, status_message, status_message)                                                   \
    COLUMN(TEXT, upstream_task, upstream_task)                                                     \
    COLUMN(FAILURE, failure, failure)                                                              \
    COLUMN(OUTCOME, outcome, outcome)                                                              \
    COLUMN(TEXT, client_name, client_name)                                                         \
    COLUMN(TEXT, client_version, client_version)                                                   \
    COLUMN(FLAG, promoted, promoted)                                                               \
    COLUMN(NUMBER, retention_ms, retention_ms)                                                     \
    COLUMN(NUMBER, expired_retention_ms, expired_retention_ms)                                     \
    COLUMN(FIXED, request_digest, request_digest)                                                  \
    COLUMN(FIXED, headers_digest, headers_digest)                                                  \
    COLUMN(TEXT, refused_credentials, refused_credentials)                                         \
    COLUMN(TEXT, rule, rule)                                                                       \
    COLUMN(FIXED, policy_digest, policy_digest)                                                    \
    COLUMN(FIXED, owner_email, owner_email)                                                        \
    COLUMN(TEXT, terms, terms)                                                                     \
    COLUMN(TEXT, votes, votes)                                                                     \
    COLUMN(FIXED, rule_digest, rule_digest)                                                        \
    COLUMN(FIXED, bound_digest, bound_digest)                                                      \
    COLUMN(TEXT, grant_facts, grant)                                                               \
    COLUMN(FIXED, original_digest, original_digest)                                                \
    COLUMN(FIXED, original_request_digest, original_request_digest)                                \
    COLUMN(TEXT, trace, trace)                                                                     \
    COLUMN(TEXT, maker, maker)                                                                     \
    COLUMN(NUMBER, started_ms, started_ms)                                                         \
    COLUMN(TEXT, brief, brief)                                                                     \
    COLUMN(FLAG, promised, promised)

#define TASK_COLUMN_NAME(kind, column, field) ", " #column
/* Behind the first column of a list. */
#define TASK_COLUMNS TASK_COLUMN_TABLE(TASK_COLUMN_NAME)
#define TASK_COLUMN_ONE(kind, column, field) +1
#define TASK_COLUMN_COUNT (0 TASK_COLUMN_TABLE(TASK_COLUMN_ONE))

/* The long texts of clients, and the outcome. The first five are in lists, too. */
#define TASK_BULK_COLUMNS                                                                          \
    "arguments, meta, other_params, original_arguments, shown, body, outcome_body,"                \
    " mirrored_headers"
#define TASK_BULK_COUNT 8
#define TASK_PLACEHOLDERS                                                                          \
    "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,"   \
    " $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38,"   \
    " $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51, $52, $53, $54, $55, $56,"   \
    " $57, $58, $59, $60, $61, $62, $63"
#define TASK_PLACEHOLDER_COUNT 63

/* ---- expressions ---- */

#define CLOCK_MS "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
/* Whether a grant is in force. */
#define GRANT_ANY "EXISTS (SELECT 1 FROM taskgate_grant WHERE ended_ms = 0)"
