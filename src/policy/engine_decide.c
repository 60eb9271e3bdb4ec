/* One decision: the actions are asked in the order of the configuration. A call that is not clearly
 * permitted goes to a human or is rejected. */
#include <stdlib.h>

#include "engine.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"

/* Steps of evaluation for one action: about a tenth of a second on one core. Meanwhile the loop
 * serves no other client. */
#define BUDGET UINT64_C(2000000)

/* From the most to the least that can be permitted. */
static const struct {
    const char *action;
    enum config_action outcome;
} ladder[] = {
    {"Forward", ACTION_FORWARD},
    {"Approve", ACTION_APPROVE},
    {"tools/call", ACTION_APPROVE},
};

struct deliberation {
    const struct engine *engine;
    const struct inquiry *inquiry;
    struct question question;
    struct cedar_response response;
    unsigned hangs_on; /* UNKNOWN_… bits */
};

/* To whether an action is permitted. */
enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN };

struct str policy_name_of(const struct cedar_policy *policy)
{
    struct str id;
    return cedar_policy_annotation(policy, STR("id"), &id) && id.length ? id
                                                                        : cedar_policy_name(policy);
}

static bool engine_decide_asks(const struct cedar_policy *policy, void *policy_id)
{
    return engine_asks(policy, policy_id);
}

/* ---- for people ---- */

static void engine_decide_note(struct policy_trace *trace, enum policy_finding_kind kind,
                               const char *action, const struct cedar_policy *policy,
                               struct cedar_position position, char *error)
{
    trace->items = memory_grow_array(trace->items, trace->count + 1, sizeof *trace->items);
    trace->items[trace->count++] = (struct policy_finding){
        .kind = kind,
        .action = action,
        .cedar = policy,
        .policy = policy_name_of(policy),
        .is_forbid = cedar_policy_effect(policy) == CEDAR_FORBID,
        .file = position.source,
        .line = position.line,
        .column = position.column,
        .error = error,
    };
}

void policy_trace_finish(struct policy_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        free(trace->items[i].error);
    free(trace->items);
    *trace = (struct policy_trace){0};
}

static void note_reasons(const struct deliberation *deliberation, const char *action)
{
    const struct cedar_response *response = &deliberation->response;
    for (size_t i = 0; i < response->reason_count && deliberation->inquiry->trace; i++) {
        const struct cedar_policy *policy = response->reasons[i];
        bool is_forbid = cedar_policy_effect(policy) == CEDAR_FORBID;
        engine_decide_note(deliberation->inquiry->trace,
                           is_forbid ? FINDING_FORBID : FINDING_PERMIT, action, policy,
                           cedar_policy_position(policy), NULL);
    }
}

/* For operators: the policy and the place, nothing of the call but its tool. */
static void publish_failure(const struct deliberation *deliberation, const char *action,
                            const struct cedar_failure *failure, struct str text)
{
    struct cedar_position position = cedar_failure_position(failure);
    bool is_forbid = cedar_policy_effect(failure->policy) == CEDAR_FORBID;
    struct str policy = policy_name_of(failure->policy);
    metrics_count(METRIC_CEDAR_POLICY_ERRORS, policy, is_forbid ? STR("forbid") : STR("permit"));
    log_warn("A policy could not be evaluated", LOG_STR("policy", policy),
             LOG_TEXT("effect", is_forbid ? "forbid" : "permit"), LOG_TEXT("action", action),
             LOG_STR("tool", deliberation->inquiry->request->name),
             LOG_TEXT("file", position.source), LOG_NUMBER("line", position.line),
             LOG_NUMBER("column", position.column), LOG_STR("error", text));
}

static void report_failure(const struct deliberation *deliberation, const char *action,
                           const struct cedar_failure *failure)
{
    OWNED_BUFFER(text);
    cedar_failure_write(failure, &text);
    if (!deliberation->inquiry->is_rehearsal)
        publish_failure(deliberation, action, failure, buffer_str(&text));
    if (deliberation->inquiry->trace)
        engine_decide_note(deliberation->inquiry->trace, FINDING_ERROR, action, failure->policy,
                           cedar_failure_position(failure), memory_copy_str(buffer_str(&text)));
}

/* ---- deciding ---- */

/* The effect of failed policies. */
struct failures {
    bool forbid;         /* one that counts as if it applied */
    bool unknown_forbid; /* one that may or may not apply */
    bool unknown_permit;
    bool unknown_workflow; /* one of these permits may name a workflow */
};

static void weigh(struct deliberation *deliberation, const struct cedar_failure *failure,
                  struct failures *failures)
{
    bool is_forbid = cedar_policy_effect(failure->policy) == CEDAR_FORBID;
    const struct engine *engine = deliberation->engine;
    if (failure->code != CEDAR_FAILURE_UNKNOWN) {
        bool counts = engine->config->on_policy_error == ON_POLICY_ERROR_DENY;
        failures->forbid = failures->forbid || (is_forbid && counts);
        return;
    }
    bool on_arguments = str_equal(failure->name, STR("arguments"));
    deliberation->hangs_on |= on_arguments ? UNKNOWN_ARGUMENTS : UNKNOWN_CALLER;
    failures->unknown_forbid = failures->unknown_forbid || is_forbid;
    failures->unknown_permit = failures->unknown_permit || !is_forbid;
    failures->unknown_workflow =
        failures->unknown_workflow || (!is_forbid && engine_workflow_of(engine, failure->policy));
}

