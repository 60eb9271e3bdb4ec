/* The sentence of a task's rule, for whoever shows or tells the task. */
#include "taskgate/notify/shown.h"

#include "taskgate/config/summary.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/text.h"

const char *shown_principal_by(const char *owner)
{
    if (str_starts_with(str_from(owner), STR("sub:")))
        return "issuer";
    return str_starts_with(str_from(owner), STR("admin:")) ? "gateway" : "client";
}

void shown_append_asker(struct buffer *out, struct str principal, struct str by)
{
    bool is_known = str_equal(by, STR("issuer")) || str_equal(by, STR("gateway"));
    buffer_append_text(out,
                       is_known ? by.bytes[0] == 'i' ? "verified " : "gateway " : "unverified ");
    visible_append_quoted(out, principal, VISIBLE_QUOTED_MAX);
}

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
