/* What was approved must still be what would be allowed (design invariant 5). */
#include <string.h>

#include "consult.h"
#include "execution_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/json/canonical.h"

static bool request_is_intact(const struct task *task)
{
    struct envelope envelope;
    char digest[DIGEST_HEX_BYTES] = "";
    enum envelope_status status =
        envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    if (status == ENVELOPE_OK)
        canonical_digest(envelope.arguments.raw, digest);
    bool intact = status == ENVELOPE_OK && strcmp(digest, task->arguments_digest) == 0 &&
                  str_equal(envelope.name.text, str_from(task->tool));
    envelope_finish(&envelope);
    return intact;
}

/* After a restart, and where upstream lists its tools to its users only, nothing is known that the
 * tool of the approval could be compared with. */
bool execution_must_look(const struct execution *execution)
{
    const struct task *task = execution->task;
    struct catalog_tool tool;
    if (execution->own_session || execution->has_looked || !execution->source ||
        !task->definition_digest[0])
        return false;
    catalog_find_tool(execution->worker->gateway->catalog, str_from(task->source),
                      str_from(task->tool), &tool);
    return !tool.known;
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
    catalog_find_tool(execution->worker->gateway->catalog, str_from(task->source), request.name,
                      &tool);
    policy_decide(policy, &request, &decision);
    if (policy_refuses_arguments(&request, &decision, NULL))
        return false; /* the rule that allowed it has gone */
    facts.hints = tool.hints;
    consult(execution->snapshot, &request, &facts, &decision);
    bool same_workflow = decision.action == ACTION_APPROVE && decision.workflow &&
                         strcmp(decision.workflow->name, task->workflow) == 0;
    if (decision.action != ACTION_FORWARD && !same_workflow)
        return false;
    *error = JSONRPC_TRANSFORM_DRIFT;
    return request_is_intact(task) && (!tool.digest[0] || !task->definition_digest[0] ||
                                       strcmp(tool.digest, task->definition_digest) == 0);
}