/* Whether the action is permitted. */
static enum answer engine_decide_ask(struct deliberation *deliberation, const char *action)
{
    struct cedar_response *response = &deliberation->response;
    struct failures failures = {0};
    deliberation->question.request.action = question_action(action);
    deliberation->hangs_on = 0;
    cedar_authorize(deliberation->engine->policies, deliberation->question.entities,
                    &deliberation->question.request, response);
    for (size_t i = 0; i < response->failure_count; i++) {
        weigh(deliberation, &response->failures[i], &failures);
        if (response->failures[i].code != CEDAR_FAILURE_UNKNOWN)
            report_failure(deliberation, action, &response->failures[i]);
    }
    bool permitted = response->decision == CEDAR_ALLOW;
    bool forbidden = failures.forbid || (!permitted && response->reason_count > 0);
    if (!permitted || !failures.forbid)
        note_reasons(deliberation, action);
    if (forbidden || response->exhausted)
        return ANSWER_NO;
    if (permitted && !failures.unknown_forbid && !failures.unknown_workflow)
        return ANSWER_YES;
    return permitted || failures.unknown_permit ? ANSWER_UNKNOWN : ANSWER_NO;
}

/* The first determining permit that names a workflow. */
static const struct config_workflow *choose_workflow(const struct deliberation *deliberation)
{
    const struct config_workflow *workflow = NULL;
    for (size_t i = 0; i < deliberation->response.reason_count && !workflow; i++)
        workflow = engine_workflow_of(deliberation->engine, deliberation->response.reasons[i]);
    return workflow;
}

/* False when it depends on an unknown fact. */
static bool deliberate(struct deliberation *deliberation, struct policy_decision *decision)
{
    for (size_t i = 0; i < sizeof ladder / sizeof *ladder; i++) {
        enum answer answer = engine_decide_ask(deliberation, ladder[i].action);
        if (answer == ANSWER_UNKNOWN)
            return false;
        if (answer == ANSWER_YES) {
            const struct config_workflow *named = choose_workflow(deliberation);
            decision->action = ladder[i].outcome;
            if (decision->action == ACTION_FORWARD)
                decision->workflow = NULL;
            else if (named)
                decision->workflow = named;
            return true;
        }
        if (deliberation->response.exhausted)
            return true; /* asking on would cost as much again */
    }
    return true;
}

/* For operators: the count of each decision, and the reason if none was possible. */
static void engine_decide_publish(const struct inquiry *inquiry,
                                  const struct policy_decision *decision, const char *failure,
                                  int64_t began_us)
{
    struct str outcome = decision->action == ACTION_DENY
                             ? STR("reject")
                             : str_from(config_action_name(decision->action));
    const char *policy_id = decision->rule ? decision->rule->policy_id : NULL;
    metrics_count(METRIC_CEDAR_EVALUATIONS, outcome, str_from(policy_id));
    metrics_observe(METRIC_CEDAR_EVALUATION_DURATION,
                    (double)(clock_monotonic_us() - began_us) / 1000, METRIC_LABELS(outcome));
    if (failure)
        log_warn("No policy could be asked, the call is rejected",
                 LOG_STR("tool", inquiry->request->name), LOG_TEXT("reason", failure));
}

/* Without a workflow no human can be asked, so approval is a rejection. */
static void engine_decide_conclude(const struct inquiry *inquiry, struct policy_decision *decision,
                                   const char *failure, int64_t began_us)
{
    decision->by_policies = true;
    if (decision->action == ACTION_APPROVE && !decision->workflow)
        decision->action = ACTION_DENY;
    if (decision->action == ACTION_DENY)
        decision->workflow = NULL;
    if (!inquiry->is_rehearsal)
        engine_decide_publish(inquiry, decision, failure, began_us);
    if (inquiry->trace)
        inquiry->trace->failure = failure;
}

/* The limit that ended the last decision. */
static const char *limit_of(const struct cedar_response *response)
{
    const struct cedar_failure *last = &response->failures[response->failure_count - 1];
    return last->code == CEDAR_FAILURE_DEPTH ? "the policies nest sets and records too deeply"
                                             : "the policies need too much work";
}

unsigned engine_decide(const struct engine *engine, const struct inquiry *inquiry,
                       struct policy_decision *decision)
{
    int64_t began_us = clock_monotonic_us();
    struct deliberation deliberation = {.engine = engine, .inquiry = inquiry};
    struct policy_decision made = *decision;
    const char *failure = question_init(&deliberation.question, inquiry, decision);
    bool is_decided = true;
    made.action = ACTION_DENY;
    cedar_response_init(&deliberation.response);
    if (!failure) {
        struct cedar_request *asked = &deliberation.question.request;
        asked->budget = BUDGET;
        asked->asks = engine_decide_asks;
        asked->asks_data = decision->rule ? decision->rule->policy_id : NULL;
        is_decided = deliberate(&deliberation, &made);
        if (deliberation.response.exhausted)
            failure = limit_of(&deliberation.response);
    }
    if (is_decided) {
        engine_decide_conclude(inquiry, &made, failure, began_us);
        *decision = made;
    }
    cedar_response_finish(&deliberation.response);
    question_finish(&deliberation.question);
    return is_decided ? 0 : deliberation.hangs_on;
}
