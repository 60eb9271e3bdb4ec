/* URIs in their one spelling, and the stricter of two outcomes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "support.h"
#include "taskgate/core/memory.h"
#include "taskgate/policy/uri.h"

static const struct {
    const char *uri, *normal;
} rows[] = {
    {"file:///etc/passwd", "file:///etc/passwd"},
    {"FILE:///etc/passwd", "file:///etc/passwd"},
    {"file:///%65tc/p%61sswd", "file:///etc/passwd"},
    {"file:///tmp/../etc/./passwd", "file:///etc/passwd"},
    {"file:///tmp/%2e%2E/etc/passwd", "file:///etc/passwd"},
    {"file:///../../etc/passwd", "file:///etc/passwd"},
    {"file:///etc/passwd/.", "file:///etc/passwd/"},
    {"file:///etc/x/..", "file:///etc/"},
    {"file:///a/%2f%2F%c3%A9", "file:///a/%2F%2F%C3%A9"},
    {"HTTPS://User%41@Example.COM%2d:8443/A/..?Q=/../%7e#/../F", /* */
     "https://UserA@example.com-:8443/?Q=/../~#/../F"},
    {"http://[2001:DB8::1]/a", "http://[2001:db8::1]/a"},
    {"http://EXAMPLE%C3%89/", "http://example%C3%89/"},
    {"mem:x/../y", "mem:y"},
    {"mem:../y", "mem:y"},
    {"notes/./a/../b", "notes/b"},
    {"/a/b/../../../c", "/c"},
    {"a//../b", "a/b"},
    {"..", ""},
    {"%", "%25"},
    {"%4", "%254"},
    {"%zz%4", "%25zz%254"},
    {"%%34%31", "%2541"},
    {"a/../B:c", "b:c"},
    {"%41:b", "a:b"},
    {"mem:/x/..//A", "mem:/A"},
    {"%2541", "%2541"}, /* decoded once */
    {"1x:/..", ""},     /* no scheme */
    {":", ":"},
    {"", ""},
};

START_TEST(equivalent_uris_have_one_spelling)
{
    size_t length = strlen(rows[_i].uri);
    char *exact = memory_alloc(length ? length : 1);
    struct buffer once = {0}, twice = {0};
    memcpy(exact, rows[_i].uri, length);
    uri_normalize(&once, str_slice(exact, length));
    ck_assert_msg(str_equal(buffer_str(&once), str_from(rows[_i].normal)), "%.*s",
                  STR_ARGS(buffer_str(&once)));
    uri_normalize(&twice, buffer_str(&once));
    ck_assert(str_equal(buffer_str(&once), buffer_str(&twice)));
    buffer_finish(&once);
    buffer_finish(&twice);
    free(exact);
}
END_TEST

static const char config_text[] =
    "schema: 1\n"
    "sources:\n"
    "  - {id: all, kind: mcp, url: 'http://a/'}\n"
    "  - {id: block, kind: mcp, url: 'http://b/', expose: {mode: blocklist, tools: "
    "['file:///etc/**']}}\n"
    "  - {id: allow, kind: mcp, url: 'http://c/', expose: {mode: allowlist, tools: "
    "['file:///pub/**']}}\n"
    "governance:\n"
    "  defaults: {action: forward}\n"
    "  rules:\n"
    "    - {match: 'file:///etc/**', action: deny}\n"
    "    - {match: 'file:///asked/**', action: approve}\n"
    "    - {match: 'file:///judged/**', action: policy, policy_id: p}\n"
    "    - {match: 'FILE:///shout/**', action: deny}\n"
    "approval: {default: {}}\n";

static const struct {
    const char *uri;
    enum config_action action;
} decisions[] = {
    {"file:///pub/x", ACTION_FORWARD},       {"file:///etc/x", ACTION_DENY},
    {"FILE:///etc/x", ACTION_DENY},          {"file:///%65tc/x", ACTION_DENY},
    {"file:///pub/../etc/x", ACTION_DENY},   {"file:///etc/../pub/x", ACTION_DENY}, /* as written */
    {"file:///asked/../etc/x", ACTION_DENY}, {"file:///etc/../asked/x", ACTION_DENY},
    {"file:///%61sked/x", ACTION_APPROVE},   {"file:///pub/../judged/x", ACTION_POLICY},
    {"FILE:///shout/x", ACTION_DENY},
};

START_TEST(the_stricter_outcome_of_both_spellings_holds)
{
    const struct config *config;
    struct policy *policy =
        policy_with(config_text, "permit(principal, action, resource);", &config);
    struct policy_request request = {config_source_find(config, STR("all")),
                                     str_from(decisions[_i].uri), STR_EMPTY};
    struct policy_decision decision;
    policy_decide_uri(policy, &request, &decision);
    ck_assert_str_eq(config_action_name(decision.action), config_action_name(decisions[_i].action));
    policy_destroy(policy);
}
END_TEST

START_TEST(a_uri_is_seen_only_when_both_spellings_are)
{
    static const struct {
        const char *source, *uri;
        bool is_visible;
    } seen[] = {
        {"block", "file:///pub/x", true},         {"block", "file:///etc/x", false},
        {"block", "FILE:///etc/x", false},        {"block", "file:///%65tc/x", false},
        {"block", "file:///pub/../etc/x", false}, {"allow", "file:///pub/x", true},
        {"allow", "file:///pub/../etc/x", false}, {"allow", "file:///etc/../pub/x", false},
    };
    const struct config *config;
    struct policy *policy =
        policy_with(config_text, "permit(principal, action, resource);", &config);
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        ck_assert_msg(policy_is_uri_visible(policy,
                                            config_source_find(config, str_from(seen[i].source)),
                                            str_from(seen[i].uri)) == seen[i].is_visible,
                      "%s %s", seen[i].source, seen[i].uri);
    policy_destroy(policy);
}
END_TEST

TCase *uri_case(void)
{
    TCase *tests = tcase_create("uri");
    tcase_add_loop_test(tests, equivalent_uris_have_one_spelling, 0, sizeof rows / sizeof *rows);
    tcase_add_loop_test(tests, the_stricter_outcome_of_both_spellings_holds, 0,
                        sizeof decisions / sizeof *decisions);
    tcase_add_test(tests, a_uri_is_seen_only_when_both_spellings_are);
    return tests;
}
