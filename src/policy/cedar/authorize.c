/* Decisions: every policy that can apply is asked, in order. */
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "index.h"
#include "taskgate/core/memory.h"

void cedar_response_init(struct cedar_response *response)
{
    *response = (struct cedar_response){.decision = CEDAR_DENY};
}

void cedar_response_finish(struct cedar_response *response)
{
    free(response->reasons);
    free(response->failures);
    cedar_heap_destroy(response->scratch);
    cedar_response_init(response);
}

static void reset(struct cedar_response *response)
{
    response->decision = CEDAR_DENY;
    response->exhausted = false;
    response->reason_count = response->failure_count = 0;
    if (response->scratch)
        cedar_heap_reset(response->scratch);
    else
        response->scratch = cedar_heap_create();
}

static void add_reason(struct cedar_response *response, const struct cedar_policy *policy)
{
    if (response->reason_count == response->reason_capacity) {
        response->reason_capacity = response->reason_capacity ? response->reason_capacity * 2 : 16;
        response->reasons = memory_grow_array(response->reasons, response->reason_capacity,
                                              sizeof(struct cedar_policy *));
    }
    response->reasons[response->reason_count++] = policy;
}

static void add_failure(struct cedar_response *response, const struct cedar_policy *policy,
                        const struct cedar_failure *failure)
{
    if (response->failure_count == response->failure_capacity) {
        response->failure_capacity =
            response->failure_capacity ? response->failure_capacity * 2 : 16;
        response->failures = memory_grow_array(response->failures, response->failure_capacity,
                                               sizeof *response->failures);
    }
    response->failures[response->failure_count] = *failure;
    response->failures[response->failure_count++].policy = policy;
}

/* The scope names something. */
static bool authorize_is_named_by(const struct evaluation *evaluation, const struct scope *scope,
                                  const struct cedar_uid *uid)
{
    if (scope->kind == SCOPE_EQUAL)
        return cedar_uid_equal(uid, scope->entities[0]);
    if (scope->kind != SCOPE_IN && !str_equal(uid->type, scope->type))
        return false;
    if (scope->kind == SCOPE_IS)
        return true;
    for (size_t i = 0; i < scope->count; i++)
        if (evaluation_is_in(evaluation, uid, scope->entities[i]))
            return true;
    return false;
}

static inline bool is_in_scope(const struct evaluation *evaluation, const struct scope *scope,
                               const struct cedar_uid *uid)
{
    return scope->kind == SCOPE_ANY || authorize_is_named_by(evaluation, scope, uid);
}

/* Every principal of one type may be unknown, and still be of that type. */
static bool names_principal(const struct scope *scope)
{
    return scope->kind != SCOPE_ANY && scope->kind != SCOPE_IS;
}

/* Whether the policy applies; false in `*good` when that cannot be said. */
static bool is_satisfied(struct evaluation *evaluation, const struct cedar_policy *policy,
                         bool *good)
{
    const struct cedar_request *request = evaluation->request;
    *good = true;
    if (!is_in_scope(evaluation, &policy->action, &request->action) ||
        !is_in_scope(evaluation, &policy->resource, &request->resource))
        return false;
    if (request->principal_is_unknown && names_principal(&policy->principal)) {
        evaluation->failure = (struct cedar_failure){
            .code = CEDAR_FAILURE_UNKNOWN, .offset = policy->start, .name = STR("principal")};
        *good = false;
        return false;
    }
    if (!is_in_scope(evaluation, &policy->principal, &request->principal))
        return false;
    struct cedar_value value = {.boolean = true};
    /* As an && of all conditions would. */
    for (uint32_t i = 0; policy->condition && i < policy->condition->count && value.boolean; i++)
        if (!evaluate_kind(evaluation, policy->condition->operands[i], CEDAR_BOOL, &value))
            return *good = false;
    return value.boolean;
}

/* A forbid takes the place of all permits. */
static void note_satisfied(struct cedar_response *response, const struct cedar_policy *policy,
                           bool *forbidden)
{
    if (policy->effect == CEDAR_FORBID && !*forbidden) {
        *forbidden = true;
        response->reason_count = 0;
    }
    if (policy->effect == CEDAR_FORBID || !*forbidden)
        add_reason(response, policy);
}

void cedar_authorize(const struct cedar_policies *policies, const struct cedar_entities *entities,
                     const struct cedar_request *request, struct cedar_response *response)
{
    reset(response);
    struct evaluation evaluation = {
        .entities = entities,
        .request = request,
        .principal = entities_find(entities, &request->principal),
        .action = entities_find(entities, &request->action),
        .resource = entities_find(entities, &request->resource),
        .scratch = &response->scratch->arena,
        .budget = request->budget ? request->budget : CEDAR_DEFAULT_BUDGET,
    };
    size_t words = (policies->count + 63) / 64;
    uint64_t *chosen = arena_alloc_array(evaluation.scratch, words, sizeof *chosen);
    memset(chosen, 0, words * sizeof *chosen);
    struct guard_answers answers;
    if (request->without_shortcuts) {
        for (size_t i = 0; i < policies->count; i++)
            chosen[i / 64] |= UINT64_C(1) << i % 64;
    } else {
        policy_index_choose(policies, entities, request, chosen);
        guards_answer(policies->guards, &evaluation, &answers);
    }
    bool forbidden = false, permitted = false;
    for (size_t word = 0; word < words; word++) {
        for (uint64_t bits = chosen[word]; bits && !response->exhausted; bits &= bits - 1) {
            size_t i = word * 64 + (size_t)__builtin_ctzll(bits);
            if (!request->without_shortcuts && guards_pass_over(policies->guards, &answers, i))
                continue;
            const struct cedar_policy *policy = policies->items[i];
            if (request->asks && !request->asks(policy, request->asks_data))
                continue;
            bool good;
            if (is_satisfied(&evaluation, policy, &good)) {
                permitted = permitted || policy->effect == CEDAR_PERMIT;
                note_satisfied(response, policy, &forbidden);
            } else if (!good) {
                add_failure(response, policy, &evaluation.failure);
                response->exhausted = evaluation.failure.code == CEDAR_FAILURE_BUDGET ||
                                      evaluation.failure.code == CEDAR_FAILURE_DEPTH;
            }
        }
    }
    if (permitted && !forbidden && !response->exhausted)
        response->decision = CEDAR_ALLOW;
}
