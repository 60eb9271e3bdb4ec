/* An approved call runs only if it would still be allowed (behaviour 7.15). */
#include "drift_check.h"

#include <string.h>

#include "call/authorization.h"
#include "call/request_parts.h"
#include "decision_log.h"
#include "state/tool_catalog.h"
#include "taskgate/core/clock.h"
#include "taskgate/json/canonical.h"

static bool covers_request(const struct task *task, const struct envelope *envelope)
{
    char digest[DIGEST_HEX_BYTES];
    request_parts_digest(envelope, digest);
    return !task->request_digest[0] || strcmp(digest, task->request_digest) == 0;
}

static bool request_is_intact(const struct task *task)
{
    OWNED_ENVELOPE(envelope);
    char digest[DIGEST_HEX_BYTES] = "";
    enum envelope_status status =
        envelope_read(&envelope, str_slice(task->request, task->request_length), NULL);
    if (status == ENVELOPE_OK)
        canonical_digest(envelope.arguments.raw, digest);
    return status == ENVELOPE_OK && strcmp(digest, task->arguments_digest) == 0 &&
           str_equal(envelope.name.text, str_from(task->tool)) && covers_request(task, &envelope);
}

struct str drift_check_owner(const struct task *task)
{
    struct str owner = str_from(task->owner);
    return str_starts_with(owner, STR(PERSON_OWNER)) ? CATALOG_GATEWAY : owner;
}

/* The owner's list bound the approval, so the call is compared with that list. */
static void find_tool(const struct drift_check *drift, struct str owner, struct catalog_tool *tool)
{
    catalog_find_tool(drift->catalog, str_from(drift->task->source), owner,
                      str_from(drift->task->tool), tool);
}

static bool is_bound(const struct drift_check *drift)
{
    return drift->source && drift->task->definition_digest[0];
}

/* After a restart, and when the server may have other tools now, the owner's list is out of
 * date. */
bool drift_check_must_look(const struct drift_check *drift)
{
    struct catalog_tool tool;
    find_tool(drift, drift_check_owner(drift->task), &tool);
    return is_bound(drift) && (tool.word != CATALOG_TOLD || !tool.is_current);
}

/* The list of the gateway's own session has the tool as it was approved. */
static bool gateways_is_the_same(const struct drift_check *drift)
{
    struct catalog_tool tool;
    find_tool(drift, CATALOG_GATEWAY, &tool);
    return tool.word == CATALOG_TOLD && tool.is_current &&
           strcmp(tool.digest, drift->task->definition_digest) == 0;
}

bool drift_check_can_compare(const struct drift_check *drift)
{
    struct catalog_tool tool;
    find_tool(drift, drift_check_owner(drift->task), &tool);
    return !is_bound(drift) || tool.is_current || gateways_is_the_same(drift);
}

/* If the owner's list has lost the tool, it is not the approved one, unless the gateway's list
 * bound the approval. */
static bool definition_is_intact(const struct drift_check *drift, const struct catalog_tool *tool)
{
    if (!is_bound(drift))
        return true;
    if (tool->word == CATALOG_TOLD && tool->is_current)
        return strcmp(tool->digest, drift->task->definition_digest) == 0;
    return drift->was_compared || gateways_is_the_same(drift);
}

/* `or_workflow`: as is a call that needs the approval which it has got. */
static bool is_allowed(const struct drift_check *drift, bool or_workflow)
{
    const struct task *task = drift->task;
    const struct policy *policy = drift->snapshot->policy;
    struct policy_verified verified;
    struct policy_request request = {drift->source, str_from(task->tool), str_from(task->arguments),
                                     verified_from(drift->identity, &verified)};
    struct policy_facts facts = {
        .principal = {str_from(task->owner), str_from(task->client_name),
                      str_from(task->client_version)},
        .now_ms = clock_now_ms(),
    };
    struct policy_decision decision;
    struct catalog_tool tool;
    if (!drift->source || !drift->source->enabled ||
        !policy_is_visible(policy, drift->source, request.name))
        return false;
    find_tool(drift, drift_check_owner(task), &tool);
    request.definition = tool.definition;
    policy_decide(policy, &request, &decision);
    if (policy_refuses_arguments(&request, &decision, NULL))
        return false; /* the rule that allowed it has gone */
    facts.hints = tool.hints;
    policy_check(drift->snapshot, &request, &facts, &decision);
    bool same_workflow = decision.action == ACTION_APPROVE && decision.workflow &&
                         strcmp(decision.workflow->name, task->workflow) == 0;
    return decision.action == ACTION_FORWARD || (or_workflow && same_workflow);
}

bool drift_check_forwards(const struct drift_check *drift)
{
    return is_allowed(drift, false);
}

bool drift_check_passes(const struct drift_check *drift, enum jsonrpc_error *error)
{
    struct catalog_tool tool;
    *error = JSONRPC_POLICY_DRIFT;
    if (!is_allowed(drift, true))
        return false;
    *error = JSONRPC_TRANSFORM_DRIFT;
    find_tool(drift, drift_check_owner(drift->task), &tool);
    return request_is_intact(drift->task) && definition_is_intact(drift, &tool);
}
