/* Binds a new task to its call, and sets its clocks. */
#include "task_binding.h"
#include "state/tool_catalog.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/authorization.h"
#include "call/client_profile.h"
#include "call/request_headers.h"
#include "call/request_parts.h"
#include "decision_log.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/marks.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/visible.h"
#include "taskgate/json/canonical.h"
#include "taskgate/json/envelope.h"
#include "taskgate/json/members.h"
#include "taskgate/json/paths.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/reason_property.h"
#include "taskgate/policy/gate.h"
#include "taskgate/policy/pins.h"
#include "taskgate/policy/policy.h"
#include "taskgate/task/recorded_name.h"
#include "taskgate/task/task.h"
#include "taskgate/telemetry/task_trace.h"

/* One walk over each part of the request, with the path of where it is. */

#define MOST_MARKS 20
#define MOST_PATH_CHARACTERS 200

/* A place that has marks, of those that are written. */
struct place {
    unsigned marks; /* at this place, as marks_of() */
    size_t at, length;
};

struct marking {
    struct buffer *out;
    size_t count;
    struct place places[MOST_MARKS];
    size_t place_count;
    struct buffer found; /* the texts of the places */
    struct buffer path;  /* of the value here */
    struct buffer text;  /* decoded */
};

/* ---- one mark ---- */

/* The place, added where it is new. There are fewer places than marks. */
static struct place *find_place(struct marking *marking, struct str where)
{
    for (size_t i = 0; i < marking->place_count; i++) {
        struct place *place = &marking->places[i];
        if (str_equal(str_slice(marking->found.bytes + place->at, place->length), where))
            return place;
    }
    struct place *added = &marking->places[marking->place_count++];
    *added = (struct place){0, marking->found.length, where.length};
    buffer_append(&marking->found, where);
    return added;
}

static void write_pair(struct marking *marking, enum mark mark, struct str where)
{
    buffer_append_text(marking->out, marking->count++ > 0 ? ",{\"where\":" : "{\"where\":");
    buffer_append_json_string(marking->out, where);
    json_add_text(marking->out, "what", mark_name(mark));
    buffer_append_char(marking->out, '}');
}

static void task_binding_look(struct marking *marking, struct str text, struct str where)
{
    unsigned marks = marks_of(text);
    if (!marks || marking->count >= MOST_MARKS)
        return;
    OWNED_BUFFER(shown);
    struct str beginning = visible_beginning(where, MOST_PATH_CHARACTERS);
    buffer_append(&shown, beginning);
    if (beginning.length < where.length)
        buffer_append_text(&shown, "…");
    struct place *place = find_place(marking, buffer_str(&shown));
    for (enum mark mark = 0; mark < MARK_COUNT; mark++) {
        if (marks & ~place->marks & 1U << mark && marking->count < MOST_MARKS)
            write_pair(marking, mark, buffer_str(&shown));
    }
    place->marks |= marks;
}

/* ---- the request ---- */

struct level {
    size_t path_length; /* of the container itself */
    bool is_object;
};

/* The string that begins at `at`; a key goes on the path first. Returns what is behind it. */
static const char *read_string(struct marking *marking, const char *at, const char *end,
                               bool is_key)
{
    const char *start = at++;
    while (at < end && *at != '"')
        at += *at == '\\' ? 2 : 1;
    at++;
    buffer_clear(&marking->text);
    json_decode_string(str_slice(start, (size_t)(at - start)), &marking->text);
    if (is_key && marking->path.length > 0)
        buffer_append_char(&marking->path, '.');
    if (is_key)
        buffer_append(&marking->path, buffer_str(&marking->text));
    task_binding_look(marking, buffer_str(&marking->text), buffer_str(&marking->path));
    return at;
}

