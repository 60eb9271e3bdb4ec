/* Operators: one function for each kind of node, found in a table; constants need none. */
#include <stdlib.h>
#include <string.h>

#include "evaluate.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/fold.h"
#include "value.h"

/* A member with a name that folding changes. */
struct folded_name {
    struct str folded, name;
};

/* Members of a record that a reader without case could take for one another. */

static int compare_folds(const void *left, const void *right)
{
    const struct folded_name *a = left, *b = right;
    return str_compare(a->folded, b->folded);
}

static struct str fold_into(struct arena *arena, struct str name)
{
    OWNED_BUFFER(folded);
    fold_append(&folded, name);
    struct str copy = arena_copy(arena, buffer_str(&folded));
    return copy;
}

bool cedar_record_of_names(struct cedar_heap *heap, const struct cedar_member *members,
                           size_t count, struct cedar_value *record)
{
    size_t unfolded_count = 0;
    if (!cedar_record(heap, members, count, record))
        return false;
    struct cedar_record *made = arena_alloc(&heap->arena, sizeof *made);
    *made = *record->record;
    made->warns_of_variants = made->has_names = true;
    for (size_t i = 0; i < count; i++)
        unfolded_count += !fold_is_folded(members[i].name);
    struct folded_name *unfolded =
        arena_alloc_array(&heap->arena, unfolded_count, sizeof *unfolded);
    for (size_t i = 0; i < count; i++) {
        struct str name = members[i].name;
        if (!fold_is_folded(name))
            unfolded[made->unfolded_count++] =
                (struct folded_name){fold_into(&heap->arena, name), name};
    }
    ASSERT_NUMBERS(made->unfolded_count, ==, unfolded_count); /* the room that was counted */
    if (unfolded_count > 1)
        qsort(unfolded, unfolded_count, sizeof *unfolded, compare_folds);
    made->unfolded = unfolded;
    record->record = made;
    return true;
}

/* Whether the record was made by cedar_record_of_names(), and has a member with another name but
 * the same folded name as `name`. */
static bool record_has_variant(const struct cedar_record *record, struct arena *scratch,
                               struct str name)
{
    struct str folded = name;
    if (!record->warns_of_variants)
        return false;
    if (!fold_is_folded(name)) {
        folded = fold_into(scratch, name);
        if (cedar_record_get(record, folded))
            return true;
    }
    size_t low = 0, high = record->unfolded_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_compare(record->unfolded[middle].folded, folded) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < record->unfolded_count && str_equal(record->unfolded[low].folded, folded); low++) {
        if (!str_equal(record->unfolded[low].name, name))
            return true;
    }
    return false;
}

/* Shared by all operators: failing, taking steps off the budget, wanting a value of one kind. */

bool fail(struct evaluation *evaluation, const struct node *node, enum cedar_failure_code code)
{
    evaluation->failure = (struct cedar_failure){.code = code, .offset = node->offset};
    if (node->kind == NODE_GET)
        evaluation->failure.name = node->name;
    return false;
}

static bool fail_type(struct evaluation *evaluation, const struct node *node, unsigned expected,
                      enum cedar_kind found)
{
    evaluation->failure = (struct cedar_failure){
        .code = CEDAR_FAILURE_TYPE, .offset = node->offset, .expected = expected, .found = found};
    return false;
}

static bool fail_unknown(struct evaluation *evaluation, const struct node *node, struct str name)
{
    evaluation->failure =
        (struct cedar_failure){.code = CEDAR_FAILURE_UNKNOWN, .offset = node->offset, .name = name};
    return false;
}

/* `name` is empty where whole records are compared. */
static bool fail_variant(struct evaluation *evaluation, const struct node *node, struct str name)
{
    evaluation->failure =
        (struct cedar_failure){.code = CEDAR_FAILURE_VARIANT, .offset = node->offset, .name = name};
    return false;
}

/* Takes `steps` off the budget; false when there are not so many left. */
static bool spend(struct evaluation *evaluation, const struct node *node, uint64_t steps)
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

