/* The words of the rule and of the server, as one JSON object. */
#include "task_shown.h"

#include "taskgate/json/members.h"
#include "taskgate/policy/pins.h"

#include "task_marks.h"

static void add_text(struct buffer *out, const char *key, const char *text)
{
    if (text && *text)
        json_add_text(out, key, text);
}

static void add_highlight(struct buffer *out, const struct config_strings *paths)
{
    if (paths->count == 0)
        return;
    json_add_key(out, "highlight");
    for (size_t i = 0; i < paths->count; i++) {
        buffer_append_char(out, i == 0 ? '[' : ',');
        buffer_append_json_string(out, str_from(paths->items[i]));
    }
    buffer_append_char(out, ']');
}

static bool says(const struct catalog_tool *tool, enum policy_hint hint)
{
    /* Only the definition that the call is bound to speaks. */
    return *tool->digest && (tool->hints.given & tool->hints.truth & 1U << hint) != 0;
}

static void add_risk(struct buffer *out, const struct config_rule *rule,
                     const struct catalog_tool *tool)
{
    enum config_risk risk = rule ? rule->risk : RISK_UNSAID;
    const char *by = "rule";
    if (risk == RISK_UNSAID) {
        by = "server";
        if (says(tool, HINT_DESTRUCTIVE))
            risk = RISK_HIGH;
        else if (says(tool, HINT_READ_ONLY))
            risk = RISK_LOW;
    }
    if (risk == RISK_UNSAID) {
        by = "default";
        risk = RISK_MEDIUM;
    }
    json_add_text(out, "risk", config_risk_name(risk));
    json_add_text(out, "riskBy", by);
}

/* Of a tool that nobody has accepted as it is. */
static void add_difference(struct buffer *out, const struct task_origin *origin,
                           const struct catalog_tool *tool)
{
    const struct config_source *source = origin->source;
    const struct pin_name name = {str_from(source->id), DEFINITION_TOOL,
                                  origin->envelope->name.text};
    struct buffer text;
    if (source->pins[DEFINITION_TOOL] == PIN_OFF || !pins_is_changed(&name, tool->definition))
        return;
    buffer_init(&text);
    pins_write_difference(&name, &text);
    json_add_key(out, "toolDifference");
    buffer_append_json_string(out, buffer_str(&text));
    buffer_finish(&text);
}

void task_shown_write(struct buffer *out, const struct task *task, const struct task_origin *origin,
                      const struct config_rule *rule, const struct catalog_tool *tool)
{
    buffer_append_char(out, '{');
    if (rule) {
        add_text(out, "ruleDescription", rule->description);
        add_text(out, "summary", rule->summary);
        add_highlight(out, &rule->highlight);
        add_text(out, "confirm", rule->confirm);
    }
    add_text(out, "reasonOfAgent", origin->agent_reason);
    add_risk(out, rule, tool);
    add_difference(out, origin, tool);
    if (origin->headers.length > 0) {
        json_add_key(out, "headers");
        buffer_append(out, origin->headers);
    }
    json_add_key(out, "marks");
    task_marks_write(out, task, origin->agent_reason);
    const struct catalog_asked asked = {str_from(origin->source->id), str_from(origin->told_owner),
                                        origin->envelope->name.text};
    bool is_listed = catalog_describe_tool(origin->catalog, &asked, tool->digest, out);
    json_add_key(out, "listed");
    buffer_append_text(out, is_listed ? "true}" : "false}");
}
