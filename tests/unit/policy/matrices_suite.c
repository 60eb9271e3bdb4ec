/* The matrices of behaviour 5.4, row by row. */
#include <check.h>

#include "suites.h"
#include "support.h"

#define ABSENT false, ANNOTATION_FORBIDDEN
#define FORBIDDEN true, ANNOTATION_FORBIDDEN
#define OPTIONAL true, ANNOTATION_OPTIONAL
#define REQUIRED true, ANNOTATION_REQUIRED

static const struct {
    const char *row;
    enum config_action action;
    bool force_required, upstream_tasks, has_own;
    enum policy_annotation own, expected;
} announcements[] = {
    /* §5.3, each with everything upstream may say of the tool */
    {"forward, tasks", ACTION_FORWARD, false, true, ABSENT, ANNOTATION_OPTIONAL},
    {"forward, tasks, forbidden", ACTION_FORWARD, false, true, FORBIDDEN, ANNOTATION_OPTIONAL},
    {"forward, tasks, optional", ACTION_FORWARD, false, true, OPTIONAL, ANNOTATION_OPTIONAL},
    {"forward, tasks, required", ACTION_FORWARD, false, true, REQUIRED, ANNOTATION_REQUIRED},
    {"forward, no tasks", ACTION_FORWARD, false, false, ABSENT, ANNOTATION_FORBIDDEN},
    {"forward, no tasks, optional", ACTION_FORWARD, false, false, OPTIONAL, ANNOTATION_FORBIDDEN},
    {"forward, no tasks, required", ACTION_FORWARD, false, false, REQUIRED, ANNOTATION_FORBIDDEN},
    {"approve, tasks", ACTION_APPROVE, false, true, ABSENT, ANNOTATION_REQUIRED},
    {"approve, tasks, forbidden", ACTION_APPROVE, false, true, FORBIDDEN, ANNOTATION_REQUIRED},
    {"approve, no tasks", ACTION_APPROVE, false, false, ABSENT, ANNOTATION_REQUIRED},
    {"deny, tasks", ACTION_DENY, false, true, ABSENT, ANNOTATION_FORBIDDEN},
    {"deny, tasks, required", ACTION_DENY, false, true, REQUIRED, ANNOTATION_FORBIDDEN},
    {"deny, no tasks", ACTION_DENY, false, false, ABSENT, ANNOTATION_FORBIDDEN},
    {"policy, tasks", ACTION_POLICY, false, true, ABSENT, ANNOTATION_REQUIRED},
    {"policy, no tasks", ACTION_POLICY, false, false, ABSENT, ANNOTATION_REQUIRED},
    /* §9.1 by the names there */
    {"Annotation: upstream no tasks + no approval", ACTION_FORWARD, false, false, ABSENT,
     ANNOTATION_FORBIDDEN},
    {"Annotation: upstream no tasks + approval possible", ACTION_APPROVE, false, false, ABSENT,
     ANNOTATION_REQUIRED},
    {"Annotation: upstream has tasks + no approval", ACTION_FORWARD, false, true, REQUIRED,
     ANNOTATION_REQUIRED},
    {"Annotation: forbidden + no approval", ACTION_DENY, false, true, FORBIDDEN,
     ANNOTATION_FORBIDDEN},
    {"Annotation: forbidden + approval possible", ACTION_APPROVE, false, true, FORBIDDEN,
     ANNOTATION_REQUIRED},
    {"Annotation: force_required override", ACTION_FORWARD, true, false, ABSENT,
     ANNOTATION_REQUIRED},
    {"force_required, tasks, forbidden", ACTION_FORWARD, true, true, FORBIDDEN,
     ANNOTATION_REQUIRED},
    {"force_required, deny", ACTION_DENY, true, true, ABSENT, ANNOTATION_REQUIRED},
    {"force_required, approve", ACTION_APPROVE, true, false, ABSENT, ANNOTATION_REQUIRED},
};

START_TEST(annotations_follow_the_decision_matrix)
{
    struct policy_decision decision = {.action = announcements[_i].action,
                                       .force_required = announcements[_i].force_required};
    enum policy_annotation announced =
        policy_annotate(&decision, announcements[_i].upstream_tasks, announcements[_i].has_own,
                        announcements[_i].own);
    ck_assert_msg(announced == announcements[_i].expected, "%s: %s", announcements[_i].row,
                  policy_annotation_name(announced));
}
END_TEST

