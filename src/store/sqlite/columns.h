/* Columns that several statements select, in the order in which their readers take them. */
#pragma once

/* As the index task_by_decide_by has it: a task without a deadline is the last. */
#define DECIDE_BY_KEY "iif(decide_by_ms = 0, 9223372036854775807, decide_by_ms)"

/* Of the audit trail: as enum audit_column. */
#define AUDIT_COLUMNS                                                                              \
    "actor_name, actor_kind, arguments_digest, at_ms, decision, definition_digest, event,"         \
    " from_state, hash, kept_digest, person, policy_digest, principal, reason, request_digest,"    \
    " rule, sequence, source, task_id, to_state, tool, via, votes, workflow"

/* A column that a notice takes from its task. It is NULL if the task has gone. */
#define OF_NOTICED_TASK(column)                                                                    \
    "(SELECT " column                                                                              \
    " FROM task AS told JOIN task_request AS asked ON asked.task = told.sequence"                  \
    " WHERE told.id = outbox_notice.task_id)"
/* The same, where the notice has the arguments, too. */
#define WITH_ARGUMENTS(column)                                                                     \
    "CASE WHEN outbox_notice.arguments <> '' THEN " OF_NOTICED_TASK(column) " END"
/* Of a notice of the outbox. */
#define NOTICED_VOTES OF_NOTICED_TASK("told.terms") ", " OF_NOTICED_TASK("told.votes")
#define NOTICED_PARTS WITH_ARGUMENTS("asked.meta") ", " WITH_ARGUMENTS("asked.other_params")
#define NOTICED_OWNER OF_NOTICED_TASK("told.request_digest") ", " OF_NOTICED_TASK("told.owner")
#define NOTICED_COLUMNS                                                                            \
    OF_NOTICED_TASK("asked.shown") ", " NOTICED_VOTES ", " NOTICED_PARTS ", " NOTICED_OWNER
#define NOTICE_COLUMNS                                                                             \
    "outbox_notice.at_ms, outbox_notice.task_id, state, source, tool, workflow, principal,"        \
    " arguments_digest, decided_by, reason, status_message, arguments, created_ms, decide_by_ms,"  \
    " decided_ms, is_emergency, anchor, " NOTICED_COLUMNS

/* When a new delivery is due: never, while an earlier one of its task waits. */
#define DUE_UNLESS_WAITING                                                                         \
    "iif(EXISTS (SELECT 1 FROM outbox_delivery AS earlier WHERE earlier.target = key"              \
    " AND earlier.task_id = ?3), 9223372036854775807, ?4)"
