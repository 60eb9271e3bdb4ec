/*
 * A task's rule and tool, as the people who decide are told of them. It is kept with the task, so
 * that it neither changes with a reload nor gets lost by a restart. A JSON object, each member of
 * which may be missing but the last:
 *
 *     ruleDescription, summary (with its {path}s), highlight, risk     as the rule has them
 *     toolDescription, toolAnnotations     as the server has told the caller of the tool
 *     listed                               whether the caller's list has the tool
 */
#pragma once

#include "task_binding.h"

/* Writes it for a call of the tool that was bound to the definition `digest`. */
void task_shown_write(struct buffer *out, const struct task_origin *origin,
                      const struct config_rule *rule, const char *digest);
