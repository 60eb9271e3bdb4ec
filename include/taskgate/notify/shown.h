/*
 * The context of a call for the people who decide: the words of its rule, and what the server says
 * of its tool. `task->shown` has it as it was when the call came
 * (src/gateway/decision/task_binding.c). Any thread; nothing is owned.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/marks.h"
#include "taskgate/task/task.h"

/* The witness of a task's or grant's `principal`, by its owner: "issuer", "gateway" (one of its own
 * tokens) or "client", whose word it is. */
const char *shown_principal_by(const char *owner);
/* Appends `unverified "NAME"`: first the witness (`by`), which no name can imitate or push away.
 * The word for an issuer is `verified`. */
void shown_append_asker(struct buffer *out, struct str principal, struct str by);

/* The next mark of the task whose place may be shown, from *position 0 on. `where` is appended, and
 * is the caller's. Of a value that is hidden there is none. */
bool shown_next_mark(const struct task *task, const struct config *config, size_t *position,
                     struct buffer *where, enum mark *mark);

/* Appends the agent's own words, or the mark in their place where a path hides them: they were the
 * argument REASON_PROPERTY. Returns false where it gave none. */
bool shown_write_agent_reason(struct buffer *out, const struct task *task,
                              const struct config *config);

/* Appends the sentence of the rule, filled from `arguments`: those of the task as redact_write()
 * writes them, so that it tells nothing that is hidden. Returns false, and writes nothing, where
 * the rule has none. */
bool shown_write_summary(struct buffer *out, const struct task *task, struct str arguments);
