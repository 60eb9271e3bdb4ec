/* The effect of a decision on a tool's announcement and on a call: behaviour 5.4. */
#include "taskgate/core/assert.h"
#include "taskgate/policy/policy.h"

static const char *const annotation_names[] = {
    [ANNOTATION_FORBIDDEN] = "forbidden",
    [ANNOTATION_OPTIONAL] = "optional",
    [ANNOTATION_REQUIRED] = "required",
};

const char *policy_annotation_name(enum policy_annotation annotation)
{
    ASSERT_NUMBERS(annotation, <, sizeof annotation_names / sizeof *annotation_names);
    return annotation_names[annotation];
}

bool policy_annotation_parse(struct str name, enum policy_annotation *annotation)
{
    for (size_t i = 0; i < sizeof annotation_names / sizeof *annotation_names; i++) {
        if (str_equal(name, str_from(annotation_names[i]))) {
            *annotation = (enum policy_annotation)i;
            return true;
        }
    }
    return false;
}

bool policy_requires_tasks(const struct policy_decision *decision)
{
    return decision->rule && decision->rule->requires_tasks;
}

enum policy_annotation policy_annotate(const struct policy_decision *decision, bool upstream_tasks,
                                       bool has_own, enum policy_annotation own)
{
    if (decision->force_required || policy_requires_tasks(decision))
        return ANNOTATION_REQUIRED;
    switch (decision->action) {
    case ACTION_APPROVE:
    case ACTION_POLICY:
        return ANNOTATION_REQUIRED;
    case ACTION_DENY:
        return ANNOTATION_FORBIDDEN;
    case ACTION_FORWARD:
        break;
    }
    if (!upstream_tasks)
        return ANNOTATION_FORBIDDEN;
    /* Keeping `forbidden` would leave no way to an accelerated call. */
    return has_own && own != ANNOTATION_FORBIDDEN ? own : ANNOTATION_OPTIONAL;
}

enum policy_annotation policy_annotate_plain(const struct policy_decision *decision,
                                             enum policy_annotation announced)
{
    bool may_be_plain = announced == ANNOTATION_REQUIRED && !policy_requires_tasks(decision);
    return may_be_plain ? ANNOTATION_OPTIONAL : announced;
}

enum policy_route policy_route(const struct policy_decision *decision,
                               enum policy_annotation announced, bool has_task, bool has_own,
                               enum policy_annotation own)
{
    /* Denied first: a call that can never be made needs no lesson about its task. */
    if (decision->action == ACTION_DENY)
        return decision->by_policies ? ROUTE_REJECTED : ROUTE_DENIED;
    if (has_task && announced == ANNOTATION_FORBIDDEN)
        return ROUTE_TASK_FORBIDDEN;
    if (!has_task && announced == ANNOTATION_REQUIRED)
        return ROUTE_TASK_REQUIRED;
    if (decision->action != ACTION_FORWARD)
        return has_task ? ROUTE_APPROVAL : ROUTE_TASK_REQUIRED;
    if (!has_task)
        return ROUTE_FORWARD;
    bool upstream_owns = has_own && own != ANNOTATION_FORBIDDEN;
    return upstream_owns ? ROUTE_FORWARD : ROUTE_ACCELERATED;
}

/* Such a client can send `task`, and a plain call is refused in place of being held. */
static bool must_send_task(const struct policy_caller *caller)
{
    return caller->knows_tasks && !caller->is_executed;
}

static bool lacks_extension(const struct policy_caller *caller,
                            const struct policy_decision *decision)
{
    return policy_requires_tasks(decision) && !caller->knows_tasks;
}

bool policy_asks_policies(const struct policy_caller *caller,
                          const struct policy_decision *decision)
{
    if (caller->is_modern)
        return !lacks_extension(caller, decision);
    return caller->has_task || !must_send_task(caller);
}

static enum policy_route modern_outcome(const struct policy_caller *caller,
                                        const struct policy_decision *decision)
{
    if (decision->action == ACTION_DENY)
        return decision->by_policies ? ROUTE_REJECTED : ROUTE_DENIED;
    if (lacks_extension(caller, decision))
        return ROUTE_LACKS_EXTENSION;
    if (decision->action == ACTION_FORWARD)
        return ROUTE_FORWARD;
    return caller->knows_tasks ? ROUTE_APPROVAL : ROUTE_HELD;
}

enum policy_route policy_outcome(const struct policy_caller *caller,
                                 const struct policy_decision *decision,
                                 enum policy_annotation announced, bool has_own,
                                 enum policy_annotation own)
{
    if (caller->is_modern)
        return modern_outcome(caller, decision);
    enum policy_route route = policy_route(decision, announced, caller->has_task, has_own, own);
    bool may_be_held = caller->is_executed || !policy_requires_tasks(decision);
    if (route == ROUTE_TASK_REQUIRED && !must_send_task(caller) && may_be_held)
        return decision->action == ACTION_FORWARD ? ROUTE_HELD_ACCELERATED : ROUTE_HELD;
    /* It was not announced that the tool takes none. */
    if (route == ROUTE_TASK_FORBIDDEN && !caller->knows_tasks)
        return ROUTE_ACCELERATED;
    return route;
}
