/*
 * Shared by the suites of the Cedar engine: small policy sets, entities and requests.
 */
#pragma once

#include <check.h>

#include "taskgate/policy/cedar.h"

Suite *access_suite(void);
Suite *authorize_suite(void);
Suite *entities_suite(void);
Suite *expression_suite(void);
Suite *extension_suite(void);
Suite *guard_suite(void);
Suite *index_suite(void);
Suite *json_suite(void);
Suite *mutation_suite(void);
Suite *print_suite(void);
Suite *refusal_suite(void);
Suite *syntax_suite(void);
Suite *value_suite(void);

/* Fails the test with the problems when the text is refused. */
struct cedar_policies *must_parse(const char *text);
/* The problems of a text that must be refused; the caller frees. */
char *must_refuse(struct str text);
/* Sealed entities of JSON. */
struct cedar_entities *must_read_entities(const char *json);
/* User::"alice" does Action::"view" to Doc::"d1"; `context` (may be NULL) is JSON. */
struct cedar_request must_make_request(struct cedar_heap *heap, const char *context);

/* The outcome of an expression as the condition of a policy. */
enum outcome {
    FALSE_,
    TRUE_,
    TYPE_,
    ATTRIBUTE_,
    TAG_,
    ENTITY_,
    OVERFLOW_,
    CALL_,
    ARITY_,
    BUDGET_,
    DEPTH_
};
struct expression_case {
    const char *expression;
    enum outcome outcome;
};
/* Evaluates with the entities and the context of cedar_test.c. */
enum outcome outcome_of(const char *expression);
void expect_outcomes(const struct expression_case *cases, size_t count);
#define EXPECT_OUTCOMES(cases) expect_outcomes(cases, sizeof(cases) / sizeof *(cases))
