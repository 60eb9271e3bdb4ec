/* Arguments that two readers could understand in two ways, where somebody decides by them. */
#include "taskgate/json/fold.h"
#include "taskgate/policy/policy.h"

bool policy_refuses_arguments(const struct policy_request *request,
                              const struct policy_decision *decision, struct error *error)
{
    bool is_judged = decision->action == ACTION_APPROVE || decision->action == ACTION_POLICY;
    bool is_allowed = decision->rule && decision->rule->case_variants == CASE_VARIANTS_ALLOW;
    return is_judged && !is_allowed && request->arguments.length > 0 &&
           fold_finds_variants(request->arguments, error);
}