/* Access to entities, records and texts: attributes, tags, types, ancestors, patterns. */

static const struct entity *find_entity(const struct evaluation *evaluation,
                                        const struct cedar_uid *uid)
{
    const struct cedar_request *request = evaluation->request;
    if (uid == &request->principal)
        return evaluation->principal;
    if (uid == &request->resource)
        return evaluation->resource;
    if (uid == &request->action)
        return evaluation->action;
    return entities_find(evaluation->entities, uid);
}

static bool evaluate_both(struct evaluation *evaluation, const struct node *node,
                          struct cedar_value *left, struct cedar_value *right)
{
    return evaluate(evaluation, node->operands[0], left) &&
           evaluate(evaluation, node->operands[1], right);
}

/* ---- Attributes ------------------------------------------------------------------------ */

#define HAS_ATTRIBUTES (KIND_BIT(CEDAR_RECORD) | KIND_BIT(CEDAR_ENTITY))

/* The attributes of a record or an entity; NULL: there is no such entity. */
static bool attributes_of(const struct evaluation *evaluation, const struct cedar_value *value,
                          const struct cedar_record **record)
{
    *record = NULL;
    if (value->kind == CEDAR_RECORD) {
        *record = value->record;
    } else if (value->kind == CEDAR_ENTITY) {
        const struct entity *entity = find_entity(evaluation, value->entity);
        *record = entity ? entity->attributes : NULL;
    }
    return value->kind == CEDAR_RECORD || value->kind == CEDAR_ENTITY;
}

bool evaluate_get(struct evaluation *evaluation, const struct node *node,
                  struct cedar_value *result)
{
    const struct cedar_record *record;
    if (!evaluate(evaluation, node->operands[0], result))
        return false;
    if (!attributes_of(evaluation, result, &record))
        return fail_type(evaluation, node, HAS_ATTRIBUTES, result->kind);
    if (!record)
        return fail(evaluation, node, CEDAR_FAILURE_ENTITY);
    if (record_has_variant(record, evaluation->scratch, node->name))
        return fail_variant(evaluation, node, node->name);
    const struct cedar_value *value = cedar_record_get(record, node->name);
    if (!value)
        return fail(evaluation, node, CEDAR_FAILURE_ATTRIBUTE);
    if (value->kind == CEDAR_UNKNOWN)
        return fail_unknown(evaluation, node, node->name);
    *result = *value;
    return true;
}

/* Every name but the last must be there for the next one to be looked for. */
bool evaluate_has(struct evaluation *evaluation, const struct node *node,
                  struct cedar_value *result)
{
    struct cedar_value target;
    if (!evaluate(evaluation, node->operands[0], &target))
        return false;
    *result = cedar_bool(false);
    for (uint32_t i = 0; i < node->name_count; i++) {
        const struct cedar_record *record;
        if (!attributes_of(evaluation, &target, &record))
            return fail_type(evaluation, node, HAS_ATTRIBUTES, target.kind);
        if (!record)
            return true;
        if (record_has_variant(record, evaluation->scratch, node->names[i]))
            return fail_variant(evaluation, node, node->names[i]);
        const struct cedar_value *value = cedar_record_get(record, node->names[i]);
        if (!value)
            return true;
        if (value->kind == CEDAR_UNKNOWN && i + 1 < node->name_count)
            return fail_unknown(evaluation, node, node->names[i]);
        target = *value;
    }
    *result = cedar_bool(true);
    return true;
}

/* ---- Tags ------------------------------------------------------------------------------ */

/* The entity, NULL when it is not there, and the tag's name. */
static bool evaluate_tag(struct evaluation *evaluation, const struct node *node,
                         const struct entity **entity, struct str *tag)
{
    struct cedar_value target, name;
    *entity = NULL;
    *tag = STR_EMPTY;
    if (!evaluate_both(evaluation, node, &target, &name))
        return false;
    if (target.kind != CEDAR_ENTITY)
        return fail_type(evaluation, node, KIND_BIT(CEDAR_ENTITY), target.kind);
    if (name.kind != CEDAR_STRING)
        return fail_type(evaluation, node, KIND_BIT(CEDAR_STRING), name.kind);
    *entity = find_entity(evaluation, target.entity);
    *tag = name.text;
    return true;
}

