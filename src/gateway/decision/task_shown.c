/* The words of the rule and of the server, as one JSON object. */
#include "task_shown.h"

#include "taskgate/json/members.h"

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

void task_shown_write(struct buffer *out, const struct task_origin *origin,
                      const struct config_rule *rule, const char *digest)
{
    buffer_append_char(out, '{');
    if (rule) {
        add_text(out, "ruleDescription", rule->description);
        add_text(out, "summary", rule->summary);
        add_highlight(out, &rule->highlight);
        add_text(out, "risk", config_risk_name(rule->risk));
    }
    const struct catalog_asked asked = {str_from(origin->source->id), str_from(origin->told_owner),
                                        origin->envelope->name.text};
    bool is_listed = catalog_describe_tool(origin->catalog, &asked, digest, out);
    json_add_key(out, "listed");
    buffer_append_text(out, is_listed ? "true}" : "false}");
}