static void read_part(struct marking *marking, const char *name, const char *json)
{
    struct level levels[ENVELOPE_MAX_DEPTH + 1];
    size_t depth = 0;
    bool is_key = false;
    const char *end = json + strlen(json);
    buffer_clear(&marking->path);
    buffer_append_text(&marking->path, name);
    for (const char *at = json; at < end && marking->count < MOST_MARKS;) {
        char c = *at;
        if (c == '"') {
            at = read_string(marking, at, end, is_key);
            is_key = false;
            continue;
        }
        if (c == '{' || c == '[') {
            assert(depth < sizeof levels / sizeof *levels);
            levels[depth++] = (struct level){marking->path.length, c == '{'};
            is_key = c == '{';
        } else if ((c == '}' || c == ']') && depth > 0) {
            marking->path.length = levels[--depth].path_length;
        } else if (c == ',' && depth > 0) {
            marking->path.length = levels[depth - 1].path_length;
            is_key = levels[depth - 1].is_object;
        }
        at++;
    }
}

void task_marks_write(struct buffer *out, const struct task *task, const char *agent_reason)
{
    struct marking marking = {.out = out};
    buffer_append_char(out, '[');
    task_binding_look(&marking, str_from(task->tool), STR("tool"));
    task_binding_look(&marking, str_from(task->principal), STR("principal"));
    task_binding_look(&marking, str_from(agent_reason), STR(REASON_PROPERTY));
    read_part(&marking, "", task->arguments);
    read_part(&marking, "_meta", task->meta);
    read_part(&marking, "params", task->other_params);
    buffer_append_char(out, ']');
    buffer_finish(&marking.found);
    buffer_finish(&marking.path);
    buffer_finish(&marking.text);
}

/*
 * A task's rule and tool, as the people who decide are told of them. It is kept with the task, so
 * that it neither changes with a reload nor gets lost by a restart. A JSON object, each member of
 * which may be missing but the last:
 *
 *     ruleDescription, summary (with its {path}s), highlight, confirm     as the rule has them
 *     risk, riskBy     as the rule has it ("rule"), else by the server's hints ("server"), or
 *                      "medium" by nobody's word ("default")
 *     headers          of the call, those that may change what it does (request_headers.h)
 *     marks            what makes names and texts read as others than they are (task_marks_write)
 *     toolDescription, toolAnnotations     as the server has told the caller of the tool
 *     listed                               whether the caller's list has the tool
 */

static void add_text(struct buffer *out, const char *key, const char *text)
{
    if (text && *text)
        json_add_text(out, key, text);
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
    OWNED_BUFFER(text);
    if (source->pins[DEFINITION_TOOL] == PIN_OFF || !pins_is_changed(&name, tool->definition))
        return;
    pins_write_difference(&name, &text);
    json_add_str(out, "toolDifference", buffer_str(&text));
}

/* Writes it for a call of the tool as it is known of the owner's list. `task` is bound to its
 * request already. */
static void task_shown_write(struct buffer *out, const struct task *task,
                             const struct task_origin *origin, const struct config_rule *rule,
                             const struct catalog_tool *tool)
{
    buffer_append_char(out, '{');
    if (rule) {
        add_text(out, "ruleDescription", rule->description);
        add_text(out, "summary", rule->summary);
        if (rule->highlight.count > 0)
            json_add_texts(out, "highlight", rule->highlight.items, rule->highlight.count);
        add_text(out, "confirm", rule->confirm);
    }
    add_text(out, "reasonOfAgent", origin->agent_reason);
    add_risk(out, rule, tool);
    add_difference(out, origin, tool);
    if (origin->headers.length > 0) {
        json_add_value(out, "headers", origin->headers);
    }
    json_add_key(out, "marks");
    task_marks_write(out, task, origin->agent_reason);
    const struct catalog_asked asked = {str_from(origin->source->id), str_from(origin->told_owner),
                                        origin->envelope->name.text};
    bool is_listed = catalog_describe_tool(origin->catalog, &asked, tool->digest, out);
    json_add_key(out, "listed");
    buffer_append_text(out, is_listed ? "true}" : "false}");
}