bool evaluate_get_tag(struct evaluation *evaluation, const struct node *node,
                      struct cedar_value *result)
{
    const struct entity *entity;
    struct str tag;
    if (!evaluate_tag(evaluation, node, &entity, &tag))
        return false;
    if (!entity)
        return fail(evaluation, node, CEDAR_FAILURE_ENTITY);
    const struct cedar_value *value = cedar_record_get(entity->tags, tag);
    if (!value)
        return fail(evaluation, node, CEDAR_FAILURE_TAG);
    *result = *value;
    return true;
}

bool evaluate_has_tag(struct evaluation *evaluation, const struct node *node,
                      struct cedar_value *result)
{
    const struct entity *entity;
    struct str tag;
    if (!evaluate_tag(evaluation, node, &entity, &tag))
        return false;
    *result = cedar_bool(entity && cedar_record_get(entity->tags, tag));
    return true;
}

/* ---- Hierarchy ------------------------------------------------------------------------- */

bool evaluation_is_in(const struct evaluation *evaluation, const struct cedar_uid *child,
                      const struct cedar_uid *ancestor)
{
    if (cedar_uid_equal(child, ancestor))
        return true;
    const struct entity *entity = find_entity(evaluation, child);
    return entity && entity_has_ancestor(entity, ancestor);
}

/* An element that is no entity is an error even behind one that fits. */
static bool check_entities(struct evaluation *evaluation, const struct node *node,
                           const struct cedar_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i].kind != CEDAR_ENTITY)
            return fail_type(evaluation, node, KIND_BIT(CEDAR_ENTITY), set->items[i].kind);
    return spend(evaluation, node, set->count);
}

static bool is_in_value(struct evaluation *evaluation, const struct node *node,
                        const struct cedar_uid *child, const struct cedar_value *ancestors,
                        struct cedar_value *result)
{
    *result = cedar_bool(false);
    if (ancestors->kind == CEDAR_ENTITY) {
        result->boolean = evaluation_is_in(evaluation, child, ancestors->entity);
        return true;
    }
    if (ancestors->kind != CEDAR_SET)
        return fail_type(evaluation, node, KIND_BIT(CEDAR_ENTITY) | KIND_BIT(CEDAR_SET),
                         ancestors->kind);
    if (!check_entities(evaluation, node, ancestors->set))
        return false;
    for (size_t i = 0; i < ancestors->set->count && !result->boolean; i++)
        result->boolean = evaluation_is_in(evaluation, child, ancestors->set->items[i].entity);
    return true;
}

bool evaluate_in(struct evaluation *evaluation, const struct node *node, struct cedar_value *result)
{
    struct cedar_value child, ancestors;
    if (!evaluate_both(evaluation, node, &child, &ancestors))
        return false;
    if (child.kind != CEDAR_ENTITY)
        return fail_type(evaluation, node, KIND_BIT(CEDAR_ENTITY), child.kind);
    return is_in_value(evaluation, node, child.entity, &ancestors, result);
}

bool evaluate_is(struct evaluation *evaluation, const struct node *node, struct cedar_value *result)
{
    struct cedar_value target, ancestors;
    if (!evaluate_kind(evaluation, node->operands[0], CEDAR_ENTITY, &target))
        return false;
    *result = cedar_bool(str_equal(target.entity->type, node->name));
    if (node->count == 1 || !result->boolean)
        return true;
    return evaluate(evaluation, node->operands[1], &ancestors) &&
           is_in_value(evaluation, node, target.entity, &ancestors, result);
}

/* ---- Patterns -------------------------------------------------------------------------- */

/* The first piece at the front, the last at the end, those between one behind the other as
 * early as they come: taking the earliest never hinders a later one. */
