/*
 * The parts of a tools/call that an approval covers: its name, its arguments, its _meta without the
 * progress token, and the other members of its params (behaviour 7.16).
 */
#pragma once

#include "taskgate/core/digest.h"
#include "taskgate/json/envelope.h"
#include "taskgate/task/task.h"

/* Sets the task's `meta`, its `other_params`, in which the task field is not, and its
 * `request_digest`. */
void request_parts_bind(struct task *task, const struct envelope *envelope);
/* SHA-256 over the canonical form of all four. */
void request_parts_digest(const struct envelope *envelope, char digest[DIGEST_HEX_BYTES]);
