/* Tying a message to its task. */
#include "related_task.h"

#include "taskgate/json/text.h"

void dialect_append_related(struct buffer *out, struct str task_id)
{
    buffer_append_text(out, "{\"taskId\":");
    buffer_append_json_string(out, task_id);
    buffer_append_char(out, '}');
}

void dialect_append_related_meta(struct buffer *out, struct str task_id)
{
    buffer_append_text(out, "\"_meta\":{\"" RELATED_TASK "\":");
    dialect_append_related(out, task_id);
    buffer_append_char(out, '}');
}

void dialect_write_related(struct buffer *out, struct str object, struct str task_id)
{
    struct buffer value, meta;
    buffer_init(&value);
    buffer_init(&meta);
    dialect_append_related(&value, task_id);
    json_write_with_member(&meta, json_member(object, "_meta"), RELATED_TASK, buffer_str(&value));
    json_write_with_member(out, object, "_meta", buffer_str(&meta));
    buffer_finish(&value);
    buffer_finish(&meta);
}
