/*
 * A grant as operators see it: one line of JSON, with the values hidden that the workflow's
 * redact_fields name.
 */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/store/grants.h"

void grant_json_write(struct buffer *out, const struct store_grant *grant,
                      const struct config *config);
