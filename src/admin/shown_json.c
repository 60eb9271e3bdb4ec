/* The words of the rule and of the server, for operators. */
#include "shown_json.h"

#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/brief.h"

void shown_json_add(struct buffer *out, const struct task *task, const struct config *config,
                    struct str arguments)
{
    /* In the order in which they are written; without a value: what stands for it. */
    static const char *const keys[] = {"ruleDescription", "highlight",      "toolDescription",
                                       "toolAnnotations", "toolDifference", "listed"};
    enum { COUNT = sizeof keys / sizeof *keys, HIGHLIGHT = 1 };
    struct str values[COUNT] = {STR_EMPTY};
    json_members(str_from(task->shown), keys, COUNT, values);
    brief_add_facts(out, task, config, arguments);
    for (size_t i = 0; i < COUNT; i++) {
        json_add_key(out, keys[i]);
        if (values[i].length > 0)
            buffer_append(out, values[i]);
        else
            buffer_append_text(out, i == HIGHLIGHT ? "[]" : "null");
    }
}
