/* Access to entities, records and texts: attributes, tags, types, ancestors, patterns. */
#include <string.h>

#include "evaluate.h"
#include "variants.h"

const struct entity *find_entity(const struct evaluation *evaluation, const struct cedar_uid *uid)
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

/* ---- Attributes ------------------------------------------------------------------------ */

#define HAS_ATTRIBUTES (KIND_BIT(CEDAR_RECORD) | KIND_BIT(CEDAR_ENTITY))

bool evaluate_get(struct evaluation *evaluation, const struct node *node,
                  struct cedar_value *result)
{
    if (!evaluate(evaluation, node->operands[0], result))
        return false;
    const struct cedar_record *record = NULL;
    if (result->kind == CEDAR_RECORD) {
        record = result->record;
    } else if (result->kind == CEDAR_ENTITY) {
        const struct entity *entity = find_entity(evaluation, result->entity);
        if (!entity)
            return fail(evaluation, node, CEDAR_FAILURE_ENTITY);
        record = entity->attributes;
    } else {
        return fail_type(evaluation, node, HAS_ATTRIBUTES, result->kind);
    }
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
        const struct cedar_record *record = &record_empty;
        if (target.kind == CEDAR_RECORD) {
            record = target.record;
        } else if (target.kind == CEDAR_ENTITY) {
            const struct entity *entity = find_entity(evaluation, target.entity);
            if (entity)
                record = entity->attributes;
        } else {
            return fail_type(evaluation, node, HAS_ATTRIBUTES, target.kind);
        }
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
    if (!evaluate(evaluation, node->operands[0], &target) ||
        !evaluate(evaluation, node->operands[1], &name))
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
    if (!evaluate(evaluation, node->operands[0], &child) ||
        !evaluate(evaluation, node->operands[1], &ancestors))
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
static bool matches(struct str text, const struct pattern *pattern)
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
    *result = cedar_bool(matches(text.text, &node->pattern));
    return true;
}