START_TEST(a_rule_that_requires_tasks_announces_them)
{
    const struct config_rule rule = {.requires_tasks = true}, other = {.requires_tasks = false};
    struct policy_decision decision = {.action = ACTION_FORWARD, .rule = &rule};
    ck_assert(policy_requires_tasks(&decision));
    ck_assert_int_eq(policy_annotate(&decision, false, ABSENT), ANNOTATION_REQUIRED);
    decision.rule = &other;
    ck_assert(!policy_requires_tasks(&decision));
    ck_assert_int_eq(policy_annotate(&decision, false, ABSENT), ANNOTATION_FORBIDDEN);
    decision.rule = NULL;
    ck_assert(!policy_requires_tasks(&decision));
}
END_TEST

static const struct {
    const char *row;
    enum config_action action;
    enum policy_annotation announced;
    bool has_task, has_own;
    enum policy_annotation own;
    enum policy_route expected;
} calls[] = {
    /* against the announcement */
    {"Validation: required + no task", ACTION_APPROVE, ANNOTATION_REQUIRED, false, ABSENT,
     ROUTE_TASK_REQUIRED},
    {"required, task", ACTION_APPROVE, ANNOTATION_REQUIRED, true, ABSENT, ROUTE_APPROVAL},
    {"optional, no task", ACTION_FORWARD, ANNOTATION_OPTIONAL, false, OPTIONAL, ROUTE_FORWARD},
    {"optional, task", ACTION_FORWARD, ANNOTATION_OPTIONAL, true, OPTIONAL, ROUTE_FORWARD},
    {"forbidden, no task", ACTION_FORWARD, ANNOTATION_FORBIDDEN, false, ABSENT, ROUTE_FORWARD},
    {"Validation: forbidden + task present", ACTION_FORWARD, ANNOTATION_FORBIDDEN, true, ABSENT,
     ROUTE_TASK_FORBIDDEN},
    /* against upstream's own value for the tool */
    {"forward, task, own optional", ACTION_FORWARD, ANNOTATION_OPTIONAL, true, OPTIONAL,
     ROUTE_FORWARD},
    {"forward, task, own required", ACTION_FORWARD, ANNOTATION_REQUIRED, true, REQUIRED,
     ROUTE_FORWARD},
    {"Forward + task + forbidden", ACTION_FORWARD, ANNOTATION_OPTIONAL, true, FORBIDDEN,
     ROUTE_ACCELERATED},
    {"forward, task, own absent", ACTION_FORWARD, ANNOTATION_OPTIONAL, true, ABSENT,
     ROUTE_ACCELERATED},
    {"forward, no task, own forbidden", ACTION_FORWARD, ANNOTATION_OPTIONAL, false, FORBIDDEN,
     ROUTE_FORWARD},
    {"forward, no task, own required", ACTION_FORWARD, ANNOTATION_REQUIRED, false, REQUIRED,
     ROUTE_TASK_REQUIRED},
    {"force_required forward, task", ACTION_FORWARD, ANNOTATION_REQUIRED, true, ABSENT,
     ROUTE_ACCELERATED},
    {"force_required forward, no task", ACTION_FORWARD, ANNOTATION_REQUIRED, false, ABSENT,
     ROUTE_TASK_REQUIRED},
    {"approve, task, own forbidden", ACTION_APPROVE, ANNOTATION_REQUIRED, true, FORBIDDEN,
     ROUTE_APPROVAL},
    {"approve, task, own required", ACTION_APPROVE, ANNOTATION_REQUIRED, true, REQUIRED,
     ROUTE_APPROVAL},
    {"approve, no task", ACTION_APPROVE, ANNOTATION_REQUIRED, false, REQUIRED, ROUTE_TASK_REQUIRED},
    /* announced before a reload made the rule stricter: still never without a human */
    {"approve, no task, stale optional", ACTION_APPROVE, ANNOTATION_OPTIONAL, false, OPTIONAL,
     ROUTE_TASK_REQUIRED},
    {"policy, task", ACTION_POLICY, ANNOTATION_REQUIRED, true, ABSENT, ROUTE_APPROVAL},
    {"policy, no task", ACTION_POLICY, ANNOTATION_REQUIRED, false, ABSENT, ROUTE_TASK_REQUIRED},
    /* denied before anything is said of the task */
    {"deny, task", ACTION_DENY, ANNOTATION_FORBIDDEN, true, ABSENT, ROUTE_DENIED},
    {"deny, no task", ACTION_DENY, ANNOTATION_FORBIDDEN, false, REQUIRED, ROUTE_DENIED},
    {"force_required deny, no task", ACTION_DENY, ANNOTATION_REQUIRED, false, ABSENT, ROUTE_DENIED},
    {"force_required deny, task", ACTION_DENY, ANNOTATION_REQUIRED, true, ABSENT, ROUTE_DENIED},
};

START_TEST(calls_follow_the_ownership_table)
{
    struct policy_decision decision = {.action = calls[_i].action};
    enum policy_route route = policy_route(&decision, calls[_i].announced, calls[_i].has_task,
                                           calls[_i].has_own, calls[_i].own);
    ck_assert_msg(route == calls[_i].expected, "%s: %d", calls[_i].row, (int)route);
}
END_TEST

