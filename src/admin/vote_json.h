/*
 * The members of a task that tell of its votes: `votes`, `missing`, `quorum`, `reasons`,
 * `emergency`, and `you`: what the operator who looks may do (behaviour 9.1).
 */
#pragma once

#include "task_view.h"

/* `votes`, `missing` and `you` alone, for a row. */
void vote_json_add_row(struct buffer *out, const struct task *task, const struct task_view *view);
void vote_json_add(struct buffer *out, const struct task *task, const struct task_view *view,
                   bool definition_changed);
