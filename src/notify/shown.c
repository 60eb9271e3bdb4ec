/* The sentence of a task's rule, for whoever shows or tells the task. */
#include "taskgate/notify/shown.h"

#include "taskgate/config/summary.h"
#include "taskgate/json/text.h"

bool shown_write_summary(struct buffer *out, const struct task *task, struct str arguments)
{
    struct buffer text;
    buffer_init(&text);
    bool has_summary =
        *task->shown && json_decode_string(json_member(str_from(task->shown), "summary"), &text);
    if (has_summary)
        summary_write(out, buffer_str(&text), arguments);
    buffer_finish(&text);
    return has_summary;
}
