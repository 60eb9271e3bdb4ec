/*
 * Hiding argument values from operators, wherever a task is shown or told: redact_fields of
 * workflows. Any thread; nothing is owned.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"

/* Writes `value` (checked JSON) on one line, without the white space between its tokens, each
 * value that a dot path of the workflow names replaced by "[REDACTED]". A path looks into
 * every element of an array on its way. Of a workflow that the configuration no longer has,
 * the fields of all workflows are hidden: what was secret when the task was made stays so.
 * Returns whether something was hidden. */
bool redact_write(struct buffer *out, struct str value, const struct config *config,
                  const char *workflow);
/* Whether the value at a dot path is hidden, or lies in one that is. */
bool redact_hides(const struct config *config, const char *workflow, struct str path);
/* Whether the workflow has such paths: for arguments that are not at hand. */
bool redact_may_hide(const struct config *config, const char *workflow);
