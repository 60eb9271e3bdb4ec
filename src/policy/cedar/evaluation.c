/* Shared by all operators: failing, taking steps off the budget, wanting a value of one kind. */
#include "evaluate.h"

bool fail(struct evaluation *evaluation, const struct node *node, enum cedar_failure_code code)
{
    evaluation->failure = (struct cedar_failure){.code = code, .offset = node->offset};
    if (node->kind == NODE_GET)
        evaluation->failure.name = node->name;
    return false;
}

bool fail_type(struct evaluation *evaluation, const struct node *node, unsigned expected,
               enum cedar_kind found)
{
    evaluation->failure = (struct cedar_failure){
        .code = CEDAR_FAILURE_TYPE, .offset = node->offset, .expected = expected, .found = found};
    return false;
}

bool fail_unknown(struct evaluation *evaluation, const struct node *node, struct str name)
{
    evaluation->failure =
        (struct cedar_failure){.code = CEDAR_FAILURE_UNKNOWN, .offset = node->offset, .name = name};
    return false;
}

bool fail_variant(struct evaluation *evaluation, const struct node *node, struct str name)
{
    evaluation->failure =
        (struct cedar_failure){.code = CEDAR_FAILURE_VARIANT, .offset = node->offset, .name = name};
    return false;
}

bool spend(struct evaluation *evaluation, const struct node *node, uint64_t steps)
{
    if (steps > evaluation->budget) {
        evaluation->budget = 0;
        return fail(evaluation, node, CEDAR_FAILURE_BUDGET);
    }
    evaluation->budget -= steps;
    return true;
}

bool evaluate_kind(struct evaluation *evaluation, const struct node *node, enum cedar_kind kind,
                   struct cedar_value *result)
{
    if (!evaluate(evaluation, node, result))
        return false;
    return result->kind == kind || fail_type(evaluation, node, KIND_BIT(kind), result->kind);
}
