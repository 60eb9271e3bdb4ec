/* The first operand of the first condition is evaluated before all others. If it is false, the
 * policy does not apply. A text with another hash is another text. */
#include "guard.h"

/* A longer text is not hashed: it is compared during the evaluation. */
#define LONGEST_TEXT 256

struct guard {
    uint64_t hash;      /* of the text that the attribute is compared with */
    uint32_t attribute; /* GUARD_ATTRIBUTES when there is none */
};

struct guards {
    struct guarded_attribute {
        enum variable variable;
        struct str name;
    } attributes[GUARD_ATTRIBUTES];
    size_t attribute_count;
    struct guard *items; /* one for each policy */
};

/* ---- When policies are parsed ---------------------------------------------------------- */

static uint32_t find_attribute(struct guards *guards, enum variable variable, struct str name)
{
    size_t i = 0;
    while (i < guards->attribute_count && (guards->attributes[i].variable != variable ||
                                           !str_equal(guards->attributes[i].name, name)))
        i++;
    if (i == guards->attribute_count && i < GUARD_ATTRIBUTES)
        guards->attributes[guards->attribute_count++] =
            (struct guarded_attribute){.variable = variable, .name = name};
    return (uint32_t)i;
}

/* The node that is evaluated first; NULL without conditions. */
static const struct node *first_of(const struct node *condition)
{
    while (condition && condition->kind == NODE_AND)
        condition = condition->operands[0];
    return condition;
}

/* VARIABLE.NAME == "text", or the other way round. */
static struct guard guard_of(struct guards *guards, const struct cedar_policy *policy)
{
    struct guard guard = {.attribute = GUARD_ATTRIBUTES};
    const struct node *first = first_of(policy->condition);
    if (!first || first->kind != NODE_EQUAL)
        return guard;
    bool is_turned = first->operands[0]->kind == NODE_CONSTANT;
    const struct node *get = first->operands[is_turned], *text = first->operands[!is_turned];
    if (get->kind != NODE_GET || get->operands[0]->kind != NODE_VARIABLE ||
        text->kind != NODE_CONSTANT || text->constant.kind != CEDAR_STRING)
        return guard;
    guard.attribute = find_attribute(guards, get->operands[0]->variable, get->name);
    guard.hash = value_hash_text(text->constant.text);
    return guard;
}

struct guards *guards_build(struct cedar_policies *policies)
{
    struct guards *guards = arena_alloc(&policies->arena, sizeof *guards);
    *guards = (struct guards){
        .items = arena_alloc_array(&policies->arena, policies->count, sizeof *guards->items)};
    for (size_t i = 0; i < policies->count; i++)
        guards->items[i] = guard_of(guards, policies->items[i]);
    return guards;
}

/* ---- When a request is decided --------------------------------------------------------- */

static const struct cedar_record *record_of(const struct evaluation *evaluation,
                                            enum variable variable)
{
    const struct cedar_record *context = evaluation->request->context;
    if (variable == VARIABLE_CONTEXT)
        return context ? context : &record_empty;
    const struct entity *entity = variable == VARIABLE_PRINCIPAL  ? evaluation->principal
                                  : variable == VARIABLE_RESOURCE ? evaluation->resource
                                                                  : evaluation->action;
    return entity ? entity->attributes : NULL;
}

/* Without the attribute each policy has an error to tell. */
static struct guard_answer answer(const struct evaluation *evaluation,
                                  const struct guarded_attribute *attribute)
{
    const struct cedar_record *record = record_of(evaluation, attribute->variable);
    const struct cedar_value *value = record ? cedar_record_get(record, attribute->name) : NULL;
    if (!value)
        return (struct guard_answer){.kind = GUARD_ASKS};
    if (value->kind != CEDAR_STRING)
        return (struct guard_answer){.kind = GUARD_REFUSES};
    if (value->text.length > LONGEST_TEXT)
        return (struct guard_answer){.kind = GUARD_ASKS};
    return (struct guard_answer){.kind = GUARD_COMPARES, .hash = value_hash_text(value->text)};
}

void guards_answer(const struct guards *guards, const struct evaluation *evaluation,
                   struct guard_answers *answers)
{
    for (size_t i = 0; i < guards->attribute_count; i++)
        answers->attributes[i] = answer(evaluation, &guards->attributes[i]);
}

bool guards_pass_over(const struct guards *guards, const struct guard_answers *answers,
                      size_t policy)
{
    const struct guard *guard = &guards->items[policy];
    if (guard->attribute == GUARD_ATTRIBUTES)
        return false;
    const struct guard_answer *answer = &answers->attributes[guard->attribute];
    return answer->kind == GUARD_REFUSES ||
           (answer->kind == GUARD_COMPARES && answer->hash != guard->hash);
}
