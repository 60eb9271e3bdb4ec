/* Writes the line of a decided call, and hands the call to the shadow. */
#include "decision_log.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "call/authorization.h"
#include "log_aggregate.h"
#include "shadow.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/members.h"
#include "taskgate/policy/gate.h"
#include "taskgate/task/recorded_name.h"
#include "taskgate/telemetry/span.h"

#define RULE_FIELDS 6
#define CALLER_FIELDS 10
#define FIELDS_MAX 14

static enum verdict_outcome decision_log_outcome_of(const struct decision_log_entry *entry)
{
    return entry->decision ? verdict_outcome_of(entry->decision) : VERDICT_HIDE;
}

/* The members that all calls of a kind share; `tool` is the result of recorded_name(). */
static void name_rule(const struct decision_log_entry *entry, struct str tool,
                      struct log_field fields[FIELDS_MAX])
{
    static const struct policy_decision hidden = {.action = ACTION_DENY};
    const struct policy_decision *decision = entry->decision ? entry->decision : &hidden;
    enum verdict_outcome outcome = decision_log_outcome_of(entry);
    const struct config_rule *rule = decision->rule;
    fields[0] = LOG_STR("tool", tool);
    fields[1] = LOG_TEXT("source", entry->request->source->id);
    fields[2] = LOG_TEXT("outcome", verdict_outcome_name(outcome));
    fields[3] = LOG_TEXT("rule", rule ? rule->match : "");
    fields[4] = LOG_NUMBER("rule_index", rule ? (int64_t)decision->rule_index : -1);
    fields[5] = LOG_STR("workflow", verdict_workflow(outcome, decision));
}

/* Texts of the members of one call. */
struct caller_texts {
    struct buffer annotations, groups, scopes;
};

static void finish_texts(struct caller_texts *texts)
{
    buffer_finish(&texts->annotations);
    buffer_finish(&texts->groups);
    buffer_finish(&texts->scopes);
}

/* The members of this call alone. Returns how many there are now. */
static unsigned name_caller(const struct decision_log_entry *entry, struct caller_texts *texts,
                            struct log_field fields[FIELDS_MAX])
{
    const struct policy_facts *facts = entry->facts;
    const struct identity *identity = entry->identity;
    buffer_append_char(&texts->annotations, '{');
    for (unsigned i = 0; i < HINT_COUNT; i++) {
        if (!(facts->hints.given & 1U << i))
            continue;
        json_add_bool(&texts->annotations, policy_hint_name((enum policy_hint)i),
                      facts->hints.truth & 1U << i);
    }
    buffer_append_char(&texts->annotations, '}');
    fields[6] = LOG_STR("principal", facts->principal.owner);
    fields[7] = LOG_STR("client_name", facts->principal.client_name);
    fields[8] = LOG_STR("client_version", facts->principal.client_version);
    fields[9] = LOG_JSON("annotations", buffer_str(&texts->annotations));
    if (!identity)
        return CALLER_FIELDS;
    json_write_texts(&texts->groups, identity->groups.items, identity->groups.count);
    json_write_texts(&texts->scopes, identity->scopes.items, identity->scopes.count);
    fields[10] = LOG_TEXT("issuer", identity->issuer);
    fields[11] = LOG_TEXT("subject", identity->subject);
    fields[12] = LOG_JSON("groups", buffer_str(&texts->groups));
    fields[13] = LOG_JSON("scopes", buffer_str(&texts->scopes));
    return FIELDS_MAX;
}

void decision_log_write_json(struct buffer *out, const struct decision_log_entry *entry)
{
    struct log_field fields[FIELDS_MAX];
    struct caller_texts texts = {0};
    char name[RECORDED_NAME_BYTES];
    name_rule(entry, recorded_name(entry->request->name, name), fields);
    unsigned count = name_caller(entry, &texts, fields);
    buffer_append_char(out, '{');
    for (unsigned i = 0; i < count; i++) {
        json_add_key(out, fields[i].name);
        if (fields[i].kind == LOG_FIELD_NUMBER)
            buffer_append_format(out, "%lld", (long long)fields[i].number);
        else if (fields[i].kind == LOG_FIELD_JSON)
            buffer_append(out, fields[i].text);
        else
            buffer_append_json_string(out, fields[i].text);
    }
    buffer_append_char(out, '}');
    finish_texts(&texts);
}

/* ---- the log ---- */

static void on_flush(void *context)
{
    struct gateway_worker *worker = gateway_worker_from(context);
    if (log_aggregate_flush(worker->aggregate))
        loop_timer_start(&worker->log_aggregate_timer, LOG_AGGREGATE_FLUSH_MS);
}

