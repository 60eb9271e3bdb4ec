/* From options to facts, to a decision, to text. */
#include "consultation.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/config/duration.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"
#include "taskgate/policy/cedar.h"
#include "taskgate/policy/gate.h"
#include "taskgate/policy/verdict.h"

#include "options.h"

bool consultation_is_wanted(const struct consultation_options *options)
{
    return options->arguments || options->principal || options->at || options->annotations;
}

/* ---- the facts of the call ---- */

static bool check_object(const char *option, const char *text)
{
    struct error error = {""};
    if (!json_check(str_from(text), &error))
        options_complain("--%s is not JSON: %s", option, error.message);
    else if (json_type(str_from(text)) != JSON_OBJECT)
        options_complain("--%s must be a JSON object", option);
    else
        return true;
    return false;
}

static const struct {
    const char *name;
    enum json_type type;
} principal_members[] = {
    {"name", JSON_STRING},    {"client_name", JSON_STRING}, {"client_version", JSON_STRING},
    {"subject", JSON_STRING}, {"issuer", JSON_STRING},      {"groups", JSON_ARRAY},
    {"scopes", JSON_ARRAY},
};
#define PRINCIPAL_NAMES "name, client_name, client_version, subject, issuer, groups and scopes"

static bool is_list_of_texts(struct str array)
{
    size_t position = 0;
    struct str element;
    while (json_next_element(array, &position, &element)) {
        if (json_type(element) != JSON_STRING)
            return false;
    }
    return true;
}

/* NULL: it is as it must be. */
static const char *complaint_of(struct str key, struct str value)
{
    for (size_t i = 0; i < sizeof principal_members / sizeof *principal_members; i++) {
        if (!str_equal(key, str_from(principal_members[i].name)))
            continue;
        bool is_list = principal_members[i].type == JSON_ARRAY;
        bool is_good =
            json_type(value) == principal_members[i].type && (!is_list || is_list_of_texts(value));
        return is_good ? NULL : is_list ? "must be a list of texts" : "must be text";
    }
    return "is not one of " PRINCIPAL_NAMES;
}

/* A name that is passed over would be another caller than the one that was meant. */
static bool check_principal(struct str object)
{
    size_t position = 0;
    for (struct str key, value; json_next_member(object, &position, &key, &value);) {
        const char *complaint = complaint_of(key, value);
        if (!complaint)
            continue;
        options_complain("--principal: %.*s %s", STR_ARGS(key), complaint);
        return false;
    }
    bool is_verified = json_type(json_member(object, "subject")) == JSON_STRING;
    bool has_words = json_member(object, "groups").length || json_member(object, "issuer").length ||
                     json_member(object, "scopes").length;
    if (is_verified || !has_words)
        return true;
    options_complain("--principal: subject is missing, without which there are no issuer, groups "
                     "and scopes");
    return false;
}

static bool consultation_read_principal(struct consultation *consultation, const char *text)
{
    struct str object = str_from(text);
    if (json_type(object) != JSON_OBJECT) {
        consultation->owner = memory_copy_text(text);
    } else {
        if (!check_object("principal", text) || !check_principal(object))
            return false;
        consultation->owner = json_string_text(json_member(object, "name"), NULL);
        consultation->client_name = json_string_text(json_member(object, "client_name"), NULL);
        consultation->client_version =
            json_string_text(json_member(object, "client_version"), NULL);
        consultation->request.verified = verified_caller_read(&consultation->caller, object);
    }
    if (!consultation->owner)
        consultation->owner = memory_copy_text("anonymous");
    consultation->facts.principal = (struct policy_principal){
        str_from(consultation->owner), str_from(consultation->client_name),
        str_from(consultation->client_version)};
    return true;
}

bool consultation_read_time(const char *text, int64_t *now_ms)
{
    size_t length = strlen(text);
    bool has_colon = length > 6 && text[length - 3] == ':' && strchr("+-", text[length - 6]);
    size_t kept = has_colon ? length - 3 : length; /* RFC 3339 has +01:00, Cedar +0100 */
    OWNED char *time_text =
        memory_format("%.*s%s", (int)kept, text, has_colon ? text + kept + 1 : "");
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_value argument = cedar_string(str_from(time_text)), time;
    struct error error = {""};
    bool good = cedar_call(heap, STR("datetime"), &argument, 1, &time, &error);
    if (good)
        *now_ms = time.number;
    cedar_heap_destroy(heap);
    return good;
}

bool consultation_read_since(const char *text, int64_t *since_ms)
{
    struct error error;
    int64_t ago_ms;
    if (duration_parse(str_from(text), &ago_ms, &error)) {
        *since_ms = clock_now_ms() - ago_ms;
        return true;
    }
    if (consultation_read_time(text, since_ms))
        return true;
    options_complain("--since %s is neither a time such as 2026-01-31 or 2026-01-31T13:30:00Z nor "
                     "a duration such as 7d",
                     text);
    return false;
}

static bool consultation_read_at(const char *text, int64_t *now_ms)
{
    if (consultation_read_time(text, now_ms))
        return true;
    options_complain("--at %s is not a time such as " CONSULTATION_TIMES, text);
    return false;
}

static bool consultation_read_annotations(struct policy_hints *hints, const char *text)
{
    if (!check_object("annotations", text))
        return false;
    for (unsigned i = 0; i < HINT_COUNT; i++) {
        enum json_type type =
            json_type(json_member(str_from(text), policy_hint_name((enum policy_hint)i)));
        if (type == JSON_TRUE || type == JSON_FALSE)
            hints->given |= 1U << i;
        if (type == JSON_TRUE)
            hints->truth |= 1U << i;
    }
    return true;
}

