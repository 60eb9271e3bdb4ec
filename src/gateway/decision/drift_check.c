/* What was approved must still be what would be allowed (design invariant 5). */
#include <string.h>

#include "policy_check.h"
#include "request/request_parts.h"
#include "run/execution_internal.h"
#include "task_binding.h"
#include "taskgate/core/clock.h"
#include "taskgate/json/canonical.h"

static bool covers_request(const struct task *task, const struct envelope *envelope)
{
    struct request_parts parts;
    request_parts_read(&parts, envelope);
    bool is_same = !task->request_digest[0] || strcmp(parts.digest, task->request_digest) == 0;
    request_parts_finish(&parts);
    return is_same;
}

static bool request_is_intact(const struct task *task)
{
    struct envelope envelope;
    char digest[DIGEST_HEX_BYTES] = "";
    enum envelope_status status =
        envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    if (status == ENVELOPE_OK)
        canonical_digest(envelope.arguments.raw, digest);
    bool intact = status == ENVELOPE_OK && strcmp(digest, task->arguments_digest) == 0 &&
                  str_equal(envelope.name.text, str_from(task->tool)) &&
                  covers_request(task, &envelope);
    envelope_finish(&envelope);
    return intact;
}

/* By whose list the approval was bound, and is compared: the owner's. */
static void find_tool(const struct execution *execution, struct str owner,
                      struct catalog_tool *tool)
{
    bool is_own = str_starts_with(owner, STR(TASK_BINDING_ADMIN));
    catalog_find_tool(execution->worker->gateway->catalog, str_from(execution->task->source),
                      is_own ? CATALOG_GATEWAY : owner, str_from(execution->task->tool), tool);
}

static bool is_bound(const struct execution *execution)
{
    return execution->source && execution->task->definition_digest[0];
}

/* After a restart, and when upstream may have other tools now, the owner's list is not what
 * upstream would say. */
bool execution_must_look(const struct execution *execution)
{
    struct catalog_tool tool;
    find_tool(execution, str_from(execution->task->owner), &tool);
    return is_bound(execution) && (tool.word != CATALOG_TOLD || !tool.is_current);
}

/* The gateway's own session is told what the tool was when it was approved. */
static bool gateways_is_the_same(const struct execution *execution)
{
    struct catalog_tool tool;
    find_tool(execution, CATALOG_GATEWAY, &tool);
    return tool.word == CATALOG_TOLD && tool.is_current &&
           strcmp(tool.digest, execution->task->definition_digest) == 0;
}

bool execution_can_compare(const struct execution *execution)
{
    struct catalog_tool tool;
    find_tool(execution, str_from(execution->task->owner), &tool);
    return !is_bound(execution) || tool.is_current || gateways_is_the_same(execution);
}

/* A tool that the owner's list no longer has is not the one that was approved, unless the approval
 * was bound by the gateway's. */
static bool definition_is_intact(const struct execution *execution, const struct catalog_tool *tool)
{
    if (!is_bound(execution))
        return true;
    if (tool->word == CATALOG_TOLD && tool->is_current)
        return strcmp(tool->digest, execution->task->definition_digest) == 0;
    return gateways_is_the_same(execution);
}

bool execution_check(const struct execution *execution, enum jsonrpc_error *error)
{
    const struct task *task = execution->task;
    const struct policy *policy = execution->snapshot->policy;
    struct policy_request request = {execution->source, str_from(task->tool),
                                     str_from(task->arguments)};
    struct policy_facts facts = {
        .principal = {str_from(task->owner), str_from(task->client_name),
                      str_from(task->client_version)},
        .now_ms = clock_now_ms(),
    };
    struct policy_decision decision;
    struct catalog_tool tool;
    *error = JSONRPC_POLICY_DRIFT;
    if (!execution->source || !execution->source->enabled ||
        !policy_is_visible(policy, execution->source, request.name))
        return false;
    find_tool(execution, str_from(task->owner), &tool);
    policy_decide(policy, &request, &decision);
    if (policy_refuses_arguments(&request, &decision, NULL))
        return false; /* the rule that allowed it has gone */
    facts.hints = tool.hints;
    policy_check(execution->snapshot, &request, &facts, &decision);
    bool same_workflow = decision.action == ACTION_APPROVE && decision.workflow &&
                         strcmp(decision.workflow->name, task->workflow) == 0;
    if (decision.action != ACTION_FORWARD && !same_workflow)
        return false;
    *error = JSONRPC_TRANSFORM_DRIFT;
    return request_is_intact(task) && definition_is_intact(execution, &tool);
}
