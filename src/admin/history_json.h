/* The outcomes of the other calls of a task's tool, as a member of it. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/store/tally.h"

/* NULL: the person may not see the calls of others. */
void history_json_add(struct buffer *out, const struct store_tally *tally);
