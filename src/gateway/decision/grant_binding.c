/* The digests that a grant and a new call must have in common. */
#include "grant_binding.h"

#include "taskgate/json/canonical.h"
#include "taskgate/json/members.h"
#include "taskgate/json/paths.h"

/* Trace context is new in each call, and changes nothing of it. */
static char *const trace_keys[] = {"traceparent", "tracestate", "baggage"};

static void write_strings(struct buffer *out, const char *key, const struct config_strings *strings)
{
    json_add_key(out, key);
    buffer_append_char(out, '[');
    for (size_t i = 0; i < strings->count; i++) {
        if (i > 0)
            buffer_append_char(out, ',');
        buffer_append_json_string(out, str_from(strings->items[i]));
    }
    buffer_append_char(out, ']');
}

/* All that says which calls the rule is for and what becomes of them. */
static void digest_rule(const struct config_rule *rule, char digest[DIGEST_HEX_BYTES])
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_char(&text, '{');
    if (rule) {
        json_add_text(&text, "match", rule->match);
        json_add_text(&text, "action", config_action_name(rule->action));
        json_add_text_or_null(&text, "policy", rule->policy_id);
        json_add_text_or_null(&text, "approval", rule->approval);
        write_strings(&text, "sources", &rule->sources);
        write_strings(&text, "subjects", &rule->subjects);
        write_strings(&text, "groups", &rule->groups);
    }
    buffer_append_char(&text, '}');
    digest_sha256_hex(buffer_str(&text), digest);
    buffer_finish(&text);
}

static void digest_request(const struct task *task, const struct ballot_names *vary,
                           char digest[DIGEST_HEX_BYTES])
{
    struct buffer text;
    buffer_init(&text);
    buffer_append_text(&text, "{\"arguments\":");
    json_write_without_paths(&text, str_from(task->arguments), vary->items, vary->count);
    buffer_append_text(&text, ",\"meta\":");
    json_write_without_paths(&text, str_from(task->meta), trace_keys,
                             sizeof trace_keys / sizeof *trace_keys);
    buffer_append_text(&text, ",\"otherParams\":");
    buffer_append_text(&text, task->other_params);
    json_add_text(&text, "headers", task->headers_digest);
    buffer_append_char(&text, '}');
    canonical_digest(buffer_str(&text), digest);
    buffer_finish(&text);
}

void grant_binding_set(struct task *task, const struct policy_decision *decision)
{
    const struct config_workflow *workflow = decision->workflow;
    if (!workflow || !workflow->ballot.grants.are_offered)
        return;
    digest_rule(decision->rule, task->rule_digest);
    digest_request(task, &workflow->ballot.grants.vary, task->bound_digest);
}