static const struct {
    const char *row;
    struct policy_caller caller;
    enum config_action action;
    bool requires_tasks, is_forced, is_asked;
    enum policy_route expected;
} outcomes[] = {
    {"with task",
     {.has_task = true, .knows_tasks = true},
     ACTION_APPROVE,
     false,
     false,
     true,
     ROUTE_APPROVAL},
    {"task to a tool that takes none",
     {.has_task = true, .knows_tasks = true},
     ACTION_FORWARD,
     false,
     false,
     true,
     ROUTE_TASK_FORBIDDEN},
    {"the same, unannounced",
     {.has_task = true},
     ACTION_FORWARD,
     false,
     false,
     true,
     ROUTE_ACCELERATED},
    {"plain, knows tasks",
     {.knows_tasks = true},
     ACTION_APPROVE,
     false,
     false,
     false,
     ROUTE_TASK_REQUIRED},
    {"plain, knows tasks, executed",
     {.knows_tasks = true, .is_executed = true},
     ACTION_APPROVE,
     true,
     false,
     true,
     ROUTE_HELD},
    {"plain, knows none", {.is_modern = false}, ACTION_APPROVE, false, false, true, ROUTE_HELD},
    {"plain, knows none, required",
     {.is_modern = false},
     ACTION_APPROVE,
     true,
     false,
     true,
     ROUTE_TASK_REQUIRED},
    {"plain, knows none, forced",
     {.is_modern = false},
     ACTION_FORWARD,
     false,
     true,
     true,
     ROUTE_HELD_ACCELERATED},
    {"plain, knows tasks, forced",
     {.knows_tasks = true},
     ACTION_FORWARD,
     false,
     true,
     false,
     ROUTE_TASK_REQUIRED},
    {"plain, denied", {.knows_tasks = true}, ACTION_DENY, true, true, false, ROUTE_DENIED},
    {"modern, declares",
     {.is_modern = true, .knows_tasks = true},
     ACTION_APPROVE,
     true,
     false,
     true,
     ROUTE_APPROVAL},
    {"modern, declares none", {.is_modern = true}, ACTION_APPROVE, false, false, true, ROUTE_HELD},
    {"modern, declares none, required",
     {.is_modern = true},
     ACTION_POLICY,
     true,
     false,
     false,
     ROUTE_LACKS_EXTENSION},
    {"modern, forced", {.is_modern = true}, ACTION_FORWARD, false, true, true, ROUTE_FORWARD},
    {"modern, denied before the extension",
     {.is_modern = true},
     ACTION_DENY,
     true,
     false,
     false,
     ROUTE_DENIED},
};

START_TEST(each_caller_has_its_outcome)
{
    const struct config_rule rule = {.requires_tasks = outcomes[_i].requires_tasks};
    struct policy_decision decision = {
        .action = outcomes[_i].action, .rule = &rule, .force_required = outcomes[_i].is_forced};
    enum policy_route route = policy_outcome(&outcomes[_i].caller, &decision,
                                             policy_annotate(&decision, false, ABSENT), ABSENT);
    ck_assert_msg(route == outcomes[_i].expected, "%s: %d", outcomes[_i].row, (int)route);
    ck_assert_msg(policy_asks_policies(&outcomes[_i].caller, &decision) == outcomes[_i].is_asked,
                  "%s: asked", outcomes[_i].row);
}
END_TEST

START_TEST(annotations_have_names)
{
    static const char *const names[] = {"forbidden", "optional", "required"};
    for (int i = 0; i < 3; i++) {
        enum policy_annotation annotation = ANNOTATION_FORBIDDEN;
        ck_assert_str_eq(policy_annotation_name((enum policy_annotation)i), names[i]);
        ck_assert(policy_annotation_parse(str_from(names[i]), &annotation));
        ck_assert_int_eq((int)annotation, i);
    }
    enum policy_annotation annotation;
    ck_assert(!policy_annotation_parse(STR("always"), &annotation));
}
END_TEST

TCase *matrices_case(void)
{
    TCase *tests = tcase_create("matrices");
    tcase_add_loop_test(tests, annotations_follow_the_decision_matrix, 0,
                        sizeof announcements / sizeof *announcements);
    tcase_add_loop_test(tests, each_caller_has_its_outcome, 0,
                        (int)(sizeof outcomes / sizeof *outcomes));
    tcase_add_loop_test(tests, calls_follow_the_ownership_table, 0, sizeof calls / sizeof *calls);
    tcase_add_test(tests, a_rule_that_requires_tasks_announces_them);
    tcase_add_test(tests, annotations_have_names);
    return tests;
}
