/* The outcome of the rules for a tool or a rule, as `check` and `explain` tell it. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/gateway/snapshot.h"

/* Loads the configuration for a command; every problem is written to stderr. NULL after errors
 * (exit 2). The caller releases it. `warnings` (may be NULL): how many there were. */
struct snapshot *judgement_load(const char *path, size_t *warnings);

/* {tool, source, rule, action, workflow, annotation, reason}; behaviour 2.10. `source` is JSON
 * text, as are `more` members, each behind a comma; empty without. */
void judgement_write_json(struct buffer *out, struct str tool, struct str source,
                          const struct policy_decision *decision, struct str reason,
                          struct str more);
/* ,"rule":{index, match, line}; null: the default action. */
void judgement_add_rule(struct buffer *out, const struct policy_decision *decision);
/* Why it is so, in a sentence. `source` may be NULL: any. */
void judgement_write_reason(struct buffer *out, const struct snapshot *snapshot,
                            const struct config_source *source, struct str tool,
                            const struct policy_decision *decision);
/* The decision of a rule (NULL: the default action) for a call that it fits. */
void judgement_of_rule(const struct config *config, const struct config_rule *rule,
                       struct policy_decision *decision);
