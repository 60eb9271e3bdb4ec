/*
 * A task's rule and tool, as the people who decide are told of them. It is kept with the task, so
 * that it neither changes with a reload nor gets lost by a restart. A JSON object, each member of
 * which may be missing but the last:
 *
 *     ruleDescription, summary (with its {path}s), highlight, confirm     as the rule has them
 *     risk, riskBy     as the rule has it ("rule"), else by the server's hints ("server"), or
 *                      "medium" by nobody's word ("default")
 *     headers          of the call, those that may change what it does (request_headers.h)
 *     marks            what makes names and texts read as others than they are (task_marks.h)
 *     toolDescription, toolAnnotations     as the server has told the caller of the tool
 *     listed                               whether the caller's list has the tool
 */
#pragma once

#include "task_binding.h"

/* Writes it for a call of the tool as it is known of the owner's list. `task` is bound to its
 * request already. */
void task_shown_write(struct buffer *out, const struct task *task, const struct task_origin *origin,
                      const struct config_rule *rule, const struct catalog_tool *tool);
