/* The first operand of the first condition is evaluated before all others. If it is false, the
 * policy does not apply. A text with another hash is another text. */
#include "guard.h"

#include "taskgate/core/assert.h"

/* A longer text is not hashed: it is compared during the evaluation. */
#define LONGEST_TEXT 256

struct guard {
    uint64_t hash;      /* of the text that the attribute is compared with */
    uint32_t attribute; /* GUARD_ATTRIBUTES when there is none */
};

struct guards {
    const struct node *attributes[GUARD_ATTRIBUTES]; /* VARIABLE.NAME, of the first that asks */
    size_t attribute_count;
    struct guard *items; /* one for each policy */
};

/* ---- When policies are parsed ---------------------------------------------------------- */

static bool is_same_attribute(const struct node *a, const struct node *b)
{
    return a->operands[0]->variable == b->operands[0]->variable && str_equal(a->name, b->name);
}

static uint32_t find_attribute(struct guards *guards, const struct node *get)
{
    size_t i = 0;
    while (i < guards->attribute_count && !is_same_attribute(guards->attributes[i], get))
        i++;
    if (i == guards->attribute_count && i < GUARD_ATTRIBUTES)
        guards->attributes[guards->attribute_count++] = get;
    return (uint32_t)i;
}

/* The node that is evaluated first; NULL without conditions. */
static const struct node *guard_first_of(const struct node *condition)
{
    while (condition && condition->kind == NODE_AND)
        condition = condition->operands[0];
    return condition;
}

/* VARIABLE.NAME == "text", or the other way round. */
static struct guard guard_of(struct guards *guards, const struct cedar_policy *policy)
{
    struct guard guard = {.attribute = GUARD_ATTRIBUTES};
    const struct node *first = guard_first_of(policy->condition);
    if (!first || first->kind != NODE_EQUAL)
        return guard;
    bool is_turned = first->operands[0]->kind == NODE_CONSTANT;
    const struct node *get = first->operands[is_turned], *text = first->operands[!is_turned];
    if (get->kind != NODE_GET || get->operands[0]->kind != NODE_VARIABLE ||
        text->kind != NODE_CONSTANT || text->constant.kind != CEDAR_STRING)
        return guard;
    guard.attribute = find_attribute(guards, get);
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

/* The attribute is evaluated as a policy would, so that an absent, unknown or ambiguous one is each
 * policy's own error to tell. */
static struct guard_answer evaluate_guard(const struct evaluation *evaluation,
                                          const struct node *get)
{
    struct evaluation aside = *evaluation; /* no policy is charged for it */
    struct cedar_value value;
    if (!evaluate(&aside, get, &value))
        return (struct guard_answer){.kind = GUARD_ASKS};
    if (value.kind != CEDAR_STRING)
        return (struct guard_answer){.kind = GUARD_REFUSES};
    if (value.text.length > LONGEST_TEXT)
        return (struct guard_answer){.kind = GUARD_ASKS};
    return (struct guard_answer){.kind = GUARD_COMPARES, .hash = value_hash_text(value.text)};
}

void guards_answer(const struct guards *guards, const struct evaluation *evaluation,
                   struct guard_answers *answers)
{
    for (size_t i = 0; i < guards->attribute_count; i++)
        answers->attributes[i] = evaluate_guard(evaluation, guards->attributes[i]);
}

bool guards_pass_over(const struct guards *guards, const struct guard_answers *answers,
                      size_t policy)
{
    const struct guard *guard = &guards->items[policy];
    if (guard->attribute == GUARD_ATTRIBUTES)
        return false;
    ASSERT_NUMBERS(guard->attribute, <, GUARD_ATTRIBUTES);
    const struct guard_answer *answer = &answers->attributes[guard->attribute];
    return answer->kind == GUARD_REFUSES ||
           (answer->kind == GUARD_COMPARES && answer->hash != guard->hash);
}
