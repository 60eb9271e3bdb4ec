/* Operators: one function for each kind of node, found in a table; constants need none. */
#include "evaluate.h"

/* ---- Leaves and logic ------------------------------------------------------------------ */

static bool evaluate_variable(struct evaluation *evaluation, const struct node *node,
                              struct cedar_value *result)
{
    const struct cedar_request *request = evaluation->request;
    *result = (struct cedar_value){.kind = CEDAR_ENTITY};
    switch (node->variable) {
    case VARIABLE_PRINCIPAL:
        if (request->principal_is_unknown)
            return fail_unknown(evaluation, node, STR("principal"));
        result->entity = &request->principal;
        break;
    case VARIABLE_ACTION:
        result->entity = &request->action;
        break;
    case VARIABLE_RESOURCE:
        result->entity = &request->resource;
        break;
    case VARIABLE_CONTEXT:
        result->kind = CEDAR_RECORD;
        result->record = request->context ? request->context : &record_empty;
        break;
    }
    return true;
}

static bool evaluate_if(struct evaluation *evaluation, const struct node *node,
                        struct cedar_value *result)
{
    if (!evaluate_kind(evaluation, node->operands[0], CEDAR_BOOL, result))
        return false;
    return evaluate(evaluation, node->operands[result->boolean ? 1 : 2], result);
}

/* The first operand that equals `stop` ends it. */
static bool evaluate_until(struct evaluation *evaluation, const struct node *node, bool stop,
                           struct cedar_value *result)
{
    for (uint32_t i = 0; i < node->count; i++) {
        if (!evaluate_kind(evaluation, node->operands[i], CEDAR_BOOL, result))
            return false;
        if (result->boolean == stop)
            break;
    }
    return true;
}

static bool evaluate_and(struct evaluation *evaluation, const struct node *node,
                         struct cedar_value *result)
{
    return evaluate_until(evaluation, node, false, result);
}

static bool evaluate_or(struct evaluation *evaluation, const struct node *node,
                        struct cedar_value *result)
{
    return evaluate_until(evaluation, node, true, result);
}

static bool evaluate_not(struct evaluation *evaluation, const struct node *node,
                         struct cedar_value *result)
{
    if (!evaluate_kind(evaluation, node->operands[0], CEDAR_BOOL, result))
        return false;
    result->boolean = !result->boolean;
    return true;
}

/* ---- Comparison ------------------------------------------------------------------------ */

static bool evaluate_both(struct evaluation *evaluation, const struct node *node,
                          struct cedar_value *left, struct cedar_value *right)
{
    return evaluate(evaluation, node->operands[0], left) &&
           evaluate(evaluation, node->operands[1], right);
}

static bool evaluate_equal(struct evaluation *evaluation, const struct node *node,
                           struct cedar_value *result)
{
    struct cedar_value left, right;
    if (!evaluate_both(evaluation, node, &left, &right) ||
        !spend(evaluation, node, value_weight(&left)))
        return false;
    bool equal = left.kind == CEDAR_STRING && right.kind == CEDAR_STRING
                     ? str_equal(left.text, right.text) /* by far the most frequent */
                     : cedar_value_equal(&left, &right);
    *result = cedar_bool(equal == (node->kind == NODE_EQUAL));
    return true;
}

#define ORDERED (KIND_BIT(CEDAR_LONG) | KIND_BIT(CEDAR_DATETIME) | KIND_BIT(CEDAR_DURATION))

/* The required kind of the other operand of a comparison. */
static unsigned ordered_by(const struct cedar_value *value)
{
    return KIND_BIT(value->kind) & ORDERED ? KIND_BIT(value->kind) : ORDERED;
}

static bool evaluate_order(struct evaluation *evaluation, const struct node *node,
                           struct cedar_value *result)
{
    struct cedar_value left, right;
    if (!evaluate_both(evaluation, node, &left, &right))
        return false;
    if (!(KIND_BIT(left.kind) & ORDERED))
        return fail_type(evaluation, node, ordered_by(&right), left.kind);
    if (left.kind != right.kind)
        return fail_type(evaluation, node, KIND_BIT(left.kind), right.kind);
    bool less = left.number < right.number, equal = left.number == right.number;
    *result = cedar_bool(node->kind == NODE_LESS            ? less
                         : node->kind == NODE_LESS_OR_EQUAL ? less || equal
                         : node->kind == NODE_GREATER       ? !less && !equal
                                                            : !less);
    return true;
}

/* ---- Arithmetic ------------------------------------------------------------------------ */

static bool evaluate_arithmetic(struct evaluation *evaluation, const struct node *node,
                                struct cedar_value *result)
{
    struct cedar_value left, right;
    if (!evaluate_both(evaluation, node, &left, &right))
        return false;
    if (left.kind != CEDAR_LONG || right.kind != CEDAR_LONG)
        return fail_type(evaluation, node, KIND_BIT(CEDAR_LONG),
                         left.kind != CEDAR_LONG ? left.kind : right.kind);
    bool overflow = node->kind == NODE_ADD
                        ? __builtin_add_overflow(left.number, right.number, &left.number)
                    : node->kind == NODE_SUBTRACT
                        ? __builtin_sub_overflow(left.number, right.number, &left.number)
                        : __builtin_mul_overflow(left.number, right.number, &left.number);
    *result = left;
    return !overflow || fail(evaluation, node, CEDAR_FAILURE_OVERFLOW);
}

