/* Decisions: the first rule of the source wins, then the default; visibility; methods. */
#include <check.h>

#include "suites.h"
#include "support.h"

static const char rules[] =
    "schema: 1\n"
    "sources:\n"
    "  - {id: a, kind: mcp, url: 'http://a/'}\n"
    "  - {id: b, kind: mcp, url: 'http://b/'}\n"
    "governance:\n"
    "  defaults: {action: forward}\n"
    "  rules:\n"
    "    - {match: delete_backup, action: forward}\n"                                     /* 0 */
    "    - {match: delete_*, action: deny, source: b}\n"                                  /* 1 */
    "    - {match: delete_*, action: approve, approval: ops}\n"                           /* 2 */
    "    - {match: '*_unsafe', action: deny}\n"                                           /* 3 */
    "    - {match: '[xy]?', action: approve, approval: security, execution: on_result}\n" /* 4 */
    "    - {match: 'file:///**/*.key', action: deny, source: [a, b]}\n"                   /* 5 */
    "    - {match: 'delete_user', action: forward}\n" /* 6: never reached */
    "approval: {ops: {}, security: {}}\n"
    "task_annotation_overrides: {force_required: [export_all, run_unsafe]}\n";

static const struct {
    const char *source, *name;
    enum config_action action;
    int rule; /* -1: the default */
    const char *workflow;
    bool force_required;
    enum config_execution execution;
} rows[] = {
    {"a", "read_file", ACTION_FORWARD, -1, NULL, false, EXECUTION_ON_APPROVAL},
    {"a", "delete_backup", ACTION_FORWARD, 0, NULL, false, EXECUTION_ON_APPROVAL},
    {"b", "delete_backup", ACTION_FORWARD, 0, NULL, false, EXECUTION_ON_APPROVAL},
    {"a", "delete_user", ACTION_APPROVE, 2, "ops", false, EXECUTION_ON_APPROVAL},
    {"b", "delete_user", ACTION_DENY, 1, NULL, false, EXECUTION_ON_APPROVAL},
    {"a", "Delete_user", ACTION_FORWARD, -1, NULL, false, EXECUTION_ON_APPROVAL},
    {"a", "run_unsafe", ACTION_DENY, 3, NULL, true, EXECUTION_ON_APPROVAL},
    {"a", "delete_unsafe", ACTION_APPROVE, 2, "ops", false, EXECUTION_ON_APPROVAL},
    {"a", "x1", ACTION_APPROVE, 4, "security", false, EXECUTION_ON_RESULT},
    {"a", "z1", ACTION_FORWARD, -1, NULL, false, EXECUTION_ON_APPROVAL},
    {"b", "file:///etc/tls/server.key", ACTION_DENY, 5, NULL, false, EXECUTION_ON_APPROVAL},
    {"a", "export_all", ACTION_FORWARD, -1, NULL, true, EXECUTION_ON_APPROVAL},
    {"a", "", ACTION_FORWARD, -1, NULL, false, EXECUTION_ON_APPROVAL},
};

START_TEST(the_first_rule_of_the_source_wins)
{
    const struct config *config;
    struct policy *policy = policy_of(rules, &config);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct policy_decision decision = decide(policy, config, rows[i].source, rows[i].name);
        const char *name = rows[i].name;
        ck_assert_msg(decision.action == rows[i].action, "%s", name);
        ck_assert_msg(decision.force_required == rows[i].force_required, "%s", name);
        ck_assert_msg(decision.execution == rows[i].execution, "%s", name);
        if (rows[i].rule < 0) {
            ck_assert_msg(decision.rule == NULL, "%s", name);
        } else {
            ck_assert_msg(decision.rule_index == (size_t)rows[i].rule, "%s", name);
            ck_assert_ptr_eq(decision.rule, &config->rules[rows[i].rule]);
        }
        if (rows[i].workflow)
            ck_assert_str_eq(decision.workflow->name, rows[i].workflow);
        else
            ck_assert_ptr_null(decision.workflow);
    }
    policy_destroy(policy);
}
END_TEST

START_TEST(the_default_action_has_its_workflow)
{
    const struct config *config;
    struct policy *policy = policy_of("schema: 1\n"
                                      "sources: [{id: a, kind: mcp, url: 'http://a/'}]\n"
                                      "governance: {defaults: {action: approve}}\n"
                                      "execution: on_result\n",
                                      &config);
    struct policy_decision decision = decide(policy, config, "a", "anything");
    ck_assert_int_eq(decision.action, ACTION_APPROVE);
    ck_assert_ptr_null(decision.rule);
    ck_assert_str_eq(decision.workflow->name, "default");
    ck_assert_int_eq(decision.execution, EXECUTION_ON_RESULT);
    policy_destroy(policy);
    policy_destroy(NULL);
}
END_TEST

