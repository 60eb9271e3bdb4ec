/* Operators: one function for each kind of node, found in a table; constants need none. */
#include "evaluate.h"
#include "variants.h"

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

/* Names in `asked` that another member of a record of names could be taken for. */
static bool check_members(struct evaluation *evaluation, const struct node *node,
                          const struct cedar_record *names, const struct cedar_record *asked)
{
    for (size_t i = 0; names->warns_of_variants && i < asked->count; i++) {
        struct str name = asked->members[i].name;
        if (!spend(evaluation, node, 1 + name.length / BYTES_PER_STEP))
            return false;
        if (record_has_variant(names, evaluation->scratch, name))
            return fail_variant(evaluation, node, STR_EMPTY);
    }
    return true;
}

/* Two records whose names differ by case or look alone are unequal here, and may be equal to the
 * server. So a comparison that found no equal records asks for each name, as an access to an
 * attribute does. */
static bool check_names(struct evaluation *evaluation, const struct node *node,
                        const struct cedar_value *a, const struct cedar_value *b)
{
    if (a->kind != b->kind || (!value_has_names(a) && !value_has_names(b)))
        return true;
    if (a->kind == CEDAR_SET) {
        for (size_t i = 0; i < a->set->count; i++)
            for (size_t k = 0; k < b->set->count; k++)
                if (!spend(evaluation, node, 1) ||
                    !check_names(evaluation, node, &a->set->items[i], &b->set->items[k]))
                    return false;
        return true;
    }
    if (!check_members(evaluation, node, a->record, b->record) ||
        !check_members(evaluation, node, b->record, a->record))
        return false;
    for (size_t i = 0; i < a->record->count; i++) {
        const struct cedar_member *member = &a->record->members[i];
        const struct cedar_value *other = cedar_record_get(b->record, member->name);
        if (other &&
            (!spend(evaluation, node, 1) || !check_names(evaluation, node, &member->value, other)))
            return false;
    }
    return true;
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
    return equal || check_names(evaluation, node, &left, &right);
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
    const struct cedar_set alone = {
        .count = 1, .items = &element, .has_names = value_has_names(&element)};
    const struct cedar_value sought = {.kind = CEDAR_SET, .set = &alone};
    if (!spend(evaluation, node, value_weight(&element)))
        return false;
    *result = cedar_bool(set_contains(set.set, &element));
    return result->boolean || check_names(evaluation, node, &set, &sought);
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
    return result->boolean || check_names(evaluation, node, &whole, &part);
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

/* The parts of a new value are hashed, an element of a set also where it is there twice. */
static bool spend_on(struct evaluation *evaluation, const struct node *node,
                     const struct cedar_value *part)
{
    return spend(evaluation, node, value_weight(part));
}

static bool evaluate_set(struct evaluation *evaluation, const struct node *node,
                         struct cedar_value *result)
{
    struct cedar_value *values = evaluate_operands(evaluation, node);
    if (!values)
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!spend_on(evaluation, node, &values[i]))
            return false;
    return set_build(evaluation->scratch, values, node->count, result) ||
           fail(evaluation, node, CEDAR_FAILURE_DEPTH);
}

static bool evaluate_record(struct evaluation *evaluation, const struct node *node,
                            struct cedar_value *result)
{
    struct cedar_member *members =
        arena_alloc_array(evaluation->scratch, node->count, sizeof *members);
    for (uint32_t i = 0; i < node->count; i++) {
        members[i].name = node->names[i];
        if (!evaluate(evaluation, node->operands[i], &members[i].value) ||
            !spend_on(evaluation, node, &members[i].value))
            return false;
    }
    return record_build(evaluation->scratch, members, node->count, result, NULL) ||
           fail(evaluation, node, CEDAR_FAILURE_DEPTH);
}

static bool evaluate_call(struct evaluation *evaluation, const struct node *node,
                          struct cedar_value *result)
{
    struct cedar_value *values = evaluate_operands(evaluation, node);
    if (!values)
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!spend_on(evaluation, node, &values[i]))
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
