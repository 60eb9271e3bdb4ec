/* The approvers of a workflow, and those of them in the file, as `explain` tells it. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"

/* "2 persons of dba; in this file: alice, bob". */
void electorate_view_write_text(struct buffer *out, const struct config *config,
                                const struct config_workflow *workflow);
/* ,"approvers":{groups, people, quorum, present, missing, open} */
void electorate_view_write_json(struct buffer *out, const struct config *config,
                                const struct config_workflow *workflow);