bool consultation_init(struct consultation *consultation,
                       const struct consultation_options *options)
{
    *consultation = (struct consultation){.facts.now_ms = clock_now_ms()};
    if (options->arguments && !check_object("args", options->arguments))
        return false;
    consultation->request.arguments = str_from(options->arguments);
    return consultation_read_principal(consultation,
                                       options->principal ? options->principal : "anonymous") &&
           (!options->at || consultation_read_at(options->at, &consultation->facts.now_ms)) &&
           (!options->annotations ||
            consultation_read_annotations(&consultation->facts.hints, options->annotations));
}

void consultation_finish(struct consultation *consultation)
{
    policy_trace_finish(&consultation->trace);
    free(consultation->owner);
    free(consultation->client_name);
    free(consultation->client_version);
    verified_caller_finish(&consultation->caller);
}

/* ---- the decision ---- */

void consultation_hold(struct consultation *consultation, const struct snapshot *snapshot,
                       const struct config_source *source, struct str tool,
                       const struct policy_decision *ruled)
{
    struct policy_decision *decision = &consultation->decision;
    *decision = *ruled;
    consultation->request.source = source;
    consultation->request.name = tool;
    if (!policy_is_visible(snapshot->policy, source, tool)) {
        decision->action = ACTION_DENY;
        consultation->gate = policy_gate_name(POLICY_GATE_VISIBILITY);
        return;
    }
    if (policy_refuses_arguments(&consultation->request, decision, NULL)) {
        decision->action = ACTION_DENY;
        decision->workflow = NULL;
        consultation->gate = "arguments";
        consultation->trace.failure = "keys of the arguments differ only by case or look";
        return;
    }
    policy_rehearse(snapshot->policy, &consultation->request, &consultation->facts, 0,
                    &consultation->trace, decision);
    if (decision->action == ACTION_APPROVE)
        consultation->gate = policy_gate_name(POLICY_GATE_APPROVAL);
    else if (decision->action == ACTION_DENY)
        consultation->gate =
            policy_gate_name(decision->by_policies ? POLICY_GATE_POLICY : POLICY_GATE_GOVERNANCE);
}

bool consultation_is_invalid(const struct consultation *consultation)
{
    return consultation->gate && strcmp(consultation->gate, "arguments") == 0;
}

static const char *consultation_outcome_of(const struct consultation *consultation)
{
    const struct policy_decision *decision = &consultation->decision;
    if (consultation_is_invalid(consultation))
        return verdict_outcome_name(VERDICT_INVALID);
    if (decision->action == ACTION_DENY && decision->by_policies)
        return "reject";
    return config_action_name(decision->action);
}

/* ---- telling ---- */

static const char *verb_of(const struct policy_finding *finding)
{
    static const char *const verbs[] = {
        [FINDING_PERMIT] = "permits", [FINDING_FORBID] = "forbids", [FINDING_ERROR] = "fails"};
    return verbs[finding->kind];
}

void consultation_write_text(struct buffer *out, const struct consultation *consultation)
{
    const struct policy_decision *decision = &consultation->decision;
    buffer_append_format(out, "%-11s%s", "Decision", consultation_outcome_of(consultation));
    if (decision->action == ACTION_APPROVE && decision->workflow) {
        buffer_append_text(out, " through the workflow ");
        visible_append(out, str_from(decision->workflow->name));
    }
    if (consultation->gate)
        buffer_append_format(out, ", by the gate %s", consultation->gate);
    buffer_append_char(out, '\n');
    if (consultation->trace.failure)
        buffer_append_format(out, "%-11s%s\n", "", consultation->trace.failure);
    for (size_t i = 0; i < consultation->trace.count; i++) {
        const struct policy_finding *finding = &consultation->trace.items[i];
        buffer_append_format(out, "%-11s", i == 0 ? "Policies" : "");
        visible_append(out, finding->policy);
        buffer_append_format(out, " %s %s (%s:%u:%u)", verb_of(finding), finding->action,
                             finding->file, finding->line, finding->column);
        if (finding->error) {
            buffer_append_text(out, ": ");
            visible_append(out, str_from(finding->error));
        }
        buffer_append_char(out, '\n');
    }
}

static void write_finding(struct buffer *out, const struct policy_finding *finding)
{
    buffer_append_char(out, '{');
    json_add_str(out, "policy", finding->policy);
    json_add_text(out, "effect", finding->is_forbid ? "forbid" : "permit");
    json_add_text(out, "action", finding->action);
    json_add_text(out, "file", finding->file);
    json_add_number(out, "line", finding->line);
    json_add_number(out, "column", finding->column);
    json_add_text_or_null(out, "error", finding->error);
    buffer_append_char(out, '}');
}

void consultation_write_json(struct buffer *out, const struct consultation *consultation)
{
    json_add_text(out, "decision", consultation_outcome_of(consultation));
    json_add_text_or_null(out, "gate", consultation->gate);
    json_add_key(out, "policies");
    buffer_append_char(out, '[');
    for (size_t i = 0; i < consultation->trace.count; i++) {
        buffer_append_text(out, i > 0 ? "," : "");
        write_finding(out, &consultation->trace.items[i]);
    }
    buffer_append_char(out, ']');
    json_add_text_or_null(out, "failure", consultation->trace.failure);
}
