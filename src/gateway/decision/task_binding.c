/* Binds a new task to its call, and sets its clocks. */
#include "task_binding.h"
#include "state/tool_catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/authorization.h"
#include "call/client_profile.h"
#include "call/request_headers.h"
#include "call/request_parts.h"
#include "decision_log.h"
#include "grant_binding.h"
#include "task_shown.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"
#include "taskgate/json/canonical.h"
#include "taskgate/policy/gate.h"
#include "taskgate/task/recorded_name.h"
#include "taskgate/telemetry/task_trace.h"

#define POLL_INTERVAL_MAX_MS 5000     /* seed 002 §6.6 */
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
    struct request_parts parts;
    request_parts_read(&parts, envelope);
    task_set_text(&task->tool, envelope->name.text);
    task_set_text(&task->arguments, arguments.length > 0 ? arguments : STR("{}"));
    canonical_digest(arguments, task->arguments_digest);
    task_set_text(&task->meta, buffer_str(&parts.meta));
    task_set_text(&task->other_params, buffer_str(&parts.other_params));
    memcpy(task->request_digest, parts.digest, sizeof task->request_digest);
    task_set_text(&task->progress_token, envelope->progress_token);
    request_parts_finish(&parts);
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

static void bind(struct task *task, const struct task_origin *origin,
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
    struct buffer text;
    buffer_init(&text);
    decision_log_write_json(&text, &entry);
    task_set_text(&task->decision, buffer_str(&text));
    task_set_text(&task->rule, str_from(decision->rule ? decision->rule->match : ""));
    memcpy(task->policy_digest, origin->snapshot->config->digest, sizeof task->policy_digest);
    buffer_clear(&text);
    task_shown_write(&text, task, origin, decision->rule, tool);
    task_set_text(&task->shown, buffer_str(&text));
    buffer_finish(&text);
}

static void set_clocks(struct task *task, const struct task_origin *origin,
                       const struct policy_decision *decision)
{
    const struct config *config = origin->snapshot->config;
    const struct config_workflow *workflow = task->accelerated ? NULL : decision->workflow;
    int64_t max_ttl_ms = config->times.task_max_ttl_ms;
    int64_t now_ms = clock_now_ms();
    bool is_modern = origin->envelope->reserved.version.length > 0; /* its client asks for no ttl */
    struct str asked = is_modern ? STR_EMPTY : origin->envelope->task.raw;
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
    bind(task, origin, tool);
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
    bind(task, &origin, &tool);
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
