/* Rules and `expose` on URIs: as they are written and as they are normalized. */
#include "taskgate/policy/policy.h"
#include "taskgate/policy/uri.h"

bool policy_is_uri_visible(const struct policy *policy, const struct config_source *source,
                           struct str uri)
{
    struct buffer normal;
    buffer_init(&normal);
    uri_normalize(&normal, uri);
    bool is_visible = policy_is_exposed(policy, source, uri) &&
                      policy_is_exposed(policy, source, buffer_str(&normal));
    buffer_finish(&normal);
    return is_visible;
}

static unsigned strictness(enum config_action action)
{
    switch (action) {
    case ACTION_FORWARD:
        return 0;
    case ACTION_APPROVE:
    case ACTION_POLICY:
        return 1;
    case ACTION_DENY:
        break;
    }
    return 2;
}

void policy_decide_uri(const struct policy *policy, const struct policy_request *request,
                       struct policy_decision *decision)
{
    struct policy_request written = *request, normalized;
    struct policy_decision other;
    struct buffer normal;
    buffer_init(&normal);
    uri_normalize(&normal, request->name);
    written.is_no_tool = true;
    normalized = written;
    normalized.name = buffer_str(&normal);
    policy_decide(policy, &written, decision);
    policy_decide(policy, &normalized, &other);
    if (strictness(other.action) > strictness(decision->action))
        *decision = other;
    buffer_finish(&normal);
}
