/* The words of the rule and of the server, for operators. */
#include "shown_json.h"

#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/notify/shown.h"
#include "taskgate/notify/typed.h"

static void add_summary(struct buffer *out, const struct task *task, struct str arguments)
{
    struct buffer summary;
    buffer_init(&summary);
    bool has_summary = shown_write_summary(&summary, task, arguments);
    json_add_key(out, "summary");
    if (has_summary)
        buffer_append_json_string(out, buffer_str(&summary));
    else
        buffer_append_text(out, "null");
    buffer_finish(&summary);
}

static void add_word(struct buffer *out, const char *key, struct str word)
{
    json_add_key(out, key);
    buffer_append_json_string(out, word);
}

static void add_typed(struct buffer *out, const struct task *task, struct str arguments)
{
    struct typed_value asked;
    json_add_key(out, "typed");
    if (!typed_is_asked(task)) {
        buffer_append_text(out, "null");
        return;
    }
    typed_find(&asked, task, arguments);
    buffer_append_char(out, '{');
    add_word(out, "path", buffer_str(&asked.path));
    buffer_append_char(out, '}');
    typed_finish(&asked);
}

static void add_marks(struct buffer *out, const struct task *task, const struct config *config)
{
    struct buffer where;
    enum mark mark;
    buffer_init(&where);
    json_add_key(out, "marks");
    buffer_append_char(out, '[');
    for (size_t position = 0, count = 0; shown_next_mark(task, config, &position, &where, &mark);
         count++) {
        buffer_append_text(out, count > 0 ? ",{" : "{");
        add_word(out, "where", buffer_str(&where));
        json_add_text(out, "what", mark_name(mark));
        buffer_append_char(out, '}');
        buffer_clear(&where);
    }
    buffer_append_char(out, ']');
    buffer_finish(&where);
}

void shown_json_add(struct buffer *out, const struct task *task, const struct config *config,
                    struct str arguments)
{
    /* In the order in which they are written; without a value: what stands for it. */
    static const char *const keys[] = {"ruleDescription", "highlight",       "reasonOfAgent",
                                       "toolDescription", "toolAnnotations", "toolDifference",
                                       "listed"};
    enum { COUNT = sizeof keys / sizeof *keys, HIGHLIGHT = 1 };
    struct str values[COUNT] = {STR_EMPTY};
    json_members(str_from(task->shown), keys, COUNT, values);
    add_summary(out, task, arguments);
    const struct typed_risk risk = typed_risk_of(task);
    add_word(out, "risk", risk.risk);
    add_word(out, "riskBy", risk.by);
    add_typed(out, task, arguments);
    add_marks(out, task, config);
    for (size_t i = 0; i < COUNT; i++) {
        json_add_key(out, keys[i]);
        if (values[i].length > 0)
            buffer_append(out, values[i]);
        else
            buffer_append_text(out, i == HIGHLIGHT ? "[]" : "null");
    }
}
