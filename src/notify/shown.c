/* The sentence of a task's rule, for each form in which a task is shown. */
#include "taskgate/notify/shown.h"

#include "taskgate/config/summary.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/reason_property.h"
#include "taskgate/notify/redact.h"

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
    OWNED_BUFFER(text);
    bool has_summary =
        *task->shown && json_decode_string(json_member(str_from(task->shown), "summary"), &text);
    if (has_summary)
        summary_write(out, buffer_str(&text), arguments);
    return has_summary;
}

bool shown_write_agent_reason(struct buffer *out, const struct task *task,
                              const struct config *config)
{
    struct str reason =
        *task->shown ? json_member(str_from(task->shown), "reasonOfAgent") : STR_EMPTY;
    if (json_type(reason) != JSON_STRING)
        return false;
    if (!redact_hides(config, task->workflow, STR(REASON_PROPERTY)))
        return json_decode_string(reason, out);
    buffer_append_text(out, "[REDACTED]");
    return true;
}

/* A hidden path is the same in arguments, `_meta` and further parameters. */
static bool may_show(const struct task *task, const struct config *config, struct str where)
{
    struct str outer, rest;
    bool is_below = str_cut(where, '.', &outer, &rest) &&
                    (str_equal(outer, STR("_meta")) || str_equal(outer, STR("params")));
    return !redact_hides(config, task->workflow, where) &&
           !(is_below && redact_hides(config, task->workflow, rest));
}

bool shown_next_mark(const struct task *task, const struct config *config, size_t *position,
                     struct buffer *where, enum mark *mark)
{
    static const char *const names[] = {"where", "what"};
    struct str one, values[2];
    struct str marks = *task->shown ? json_member(str_from(task->shown), "marks") : STR_EMPTY;
    size_t start = where->length;
    while (json_next_element_members(marks, position, &one, names, 2, values)) {
        json_decode_string(values[0], where);
        struct str word = str_slice(values[1].bytes + 1, values[1].length - 2);
        struct str path = str_slice(where->bytes + start, where->length - start);
        *mark = mark_of_name(word);
        if (*mark < MARK_COUNT && may_show(task, config, path))
            return true;
        where->length = start;
    }
    return false;
}
