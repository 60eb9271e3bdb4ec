/* `_meta["io.modelcontextprotocol/related-task"]`: the task of a message. */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

#define RELATED_TASK "io.modelcontextprotocol/related-task"

/* Appends the key's value. */
void dialect_append_related(struct buffer *out, struct str task_id);
/* Appends `"_meta":{…}`, a member to be, without comma. */
void dialect_append_related_meta(struct buffer *out, struct str task_id);
/* Writes `object` with the key set in its _meta; the other members of _meta stay. */
void dialect_write_related(struct buffer *out, struct str object, struct str task_id);
