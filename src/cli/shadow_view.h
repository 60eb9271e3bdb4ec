/*
 * The shadow's decision on a tool, for `explain`.
 */
#pragma once

#include "consultation.h"

/* Writes one line; nothing without a shadow. `consultation` may be NULL: no call is in view. */
void shadow_view_write_text(struct buffer *out, const struct snapshot *snapshot,
                            const struct policy_request *request,
                            const struct consultation *consultation);
/* ,"shadow":{"decision":…,"rule":…,"workflow":…}; nothing without a shadow. */
void shadow_view_write_json(struct buffer *out, const struct snapshot *snapshot,
                            const struct policy_request *request,
                            const struct consultation *consultation);