START_TEST(a_source_of_another_load_is_known_by_its_id)
{
    const struct config *config, *other;
    struct policy *policy = policy_of(rules, &config);
    struct policy *reloaded = policy_of("schema: 1\n"
                                        "sources:\n"
                                        "  - {id: new, kind: mcp, url: 'http://n/'}\n"
                                        "  - {id: b, kind: mcp, url: 'http://b/'}\n"
                                        "governance: {defaults: {action: forward}}\n",
                                        &other);
    ck_assert_int_eq(decide(policy, other, "b", "delete_user").action, ACTION_DENY);
    ck_assert_uint_eq(decide(policy, other, "b", "delete_user").rule_index, 1);
    /* a source that this policy knows nothing of gets nothing through */
    ck_assert_int_eq(decide(policy, other, "new", "read_file").action, ACTION_DENY);
    ck_assert(!policy_is_visible(policy, &other->sources[0], STR("read_file")));
    policy_destroy(policy);
    policy_destroy(reloaded);
}
END_TEST

START_TEST(expose_and_enabled_decide_what_is_seen)
{
    const struct config *config;
    struct policy *policy = policy_of(
        "schema: 1\n"
        "sources:\n"
        "  - {id: all, kind: mcp, url: 'http://a/'}\n"
        "  - {id: off, kind: mcp, url: 'http://a/', enabled: false}\n"
        "  - {id: allow, kind: mcp, url: 'http://a/',\n"
        "     expose: {mode: allowlist, tools: ['read_*', 'list_*']}}\n"
        "  - {id: block, kind: mcp, url: 'http://a/',\n"
        "     expose: {mode: blocklist, tools: ['delete_*', '*_unsafe']}}\n"
        "  - {id: none, kind: mcp, url: 'http://a/', expose: {mode: allowlist, tools: []}}\n"
        "governance: {defaults: {action: forward}}\n",
        &config);
    static const struct {
        size_t source;
        const char *name;
        bool is_visible;
    } seen[] = {
        {0, "anything", true},     {1, "anything", false},    {2, "read_file", true},
        {2, "list_users", true},   {2, "delete_user", false}, {3, "read_file", true},
        {3, "delete_user", false}, {3, "x_unsafe", false},    {4, "read_file", false},
    };
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        ck_assert_msg(policy_is_visible(policy, &config->sources[seen[i].source],
                                        str_from(seen[i].name)) == seen[i].is_visible,
                      "%s of source %zu", seen[i].name, seen[i].source);
    policy_destroy(policy);
}
END_TEST

START_TEST(methods_beyond_the_protocol_are_allowed_by_name)
{
    const struct config *config;
    struct policy *policy = policy_of("schema: 1\n"
                                      "sources: [{id: a, kind: mcp, url: 'http://a/'}]\n"
                                      "governance: {defaults: {action: forward}}\n"
                                      "methods: {allow: ['vendor/*', extra]}\n",
                                      &config);
    ck_assert(policy_allows_method(policy, STR("vendor/x")));
    ck_assert(policy_allows_method(policy, STR("extra")));
    ck_assert(!policy_allows_method(policy, STR("extras")));
    ck_assert(!policy_allows_method(policy, STR("tools/call")));
    policy_destroy(policy);
}
END_TEST

START_TEST(extensions_are_said_of_by_name_and_deny_wins)
{
    const struct config *config;
    struct policy *policy = policy_of("schema: 1\n"
                                      "sources:\n"
                                      "  - {id: a, kind: mcp, url: 'http://a/',\n"
                                      "     extensions: {allow: ['x/*'], deny: ['*/bad']}}\n"
                                      "  - {id: b, kind: mcp, url: 'http://b/'}\n"
                                      "governance: {defaults: {action: forward}}\n",
                                      &config);
    const struct config_source *a = &config->sources[0], *b = &config->sources[1];
    ck_assert_int_eq(policy_extension(policy, a, STR("x/good")), POLICY_EXTENSION_ALLOWED);
    ck_assert_int_eq(policy_extension(policy, a, STR("x/bad")), POLICY_EXTENSION_DENIED);
    ck_assert_int_eq(policy_extension(policy, a, STR("y/bad")), POLICY_EXTENSION_DENIED);
    ck_assert_int_eq(policy_extension(policy, a, STR("y")), POLICY_EXTENSION_UNNAMED);
    ck_assert_int_eq(policy_extension(policy, b, STR("x/bad")), POLICY_EXTENSION_UNNAMED);
    policy_destroy(policy);
}
END_TEST

TCase *decide_case(void)
{
    TCase *tests = tcase_create("decide");
    tcase_add_test(tests, the_first_rule_of_the_source_wins);
    tcase_add_test(tests, the_default_action_has_its_workflow);
    tcase_add_test(tests, a_source_of_another_load_is_known_by_its_id);
    tcase_add_test(tests, expose_and_enabled_decide_what_is_seen);
    tcase_add_test(tests, methods_beyond_the_protocol_are_allowed_by_name);
    tcase_add_test(tests, extensions_are_said_of_by_name_and_deny_wins);
    return tests;
}