/* A rule alone decides every call of a kind in the same way. Such calls are summed up. */
static void begin_kind(struct gateway_worker *worker, const struct decision_log_entry *entry,
                       struct str tool, struct str key)
{
    struct log_field fields[FIELDS_MAX];
    name_rule(entry, tool, fields);
    log_aggregate_begin(worker->aggregate, key, LOG_LEVEL_INFO, RECORDED_CALLS, fields,
                        RULE_FIELDS);
    if (!loop_timer_is_running(&worker->log_aggregate_timer))
        loop_timer_start(&worker->log_aggregate_timer, LOG_AGGREGATE_FLUSH_MS);
}

/* Runs for every forwarded call, so the line is made only when it is to be written. */
static void count(struct gateway_worker *worker, const struct decision_log_entry *entry)
{
    const struct policy_decision *decision = entry->decision;
    const struct snapshot *snapshot = entry->snapshot;
    char name[RECORDED_NAME_BYTES];
    struct str tool = recorded_name(entry->request->name, name);
    struct {
        uint64_t snapshot, source, rule;
        char tool[RECORDED_NAME_BYTES];
    } key;
    if (!worker->aggregate) {
        worker->aggregate = log_aggregate_create();
        loop_timer_init(&worker->log_aggregate_timer, worker->loop, on_flush, worker);
    }
    key.snapshot = snapshot->number;
    key.source = (uint64_t)(entry->request->source - snapshot->config->sources);
    key.rule = !decision ? UINT64_MAX : decision->rule ? decision->rule_index : UINT64_MAX - 1;
    memcpy(key.tool, tool.bytes, tool.length);
    struct str text = str_slice((const char *)&key, offsetof(__typeof__(key), tool) + tool.length);
    if (!log_aggregate_repeat(worker->aggregate, text))
        begin_kind(worker, entry, tool, text);
}

/* A policy's decision depends on the client and the time. */
static void decision_log_write_line(const struct decision_log_entry *entry)
{
    struct log_field fields[FIELDS_MAX];
    struct caller_texts texts = {0};
    char name[RECORDED_NAME_BYTES];
    name_rule(entry, recorded_name(entry->request->name, name), fields);
    unsigned count = name_caller(entry, &texts, fields);
    log_write(LOG_LEVEL_INFO, RECORDED_CALL, fields, count);
    finish_texts(&texts);
}

SPAN_COLD static void tell_span(const struct decision_log_entry *entry)
{
    const struct config_rule *rule = entry->decision ? entry->decision->rule : NULL;
    enum verdict_outcome outcome = decision_log_outcome_of(entry);
    span_set_text(entry->span, ATTRIBUTE_DECISION, str_from(verdict_outcome_name(outcome)));
    span_set_text(entry->span, ATTRIBUTE_RULE, str_from(rule ? rule->match : "default"));
    if (entry->decision)
        span_set_text(entry->span, ATTRIBUTE_WORKFLOW, verdict_workflow(outcome, entry->decision));
}

static void record(struct gateway_worker *worker, const struct decision_log_entry *entry)
{
    if (entry->span)
        tell_span(entry);
    if (entry->becomes_task || !entry->snapshot->config->record)
        return;
    if (entry->decision && entry->decision->by_policies && entry->facts)
        decision_log_write_line(entry);
    else
        count(worker, entry);
}

void decision_log_finish(struct gateway_worker *worker)
{
    if (!worker->aggregate)
        return;
    loop_timer_stop(&worker->log_aggregate_timer);
    log_aggregate_destroy(worker->aggregate);
    worker->aggregate = NULL;
}

/* ---- the shadow ---- */

static struct shadow_call decision_log_describe(const struct decision_log_entry *entry)
{
    struct shadow_call call = {
        .snapshot = entry->snapshot,
        .request = *entry->request,
        .identity = entry->identity,
        .outcome = decision_log_outcome_of(entry),
    };
    if (entry->decision)
        call.decision = *entry->decision;
    if (entry->facts)
        call.facts = *entry->facts;
    return call;
}

/* Only the store knows the call's session. The call goes on, and the shadow waits. */
struct late {
    struct shadow *shadow;
    struct shadow_call call;
    struct policy_verified verified;
    struct buffer texts;
};

static void finish_late(struct late *late)
{
    snapshot_unref(late->call.snapshot);
    identity_unref(late->call.identity);
    buffer_finish(&late->texts);
    free(late);
}

static void decision_log_on_session(void *context, const struct store_reply *reply)
{
    struct late *late = context;
    struct policy_principal *principal = &late->call.facts.principal;
    if (reply->status == STORE_OK && reply->session) {
        principal->client_name = str_from(reply->session->client_name);
        principal->client_version = str_from(reply->session->client_version);
    }
    shadow_compare_later(late->shadow, &late->call);
    finish_late(late);
}

