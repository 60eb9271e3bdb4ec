/*
 * Tasks and grants as operators see them (behaviour 10.2): one line of JSON each, with the values
 * hidden that the workflow's redact_fields name.
 */
#pragma once

#include "taskgate/core/digest.h"
#include "taskgate/store/grants.h"
#include "taskgate/task/task.h"

#include "operator.h"

void task_json_write(struct buffer *out, const struct task *task, const struct task_view *view);

/* ---- a row of the inbox: what a list shows of a call, however long its arguments are ---- */

/* Calls that are one row. */
struct row_stack {
    char key[DIGEST_HEX_BYTES];
    size_t count;
};
/* Calls of one owner, source, tool, workflow and risk have one name, which is no text to show, and
 * one key. `risk` is that of the task. */
void row_json_name(struct buffer *out, const struct task *task, struct str risk);
void row_json_key(const struct task *task, char key[DIGEST_HEX_BYTES]);

/* The task has a current brief, or is whole. */
void row_json_write(struct buffer *out, const struct task *task, const struct row_stack *stack,
                    const struct task_view *view);
/* The same of one call, with its state and decision. */
void row_json_write_event(struct buffer *out, const struct task *task,
                          const struct task_view *view);

/* ---- a grant ---- */

void grant_json_write(struct buffer *out, const struct store_grant *grant,
                      const struct config *config);
