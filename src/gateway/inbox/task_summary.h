/*
 * How a task looks in the answers of the gateway's own tools (behaviour 11.7), whether it waits for
 * an approval or is a call that took too long.
 */
#pragma once

#include "call/call.h"

#define TASK_SUMMARY_WORKING (1U << TASK_PENDING | 1U << TASK_APPROVED | 1U << TASK_EXECUTING)

/* "working", "completed", "failed", "cancelled", "expired". */
const char *task_summary_status(enum task_state state);
/* The states that look like it; 0 for another word. */
unsigned pseudo_status_states(struct str status);

/* {taskId, createdAt, lastUpdatedAt, server, toolName, toolArgs, status, …, hasResult} */
void task_summary_write(struct buffer *out, const struct task *task);
/* {task_id, status, status_message, created_at, last_updated_at, server, tool, ttl, error} */
void task_summary_write_proxy(struct buffer *out, const struct task *task);
/* {taskId, toolName, status} of each task of the reply, with commas between them. */
void task_summary_write_working(struct buffer *out, const struct store_reply *working);
/* The cause of a failure, in words; no text for a task that has not failed. Appended raw. */
void task_summary_write_error(struct buffer *out, const struct task *task);

/* The tasks of this client in these states, the newest first, at most TASK_SUMMARY_MOST_LISTED. */
#define TASK_SUMMARY_MOST_LISTED 200
void task_summary_list(struct call *call, unsigned states, call_reply take);