/* Keeps a copy of the call until the store has answered. */
static void decision_log_store(struct call *call, const struct shadow_call *shadowed)
{
    struct gateway *gateway = call->worker->gateway;
    struct late *late = memory_alloc(sizeof *late);
    struct str name = shadowed->request.name, arguments = shadowed->request.arguments;
    struct str owner = shadowed->facts.principal.owner;
    *late = (struct late){.shadow = gateway->shadow, .call = *shadowed};
    buffer_reserve(&late->texts, name.length + arguments.length + owner.length + 1);
    buffer_append(&late->texts, name);
    buffer_append(&late->texts, arguments);
    buffer_append(&late->texts, owner);
    const char *texts = late->texts.bytes;
    late->call.request.name.bytes = texts;
    late->call.request.arguments.bytes = texts + name.length;
    late->call.facts.principal.owner.bytes = texts + name.length + arguments.length;
    snapshot_ref(late->call.snapshot);
    late->call.identity = call->identity ? identity_ref(call->identity) : NULL;
    late->call.request.verified = verified_from(late->call.identity, &late->verified);
    store_session_get(gateway->store, str_from(call->source->id), str_from(call->session),
                      (struct store_call){call->worker->loop, decision_log_on_session, late});
}

/* Identifies the caller, which nothing has needed so far. */
static void compare_unidentified(struct call *call, const struct shadow_call *entry)
{
    struct gateway *gateway = call->worker->gateway;
    struct str source = str_from(call->source->id);
    struct shadow_call shadowed = *entry;
    struct catalog_tool tool;
    struct session_facts session = {0};
    call_find_tool(call, shadowed.request.name, &tool);
    shadowed.facts = (struct policy_facts){
        .principal.owner = str_from(call->owner), .hints = tool.hints, .now_ms = clock_now_ms()};
    bool is_known = !call->session[0] ||
                    sessions_get(gateway->sessions, source, str_from(call->session), &session);
    if (!is_known) {
        decision_log_store(call, &shadowed);
        return;
    }
    shadowed.facts.principal.client_name = str_from(session.client.name);
    shadowed.facts.principal.client_version = str_from(session.client.version);
    shadow_compare_later(gateway->shadow, &shadowed);
}

void decision_log_write(struct gateway_worker *worker, const struct decision_log_entry *entry)
{
    record(worker, entry);
    if (!entry->snapshot->shadow)
        return;
    struct shadow_call shadowed = decision_log_describe(entry);
    if (!shadow_compare_rules(worker->gateway->shadow, &shadowed))
        shadow_compare_later(worker->gateway->shadow, &shadowed);
}

void decision_log_write_unidentified(struct call *call, const struct decision_log_entry *entry)
{
    record(call->worker, entry);
    if (!entry->snapshot->shadow)
        return;
    struct shadow_call shadowed = decision_log_describe(entry);
    if (!shadow_compare_rules(call->worker->gateway->shadow, &shadowed))
        compare_unidentified(call, &shadowed);
}

/* ---- the decision of the Cedar policies ---- */

/* The names of the policies that decided, or failed to, with commas. */
static void write_reasons(struct buffer *out, const struct policy_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        const struct policy_finding *finding = &trace->items[i];
        buffer_append_format(out, "%s%s %.*s (%s%s)", out->length ? ", " : "",
                             finding->is_forbid ? "forbid" : "permit", STR_ARGS(finding->policy),
                             finding->action, finding->kind == FINDING_ERROR ? ", failed" : "");
    }
}

/* The agent learns only that the call was rejected. The operator may see why. */
static void log_rejection(const struct policy_request *request,
                          const struct policy_decision *decision, const struct policy_trace *trace)
{
    OWNED_BUFFER(reasons);
    write_reasons(&reasons, trace);
    log_info("Policies rejected a call", LOG_STR("tool", request->name),
             LOG_TEXT("source", request->source->id),
             LOG_TEXT("policy_id", decision->rule ? decision->rule->policy_id : NULL),
             LOG_STR("policies", buffer_str(&reasons)));
}

void policy_check(const struct snapshot *snapshot, const struct policy_request *request,
                  const struct policy_facts *facts, struct policy_decision *decision)
{
    struct policy_trace trace = {0};
    if (decision->action != ACTION_POLICY)
        return;
    policy_consult(snapshot->policy, request, facts, &trace, decision);
    metrics_count(METRIC_DECISIONS, policy_gate_label(POLICY_GATE_POLICY),
                  str_from(config_action_name(decision->action)));
    if (decision->action == ACTION_DENY)
        log_rejection(request, decision, &trace);
    policy_trace_finish(&trace);
}
