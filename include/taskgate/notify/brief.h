/*
 * The facts that a list shows of a call. `task->brief` keeps them of a call that waits, so that
 * nobody reads long arguments for a row. Any thread; nothing is owned.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/notify/typed.h"
#include "taskgate/task/task.h"

/* Longer arguments are not in a row. */
#define BRIEF_ARGUMENTS_MAX 512

/* Appends the members summary, risk, riskBy, typed and marks. `arguments`: those of the task as
 * redact_write() writes them. */
void brief_add_facts(struct buffer *out, const struct task *task, const struct config *config,
                     struct str arguments);
/* Writes the text for task->brief, a JSON object, without the values that are hidden now. */
void brief_write(struct buffer *out, const struct task *task, const struct config *config);
/* Whether the task has such a text, and it hides what the configuration hides. */
bool brief_is_current(const struct task *task, const struct config *config);

/* The members of a current text. */
struct brief {
    struct str arguments; /* JSON; "null" for long ones */
    struct str summary;   /* JSON string, or "null" */
    struct str members;   /* all that a row has of it, with commas between them */
    bool has_hidden;      /* a part of the request is hidden, so that its digest must be, too */
};
void brief_read(struct brief *brief, struct str text);
/* The risk of a task, also of one that was read without `shown`. */
struct typed_risk brief_risk(const struct task *task);