static bool evaluate_negate(struct evaluation *evaluation, const struct node *node,
                            struct cedar_value *result)
{
    if (!evaluate_kind(evaluation, node->operands[0], CEDAR_LONG, result))
        return false;
    return !__builtin_sub_overflow((int64_t)0, result->number, &result->number) ||
           fail(evaluation, node, CEDAR_FAILURE_OVERFLOW);
}

/* ---- Sets and records ------------------------------------------------------------------ */

static bool evaluate_contains(struct evaluation *evaluation, const struct node *node,
                              struct cedar_value *result)
{
    struct cedar_value set, element;
    if (!evaluate_both(evaluation, node, &set, &element))
        return false;
    if (set.kind != CEDAR_SET)
        return fail_type(evaluation, node, KIND_BIT(CEDAR_SET), set.kind);
    *result = cedar_bool(set_contains(set.set, &element));
    return spend(evaluation, node, value_weight(&element));
}

static bool evaluate_contains_many(struct evaluation *evaluation, const struct node *node,
                                   struct cedar_value *result)
{
    struct cedar_value whole, part;
    if (!evaluate_both(evaluation, node, &whole, &part))
        return false;
    if (whole.kind != CEDAR_SET || part.kind != CEDAR_SET)
        return fail_type(evaluation, node, KIND_BIT(CEDAR_SET),
                         whole.kind != CEDAR_SET ? whole.kind : part.kind);
    if (!spend(evaluation, node, part.set->weight))
        return false;
    *result = cedar_bool(node->kind == NODE_CONTAINS_ALL ? set_is_subset(part.set, whole.set)
                                                         : set_overlaps(whole.set, part.set));
    return true;
}

static bool evaluate_is_empty(struct evaluation *evaluation, const struct node *node,
                              struct cedar_value *result)
{
    if (!evaluate_kind(evaluation, node->operands[0], CEDAR_SET, result))
        return false;
    *result = cedar_bool(result->set->count == 0);
    return true;
}

static struct cedar_value *evaluate_operands(struct evaluation *evaluation, const struct node *node)
{
    struct cedar_value *values =
        arena_alloc_array(evaluation->scratch, node->count, sizeof *values);
    for (uint32_t i = 0; i < node->count; i++)
        if (!evaluate(evaluation, node->operands[i], &values[i]))
            return NULL;
    return values;
}

/* A new value must be hashed: that is work by its weight. */
static bool finish_built(struct evaluation *evaluation, const struct node *node, bool built,
                         const struct cedar_value *value)
{
    return built ? spend(evaluation, node, value_weight(value))
                 : fail(evaluation, node, CEDAR_FAILURE_BUDGET); /* nested too deep */
}

static bool evaluate_set(struct evaluation *evaluation, const struct node *node,
                         struct cedar_value *result)
{
    struct cedar_value *values = evaluate_operands(evaluation, node);
    return values &&
           finish_built(evaluation, node,
                        set_build(evaluation->scratch, values, node->count, result), result);
}

static bool evaluate_record(struct evaluation *evaluation, const struct node *node,
                            struct cedar_value *result)
{
    struct cedar_member *members =
        arena_alloc_array(evaluation->scratch, node->count, sizeof *members);
    for (uint32_t i = 0; i < node->count; i++) {
        members[i].name = node->names[i];
        if (!evaluate(evaluation, node->operands[i], &members[i].value))
            return false;
    }
    return finish_built(evaluation, node,
                        record_build(evaluation->scratch, members, node->count, result, NULL),
                        result);
}

static bool evaluate_call(struct evaluation *evaluation, const struct node *node,
                          struct cedar_value *result)
{
    struct cedar_value *values = evaluate_operands(evaluation, node);
    if (!values)
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!spend(evaluation, node, value_weight(&values[i])))
            return false;
    if (extension_call(node->extension, evaluation->scratch, values, node->count, result,
                       &evaluation->failure))
        return true;
    evaluation->failure.offset = node->offset;
    return false;
}

/* ---- The table ------------------------------------------------------------------------- */

evaluator *const evaluators[NODE_KIND_COUNT] = {
    [NODE_VARIABLE] = evaluate_variable,
    [NODE_IF] = evaluate_if,
    [NODE_AND] = evaluate_and,
    [NODE_OR] = evaluate_or,
    [NODE_NOT] = evaluate_not,
    [NODE_NEGATE] = evaluate_negate,
    [NODE_EQUAL] = evaluate_equal,
    [NODE_NOT_EQUAL] = evaluate_equal,
    [NODE_LESS] = evaluate_order,
    [NODE_LESS_OR_EQUAL] = evaluate_order,
    [NODE_GREATER] = evaluate_order,
    [NODE_GREATER_OR_EQUAL] = evaluate_order,
    [NODE_IN] = evaluate_in,
    [NODE_ADD] = evaluate_arithmetic,
    [NODE_SUBTRACT] = evaluate_arithmetic,
    [NODE_MULTIPLY] = evaluate_arithmetic,
    [NODE_CONTAINS] = evaluate_contains,
    [NODE_CONTAINS_ALL] = evaluate_contains_many,
    [NODE_CONTAINS_ANY] = evaluate_contains_many,
    [NODE_IS_EMPTY] = evaluate_is_empty,
    [NODE_GET_TAG] = evaluate_get_tag,
    [NODE_HAS_TAG] = evaluate_has_tag,
    [NODE_GET] = evaluate_get,
    [NODE_HAS] = evaluate_has,
    [NODE_LIKE] = evaluate_like,
    [NODE_IS] = evaluate_is,
    [NODE_SET] = evaluate_set,
    [NODE_RECORD] = evaluate_record,
    [NODE_CALL] = evaluate_call,
};
