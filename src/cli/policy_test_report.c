/* Reports the results of cases, for people and as JSON: differences, and unreached rules. */
#include "policy_test.h"

#include "taskgate/json/visible.h"

/* ---- a case ---- */

static void policy_test_report_append_line(struct buffer *out, const char *label, char sign,
                                           const char *text)
{
    buffer_append_format(out, "    %-10s%c ", label, sign);
    visible_append(out, str_from(text));
    buffer_append_char(out, '\n');
}

static void policy_test_report_append_call(struct buffer *out, const struct test_case *one)
{
    buffer_append_format(out, "    %-10s  ", "call");
    visible_append(out, str_from(one->tool));
    buffer_append_char(out, ' ');
    visible_append_json_for_people(out, one->arguments ? str_from(one->arguments) : STR("{}"));
    buffer_append_text(out, " of ");
    visible_append(out, str_from(one->source->id));
    buffer_append_char(out, '\n');
}

/* As `explain` tells it, further in. */
static void policy_test_report_append_explanation(struct buffer *out,
                                                  const struct consultation *consultation)
{
    struct buffer text;
    struct str rest, line;
    buffer_init(&text);
    consultation_write_text(&text, consultation);
    rest = buffer_str(&text);
    while (rest.length) {
        str_cut(rest, '\n', &line, &rest);
        buffer_append_text(out, "      ");
        buffer_append(out, line);
        buffer_append_char(out, '\n');
    }
    buffer_finish(&text);
}

void test_report_failure(struct buffer *out, const struct test_file *file,
                         const struct test_case *one, const struct test_outcome *outcome)
{
    buffer_append_format(out, "FAILED %s:%d:%d: ", file->path, one->line, one->column);
    visible_append(out, str_from(one->name));
    buffer_append_char(out, '\n');
    policy_test_report_append_call(out, one);
    for (size_t i = 0; i < outcome->difference_count; i++) {
        const struct test_difference *difference = &outcome->differences[i];
        policy_test_report_append_line(out, difference->what, '-', difference->expected);
        policy_test_report_append_line(out, "", '+', difference->actual);
    }
    policy_test_report_append_explanation(out, &outcome->consultation);
}

static void append_text_json(struct buffer *out, const char *key, const char *text)
{
    buffer_append_format(out, "\"%s\":", key);
    if (text)
        buffer_append_json_string(out, str_from(text));
    else
        buffer_append_text(out, "null");
}

void test_report_case_json(struct buffer *out, const struct test_case *one,
                           const struct test_outcome *outcome)
{
    const struct config_rule *rule = outcome->ruled.rule;
    const struct policy_decision *decision = &outcome->consultation.decision;
    append_text_json(out, "name", one->name);
    buffer_append_format(out, ",\"line\":%d,\"column\":%d,\"passed\":%s,\"outcome\":\"%s\",",
                         one->line, one->column, outcome->difference_count == 0 ? "true" : "false",
                         test_decision_name(outcome->decision));
    append_text_json(out, "rule", rule ? rule->match : NULL);
    buffer_append_char(out, ',');
    append_text_json(out, "workflow",
                     outcome->decision == TEST_APPROVE ? decision->workflow->name : NULL);
    consultation_write_json(out, &outcome->consultation);
    buffer_append_text(out, ",\"differences\":[");
    for (size_t i = 0; i < outcome->difference_count; i++) {
        const struct test_difference *difference = &outcome->differences[i];
        buffer_append_text(out, i > 0 ? ",{" : "{");
        append_text_json(out, "what", difference->what);
        buffer_append_char(out, ',');
        append_text_json(out, "expected", difference->expected);
        buffer_append_char(out, ',');
        append_text_json(out, "actual", difference->actual);
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, ']');
}

/* ---- rules and policies that no case has reached ---- */

/* One thing that was not reached. */
struct unreached {
    const char *kind, *file;
    struct str name;
    int line, column;
};

/* The next one; start with *position 0. Rules, the default action, policies. */
static bool next_unreached(const struct test_file *file, size_t *position, struct unreached *item)
{
    const struct config *config = file->snapshot->config;
    const struct cedar_policies *policies = policy_cedar(file->snapshot->policy);
    /* A default that denies lets no unexpected call through. */
    bool has_default = config->default_action != ACTION_DENY;
    size_t rules = file->has_rules ? config->rule_count + has_default : 0;
    for (; *position < rules + cedar_policies_count(policies); (*position)++) {
        bool is_rule = *position < rules;
        if (is_rule ? file->rules[*position] : file->policies[*position - rules])
            continue;
        if (*position < config->rule_count && is_rule) {
            const struct config_rule *rule = &config->rules[*position];
            *item = (struct unreached){"rule", file->target, str_from(rule->match), rule->line,
                                       rule->column};
        } else if (is_rule) {
            *item = (struct unreached){"default", file->target, STR("the default action"), 0, 0};
        } else {
            const struct cedar_policy *policy = cedar_policies_at(policies, *position - rules);
            struct cedar_position place = cedar_policy_position(policy);
            *item = (struct unreached){"policy", place.source, test_name_of(policy),
                                       (int)place.line, (int)place.column};
        }
        (*position)++;
        return true;
    }
    return false;
}

size_t test_report_unreached(struct buffer *out, const struct test_file *file)
{
    struct unreached item;
    size_t count = 0;
    for (size_t position = 0; next_unreached(file, &position, &item); count++) {
        buffer_append_format(out, "  %s", item.file);
        if (item.line)
            buffer_append_format(out, ":%d:%d", item.line, item.column);
        buffer_append_format(out, ": %s%s", item.line ? item.kind : "", item.line ? " " : "");
        visible_append(out, item.name);
        buffer_append_char(out, '\n');
    }
    return count;
}

void test_report_unreached_json(struct buffer *out, const struct test_file *file)
{
    struct unreached item;
    const char *between = "";
    buffer_append_char(out, '[');
    for (size_t position = 0; next_unreached(file, &position, &item); between = ",") {
        buffer_append_format(out, "%s{\"kind\":\"%s\",\"name\":", between, item.kind);
        buffer_append_json_string(out, item.name);
        buffer_append_char(out, ',');
        append_text_json(out, "file", item.file);
        buffer_append_format(out, ",\"line\":%d,\"column\":%d}", item.line, item.column);
    }
    buffer_append_char(out, ']');
}