/*
 * The parts of a call that a grant binds, beside those that each task keeps (store/grants.h): the
 * rule as it is written, and the request without what may vary.
 */

/* Trace context is new in each call, and changes nothing of it. */
static char *const trace_keys[] = {"traceparent", "tracestate", "baggage"};

/* All that says which calls the rule is for and what becomes of them. */
static void digest_rule(const struct config_rule *rule, char digest[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(text);
    buffer_append_char(&text, '{');
    if (rule) {
        json_add_text(&text, "match", rule->match);
        json_add_text(&text, "action", config_action_name(rule->action));
        json_add_text_or_null(&text, "policy", rule->policy_id);
        json_add_text_or_null(&text, "approval", rule->approval);
        json_add_texts(&text, "sources", rule->sources.items, rule->sources.count);
        json_add_texts(&text, "subjects", rule->subjects.items, rule->subjects.count);
        json_add_texts(&text, "groups", rule->groups.items, rule->groups.count);
    }
    buffer_append_char(&text, '}');
    digest_sha256_hex(buffer_str(&text), digest);
}

static void digest_request(const struct task *task, const struct ballot_names *vary,
                           char digest[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(text);
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
}

/* Sets the digests of a task that has its request and its workflow. Nothing where the workflow
 * offers no grants. */
static void grant_binding_set(struct task *task, const struct policy_decision *decision)
{
    const struct config_workflow *workflow = decision->workflow;
    if (!workflow || !workflow->ballot.grants.are_offered)
        return;
    digest_rule(decision->rule, task->rule_digest);
    digest_request(task, &workflow->ballot.grants.vary, task->bound_digest);
}

#define POLL_INTERVAL_MAX_MS 5000     /* behaviour 8.8 */
#define POLL_INTERVAL_RUNNING_MS 1000 /* of a call that is run at once */

/* `texts` are those in `origin` that origin_finish() frees. */
struct origin_texts {
    char *principal;
    struct buffer headers;
};

static void origin_of_call(const struct call *call, struct task_origin *origin,
                           struct origin_texts *texts)
{
    texts->principal = client_describe(call);
    buffer_init(&texts->headers);
    request_headers_show(&texts->headers, call);
    *origin = (struct task_origin){
        .snapshot = call->snapshot,
        .source = call->source,
        .envelope = &call->envelope,
        .owner = call->owner,
        .catalog = call->worker->gateway->catalog,
        .told_owner = call->owner,
        .session = call->session,
        .principal = texts->principal,
        .identity = call->identity,
        .owner_email = call->identity ? call->identity->verified_email : NULL,
        .client_name = call->facts.client.name,
        .client_version = call->facts.client.version,
        .agent_reason = call->agent_reason,
        .headers = buffer_str(&texts->headers),
        .span = call->span,
    };
    if (call->exchange)
        request_headers_digest(call->exchange, origin->headers_digest);
}

static void origin_finish(struct origin_texts *texts)
{
    free(texts->principal);
    buffer_finish(&texts->headers);
}

static void bind_request(struct task *task, const struct envelope *envelope)
{
    struct str arguments = envelope->arguments.raw;
    request_parts_bind(task, envelope);
    task_set_text(&task->tool, envelope->name.text);
    task_set_text(&task->arguments, arguments.length > 0 ? arguments : STR("{}"));
    canonical_digest(arguments, task->arguments_digest);
    task_set_text(&task->progress_token, envelope->progress_token);
}

static void bind_trace(struct task *task, const struct task_origin *origin)
{
    struct buffer text = {0};
    if (!origin->span)
        return;
    task_trace_write(&text, origin->span);
    task_set_text(&task->trace, buffer_str(&text));
    buffer_finish(&text);
    span_set_text(origin->span, ATTRIBUTE_TASK, str_from(task->id));
}

static void task_binding_bind(struct task *task, const struct task_origin *origin,
                              const struct catalog_tool *tool)
{
    bind_request(task, origin->envelope);
    task_set_text(&task->source, str_from(origin->source->id));
    task_set_text(&task->owner, str_from(origin->owner));
    if (origin->owner_email)
        snprintf(task->owner_email, sizeof task->owner_email, "%s", origin->owner_email);
    if (origin->maker)
        task_set_text(&task->maker, str_from(origin->maker));
    task_set_text(&task->session, str_from(origin->session));
    task_set_text(&task->principal, str_from(origin->principal));
    task_set_text(&task->client_name, str_from(origin->client_name));
    task_set_text(&task->client_version, str_from(origin->client_version));
    memcpy(task->definition_digest, tool->digest, sizeof task->definition_digest);
    memcpy(task->headers_digest, origin->headers_digest, sizeof task->headers_digest);
    bind_trace(task, origin);
}

/* The members that an execution needs. */
static void bind_decision(struct task *task, const struct task_origin *origin,
                          const struct policy_decision *decision, const struct catalog_tool *tool)
{
    if (!task->accelerated && decision->workflow) {
        task_set_text(&task->workflow, str_from(decision->workflow->name));
        task_set_text(&task->terms, str_from(decision->workflow->terms));
        grant_binding_set(task, decision);
        task->remind_after_ms = decision->workflow->remind_after_ms;
        task->escalate_after_ms = decision->workflow->escalate_after_ms;
    }
    task_set_text(&task->action, task->accelerated ? STR("forward") : STR("approve"));
    task_set_request(task, origin->envelope->body);
    task->on_result = decision->execution == EXECUTION_ON_RESULT;
    task->keep_task = tool->has_own && tool->own == ANNOTATION_REQUIRED;
}

/* The reason of the task, for the audit trail, the log and those who decide. */
static void keep_decision(struct task *task, const struct task_origin *origin,
                          const struct policy_decision *decision, const struct catalog_tool *tool)
{
    const struct policy_request request = {origin->source, origin->envelope->name.text, STR_EMPTY};
    const struct policy_facts facts = {
        .principal = {str_from(origin->owner), str_from(origin->client_name),
                      str_from(origin->client_version)},
        .hints = tool->hints,
    };
    const struct decision_log_entry entry = {
        .request = &request, .decision = decision, .facts = &facts, .identity = origin->identity};
    OWNED_BUFFER(text);
    decision_log_write_json(&text, &entry);
    task_set_text(&task->decision, buffer_str(&text));
    task_set_text(&task->rule, str_from(decision->rule ? decision->rule->match : ""));
    memcpy(task->policy_digest, origin->snapshot->config->digest, sizeof task->policy_digest);
    buffer_clear(&text);
    task_shown_write(&text, task, origin, decision->rule, tool);
    task_set_text(&task->shown, buffer_str(&text));
}

static void set_clocks(struct task *task, const struct task_origin *origin,
                       const struct policy_decision *decision)
{
    const struct config *config = origin->snapshot->config;
    const struct config_workflow *workflow = task->accelerated ? NULL : decision->workflow;
    int64_t max_ttl_ms = config->times.task_max_ttl_ms;
    int64_t now_ms = clock_now_ms();
    bool asks_no_ttl = origin->envelope->reserved.version.length > 0;
    struct str asked = asks_no_ttl ? STR_EMPTY : origin->envelope->task.raw;
    enum dialect_ttl read =
        dialect_read_ttl(asked.length > 0 ? asked : STR("{}"),
                         config_default_ttl_ms(config, workflow), max_ttl_ms, &task->ttl_ms);
    if (read == DIALECT_TTL_CLAMPED)
        log_warn("Task ttl clamped to the maximum", LOG_TEXT("tool", task->tool),
                 LOG_NUMBER("max_ttl_ms", max_ttl_ms));
    task->created_ms = task->updated_ms = now_ms;
    if (task->accelerated) {
        task->execute_by_ms = now_ms + config->times.approval_validity_ms;
        task->poll_interval_ms = POLL_INTERVAL_RUNNING_MS;
        return;
    }
    int64_t decide_in_ms = task->ttl_ms;
    if (workflow && workflow->timeout_ms < decide_in_ms)
        decide_in_ms = workflow->timeout_ms;
    int64_t interval_ms = task_poll_interval_ms(decide_in_ms);
    task->decide_by_ms = now_ms + decide_in_ms;
    task->poll_interval_ms =
        interval_ms < POLL_INTERVAL_MAX_MS ? interval_ms : POLL_INTERVAL_MAX_MS;
}

struct task *task_binding_create(const struct task_origin *origin,
                                 const struct policy_decision *decision,
                                 const struct catalog_tool *tool, bool accelerated)
{
    struct task *task = task_create(accelerated ? TASK_APPROVED : TASK_PENDING);
    task->accelerated = accelerated;
    task_binding_bind(task, origin, tool);
    bind_decision(task, origin, decision, tool);
    keep_decision(task, origin, decision, tool);
    set_clocks(task, origin, decision);
    metrics_count(METRIC_DECISIONS, policy_gate_label(POLICY_GATE_APPROVAL),
                  accelerated ? STR("allow") : STR("started"));
    return task;
}

struct task *task_binding_create_of_call(const struct call *call,
                                         const struct policy_decision *decision,
                                         const struct catalog_tool *tool, bool accelerated)
{
    struct task_origin origin;
    struct origin_texts texts;
    origin_of_call(call, &origin, &texts);
    struct task *task = task_binding_create(&origin, decision, tool, accelerated);
    origin_finish(&texts);
    return task;
}

/* The call was forwarded by the rule for its name. */
static void keep_forwarding(struct task *task, const struct task_origin *origin,
                            const struct catalog_tool *tool)
{
    struct policy_verified verified;
    const struct policy_request request = {origin->source, origin->envelope->name.text, STR_EMPTY,
                                           verified_from(origin->identity, &verified)};
    struct policy_decision decision;
    policy_decide(origin->snapshot->policy, &request, &decision);
    decision.action = ACTION_FORWARD;
    decision.workflow = NULL;
    keep_decision(task, origin, &decision, tool);
}

struct task *task_binding_create_promoted(const struct call *call)
{
    const struct config_pseudo *pseudo = &call->snapshot->config->pseudo;
    struct task *task = task_create_promoted();
    struct catalog_tool tool;
    struct task_origin origin;
    struct origin_texts texts;
    origin_of_call(call, &origin, &texts);
    catalog_find_tool(call->worker->gateway->catalog, str_from(call->source->id),
                      str_from(call->owner), call_tool(call), &tool);
    task_binding_bind(task, &origin, &tool);
    keep_forwarding(task, &origin, &tool);
    origin_finish(&texts);
    task_set_text(&task->action, STR("forward"));
    task->created_ms = task->updated_ms = clock_now_ms();
    task->ttl_ms =
        pseudo->default_ttl_ms < pseudo->max_ttl_ms ? pseudo->default_ttl_ms : pseudo->max_ttl_ms;
    task->poll_interval_ms = POLL_INTERVAL_RUNNING_MS;
    task->retention_ms = pseudo->completed_retention_ms;
    task->expired_retention_ms = pseudo->cleanup_interval_ms;
    return task;
}

void task_binding_announce(const struct task *task)
{
    /* A promoted call was logged when it was forwarded. */
    bool is_told = task->promoted || !*task->decision;
    metrics_count(METRIC_TASKS_CREATED, str_from(task_kind_name(task)));
    log_info(RECORDED_TASK, LOG_TEXT("task", task->id), LOG_TEXT("tool", task->tool),
             LOG_TEXT("source", task->source), LOG_TEXT("workflow", task->workflow),
             LOG_JSON("decision", str_from(is_told ? "null" : task->decision)));
}
