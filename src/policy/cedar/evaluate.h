/*
 * Expressions to values, for one request.
 */
#pragma once

#include "ast.h"
#include "entities.h"

struct evaluation {
    const struct cedar_entities *entities;
    const struct cedar_request *request;
    /* The entities of the request's three, NULL when they are not there. */
    const struct entity *principal, *action, *resource;
    struct arena *scratch; /* for new values */
    uint64_t budget;       /* steps left */
    struct cedar_failure failure;
};

/* Whether `child` is `ancestor` or in it. */
bool evaluation_is_in(const struct evaluation *evaluation, const struct cedar_uid *child,
                      const struct cedar_uid *ancestor);

/* ---- Between the files of the evaluator ------------------------------------------------ */

typedef bool evaluator(struct evaluation *evaluation, const struct node *node,
                       struct cedar_value *result);
/* By kind of node; none for constants. */
extern evaluator *const evaluators[NODE_KIND_COUNT];
evaluator evaluate_get, evaluate_has, evaluate_get_tag, evaluate_has_tag, evaluate_like,
    evaluate_is, evaluate_in;

#define KIND_BIT(kind) (1U << (kind))

/* All return false. */
bool fail(struct evaluation *evaluation, const struct node *node, enum cedar_failure_code code);
/* False when the expression has no value; `failure` says why, but for the policy. */
static inline bool evaluate(struct evaluation *evaluation, const struct node *node,
                            struct cedar_value *result)
{
    if (evaluation->budget == 0) {
        fail(evaluation, node, CEDAR_FAILURE_BUDGET);
        return false;
    }
    evaluation->budget--;
    if (node->kind != NODE_CONSTANT)
        return evaluators[node->kind](evaluation, node, result);
    *result = node->constant;
    return true;
}

/* Evaluates to a value of one kind. */
bool evaluate_kind(struct evaluation *evaluation, const struct node *node, enum cedar_kind kind,
                   struct cedar_value *result);