static bool evaluate_matches(struct str text, const struct pattern *pattern)
{
    struct str first = pattern->pieces[0], last = pattern->pieces[pattern->count - 1];
    if (pattern->count == 1)
        return str_equal(text, first);
    if (text.length < first.length + last.length || !str_starts_with(text, first) ||
        !str_ends_with(text, last))
        return false;
    size_t position = first.length, end = text.length - last.length;
    for (size_t i = 1; i + 1 < pattern->count; i++) {
        struct str piece = pattern->pieces[i];
        if (piece.length == 0)
            continue;
        if (position == end)
            return false;
        const char *found =
            memmem(text.bytes + position, end - position, piece.bytes, piece.length);
        if (!found)
            return false;
        position = (size_t)(found - text.bytes) + piece.length;
    }
    return true;
}

bool evaluate_like(struct evaluation *evaluation, const struct node *node,
                   struct cedar_value *result)
{
    struct cedar_value text;
    if (!evaluate_kind(evaluation, node->operands[0], CEDAR_STRING, &text) ||
        !spend(evaluation, node, value_weight(&text)) ||
        !spend(evaluation, node, node->pattern.weight))
        return false;
    *result = cedar_bool(evaluate_matches(text.text, &node->pattern));
    return true;
}

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

/* Names in `asked` that another member of a record of names could be taken for. */
static bool evaluate_check_members(struct evaluation *evaluation, const struct node *node,
                                   const struct cedar_record *names,
                                   const struct cedar_record *asked)
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
static bool evaluate_check_names(struct evaluation *evaluation, const struct node *node,
                                 const struct cedar_value *a, const struct cedar_value *b)
{
    if (a->kind != b->kind || (!value_has_names(a) && !value_has_names(b)))
        return true;
    if (a->kind == CEDAR_SET) {
        for (size_t i = 0; i < a->set->count; i++)
            for (size_t k = 0; k < b->set->count; k++)
                if (!spend(evaluation, node, 1) ||
                    !evaluate_check_names(evaluation, node, &a->set->items[i], &b->set->items[k]))
                    return false;
        return true;
    }
    if (!evaluate_check_members(evaluation, node, a->record, b->record) ||
        !evaluate_check_members(evaluation, node, b->record, a->record))
        return false;
    for (size_t i = 0; i < a->record->count; i++) {
        const struct cedar_member *member = &a->record->members[i];
        const struct cedar_value *other = cedar_record_get(b->record, member->name);
        if (other && (!spend(evaluation, node, 1) ||
                      !evaluate_check_names(evaluation, node, &member->value, other)))
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
    return equal || evaluate_check_names(evaluation, node, &left, &right);
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
    return result->boolean || evaluate_check_names(evaluation, node, &set, &sought);
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
    return result->boolean || evaluate_check_names(evaluation, node, &whole, &part);
}

static bool evaluate_is_empty(struct evaluation *evaluation, const struct node *node,
                              struct cedar_value *result)
{
    if (!evaluate_kind(evaluation, node->operands[0], CEDAR_SET, result))
        return false;
    *result = cedar_bool(result->set->count == 0);
    return true;
}

/* The parts of a new value are hashed, an element of a set also where it is there twice. */
static bool spend_on(struct evaluation *evaluation, const struct node *node,
                     const struct cedar_value *part)
{
    return spend(evaluation, node, value_weight(part));
}

static struct cedar_value *evaluate_operands(struct evaluation *evaluation, const struct node *node)
{
    struct cedar_value *values =
        arena_alloc_array(evaluation->scratch, node->count, sizeof *values);
    for (uint32_t i = 0; i < node->count; i++)
        if (!evaluate(evaluation, node->operands[i], &values[i]))
            return NULL;
    for (uint32_t i = 0; i < node->count; i++)
        if (!spend_on(evaluation, node, &values[i]))
            return NULL;
    return values;
}

static bool evaluate_set(struct evaluation *evaluation, const struct node *node,
                         struct cedar_value *result)
{
    struct cedar_value *values = evaluate_operands(evaluation, node);
    if (!values)
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
