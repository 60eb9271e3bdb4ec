/* Progress of a task: the gateway's own while a human thinks, upstream's while it runs. */
#include <inttypes.h>

#include "related_task.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/dialect.h"

void dialect_write_progress(struct buffer *out, struct str token, int64_t progress,
                            struct str message, struct str task_id)
{
    buffer_append_text(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                            "\"params\":{\"progressToken\":");
    buffer_append(out, token);
    buffer_append_format(out, ",\"progress\":%" PRId64, progress);
    if (message.length) {
        buffer_append_text(out, ",\"message\":");
        buffer_append_json_string(out, message);
    }
    if (task_id.length) {
        buffer_append_char(out, ',');
        dialect_append_related_meta(out, task_id);
    }
    buffer_append_text(out, "}}");
}

void dialect_rewrite_progress(struct buffer *out, struct str message, struct str token,
                              struct str task_id)
{
    struct buffer retokened, params;
    buffer_init(&retokened);
    buffer_init(&params);
    json_write_with_member(&retokened, json_member(message, "params"), "progressToken", token);
    dialect_write_related(&params, buffer_str(&retokened), task_id);
    json_write_with_member(out, message, "params", buffer_str(&params));
    buffer_finish(&retokened);
    buffer_finish(&params);
}

void dialect_write_related_message(struct buffer *out, struct str message, struct str id,
                                   struct str task_id)
{
    struct buffer params, related;
    buffer_init(&params);
    buffer_init(&related);
    dialect_write_related(&params, json_member(message, "params"), task_id);
    json_write_with_member(&related, message, "params", buffer_str(&params));
    if (id.length > 0)
        json_write_with_member(out, buffer_str(&related), "id", id);
    else
        buffer_append(out, buffer_str(&related));
    buffer_finish(&params);
    buffer_finish(&related);
}
