/* taskgate policy test: cases that pass, fail and cannot be read, and the rules that they reach. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "taskgate/cli/cli.h"

static void start(void)
{
    enter_folder();
    ck_assert_int_eq(mkdir("d", 0700), 0);
    setenv("THOUGHTGATE_POLICIES", "forbid(principal, action, resource);", 1);
    write_file("d/bank.yaml", "schema: 1\n"
                              "sources:\n"
                              "  - {id: a, kind: mcp, url: 'http://a/'}\n"
                              "  - {id: b, kind: mcp, url: 'http://b/', expose: {mode: blocklist, "
                              "tools: [secret]}}\n"
                              "governance:\n"
                              "  defaults: {action: ${DEFAULT}}\n"
                              "  rules:\n"
                              "    - {match: get, action: forward, source: a}\n"
                              "    - {match: get, action: deny}\n"
                              "    - {match: 'pay_*', action: policy, policy_id: p}\n"
                              "cedar: {policies: [./bank.cedar]}\n"
                              "approval: {default: {}, finance: {}}\n");
    write_file("d/bank.cedar",
               "@id(\"p\") @name(\"low\")\n"
               "permit(principal, action == ThoughtGate::Action::\"Forward\", resource)\n"
               "when { resource.arguments.n < 10 };\n"
               "@id(\"p\") @name(\"high\") @thoughtgate_approval(\"finance\")\n"
               "permit(principal, action == ThoughtGate::Action::\"Approve\", resource)\n"
               "when { context.time.hour == 12 && principal.client_name == \"cli\" };\n"
               "forbid(principal, action, resource)\n"
               "when { context.annotations has destructiveHint };\n");
}

static void finish(void)
{
    leave_folder();
}

/* The file of cases, of which only the cases differ. */
static void write_cases(const char *cases)
{
    char text[4096];
    snprintf(text, sizeof text, "environment: {DEFAULT: approve}\ncases:\n%s", cases);
    write_file("d/bank.test.yaml", text);
}

#define HIGH                                                                                       \
    "request: {tool: pay_x, source: a, arguments: {n: 10}, principal: {name: 'auth:1', "           \
    "client_name: cli}}"

static const char passing[] =
    "  - {name: one, request: {tool: get, source: a}, expect: {decision: forward, rule: 0}}\n"
    "  - {name: two, request: {tool: get, source: b}, expect: {decision: deny, rule: 1}}\n"
    "  - {name: three, request: {tool: pay_x, source: a, arguments: {n: -1}}, expect: {decision: "
    "forward, rule: 'pay_*', policies: [low], errors: []}}\n"
    "  - {name: four, " HIGH ", expect: {decision: approve, workflow: finance, policies: [high]}}\n"
    "  - {name: five, request: {tool: pay_x, source: a, arguments: '{\"n\": 1}', annotations: "
    "{destructiveHint: false}}, expect: {decision: reject, policies: [policy2]}}\n"
    "  - {name: six, request: {tool: pay_x, source: a, at: 2026-01-31, arguments: {n: ten}}, "
    "expect: {decision: reject, policies: [], errors: [p]}}\n"
    "  - {name: seven, request: {tool: secret, source: b}, expect: {decision: hidden}}\n"
    "  - {name: eight, request: {tool: other, source: a, at: '1969-12-31T23:59:59.999Z'}, expect: "
    "{decision: approve, rule: default, workflow: default}}\n";

START_TEST(cases_pass_and_reach_everything)
{
    write_cases(passing);
    ck_assert_int_eq(run("policy test --strict d"), CLI_DONE);
    ck_assert_str_eq(captured[0], "passed d/bank.test.yaml: 8 cases of d/bank.yaml\n"
                                  "\n8 cases: 8 passed, 0 failed. Every rule and policy was "
                                  "reached.\n");
    ck_assert_str_eq(captured[1], "");
    ck_assert_int_eq(run("policy test d/bank.test.yaml"), CLI_DONE);
    ck_assert_int_eq(run("policy test d/"), CLI_DONE);
}
END_TEST

START_TEST(a_failure_shows_both_sides_and_why)
{
    write_cases("  - {name: \"wrong\\e\", " HIGH ", expect: {decision: forward, rule: 1, workflow: "
                "default, policies: [low, policy2], errors: [low]}}\n");
    ck_assert_int_eq(run("policy test d"), CLI_FAILURE);
    ck_assert_str_eq(captured[0],
                     "FAILED d/bank.test.yaml:3:5: wrong\\u001b\n"
                     "    call        pay_x {\"n\":10} of a\n"
                     "    decision  - forward\n"
                     "              + approve\n"
                     "    rule      - get (d/bank.yaml:9)\n"
                     "              + pay_* (d/bank.yaml:10)\n"
                     "    workflow  - default\n"
                     "              + finance\n"
                     "    policies  - low, policy2\n"
                     "              + high (d/bank.cedar:4:1)\n"
                     "    errors    - low\n"
                     "              + none\n"
                     "      Decision   approve through the workflow finance, by the gate approval\n"
                     "      Policies   p permits Approve (d/bank.cedar:4:1)\n"
                     "\nNo case has reached:\n"
                     "  d/bank.yaml:8:7: rule get\n"
                     "  d/bank.yaml:9:7: rule get\n"
                     "  d/bank.yaml: the default action\n"
                     "  d/bank.cedar:1:1: policy low\n"
                     "  d/bank.cedar:7:1: policy policy2\n"
                     "\n1 case: 0 passed, 1 failed. Not every rule and policy was reached.\n");
}
END_TEST

START_TEST(an_unreached_rule_fails_only_when_asked)
{
    write_cases("  - {name: one, request: {tool: get, source: a}, expect: {decision: forward}}\n");
    ck_assert_int_eq(run("policy test d"), CLI_DONE);
    expect(0, "passed d/bank.test.yaml: 1 case of d/bank.yaml\n\nNo case has reached:\n");
    ck_assert_int_eq(run("policy test --strict d"), CLI_FAILURE);
    /* A default that denies need not be reached. */
    write_file("d/bank.test.yaml",
               "environment: {DEFAULT: deny}\n"
               "cases: [{name: one, request: {tool: x, source: a}, expect: {decision: deny}}]\n");
    ck_assert_int_eq(run("policy test d"), CLI_DONE);
    ck_assert_ptr_null(strstr(captured[0], "the default action"));
}
END_TEST

START_TEST(json_holds_every_case)
{
    write_cases("  - {name: one, request: {tool: get, source: a}, expect: {decision: deny}}\n"
                "  - {name: two, " HIGH ", expect: {decision: approve}}\n");
    ck_assert_int_eq(run("policy test --json d"), CLI_FAILURE);
    expect(0,
           "{\"files\":[{\"file\":\"d/bank.test.yaml\",\"tests\":\"d/bank.yaml\",\"cases\":[{"
           "\"name\":\"one\",\"line\":3,\"column\":5,\"passed\":false,\"outcome\":\"forward\","
           "\"rule\":\"get\",\"workflow\":null,\"decision\":\"forward\",\"gate\":null,\"policies\":"
           "[],\"failure\":null,\"differences\":[{\"what\":\"decision\",\"expected\":\"deny\","
           "\"actual\":\"forward\"}]},{\"name\":\"two\",\"line\":4,\"column\":5,\"passed\":true,"
           "\"outcome\":\"approve\",\"rule\":\"pay_*\",\"workflow\":\"finance\",");
    expect(0, "\"unreached\":[{\"kind\":\"rule\",\"name\":\"get\",\"file\":\"d/bank.yaml\",\"line\""
              ":9,\"column\":7},{\"kind\":\"default\",\"name\":\"the default action\",\"file\":"
              "\"d/bank.yaml\",\"line\":0,\"column\":0},{\"kind\":\"policy\",\"name\":\"low\",");
    expect(0, "}]}],\"cases\":2,\"failed\":1,\"unreached\":4}\n");
}
END_TEST

/* Without a configuration every call is put to the policies. */
START_TEST(policies_are_tested_alone)
{
    ck_assert_int_eq(remove("d/bank.yaml"), 0);
    write_file("d/bank.test.yaml",
               "cases:\n"
               "  - {name: a, request: {tool: t, arguments: {n: 9}}, expect: {decision: forward, "
               "policies: [low]}}\n"
               "  - {name: b, request: {tool: t, source: other, arguments: {n: 10}, principal: "
               "{client_name: cli}}, expect: {decision: approve, workflow: finance}}\n");
    ck_assert_int_eq(run("policy test d"), CLI_DONE);
    ck_assert_str_eq(captured[0], "passed d/bank.test.yaml: 2 cases of d/bank.cedar\n"
                                  "\nNo case has reached:\n  d/bank.cedar:7:1: policy policy2\n"
                                  "\n2 cases: 2 passed, 0 failed. Not every rule and policy was "
                                  "reached.\n");
    ck_assert_str_eq(captured[1], "");
}
END_TEST

START_TEST(wrong_files_are_exit_2_with_place_and_key)
{
    static const struct {
        const char *cases, *says;
    } rows[] = {
        {"  - {nam: a}\n",
         "d/bank.test.yaml:3:6: cases[0].nam: unknown key; did you mean \"name\"?\n"},
        {"  - {nam: a}\n", "d/bank.test.yaml:3:5: cases[0].request: the key is missing\n"},
        {"  - 7\n", "d/bank.test.yaml:3:5: cases[0]: must be a mapping\n"},
        {"  - {name: a, request: {tool: t}}\n",
         "d/bank.test.yaml:3:24: cases[0].request: there are several sources; say which by the key "
         "source\n"},
        {"  - {name: a, request: {tool: t, source: c}}\n",
         ":3:42: cases[0].request.source: \"c\" is not a source; did you mean \"a\"?\n"},
        {"  - {request: {arguments: [1]}}\n", "must be a mapping, or a JSON object\n"},
        {"  - {request: {arguments: '{'}}\n", "must be a mapping or JSON: not readable as JSON"},
        {"  - {request: {at: today}}\n",
         "cases[0].request.at: \"today\" is not a time such as 2026-01-31 or "},
        {"  - {request: {principal: [a]}}\n", "principal: must be text or a mapping\n"},
        {"  - {request: {principal: {nme: a}}}\n",
         "principal: \"nme\" is not a key; did you mean \"name\"?\n"},
        {"  - {request: {annotations: {readonlyHint: true}}}\n",
         "\"readonlyHint\" is not an annotation; did you mean \"readOnlyHint\"?\n"},
        {"  - {request: {annotations: {readOnlyHint: yes}}}\n", "must be true or false\n"},
        {"  - {expect: {decision: approved}}\n",
         "cases[0].expect.decision: \"approved\" is not a decision; did you mean \"approve\"?\n"},
        {"  - {expect: {rule: get}}\n", "cases[0].expect.rule: several rules have this pattern; "
                                        "give its number instead, from 0\n"},
        {"  - {expect: {rule: 3}}\n",
         "\"3\" is not the pattern or number of a rule; known are: get, get, pay_*, default\n"},
        {"  - {expect: {workflow: fiance}}\n",
         "\"fiance\" is not a workflow; did you mean \"finance\"?\n"},
        {"  - {expect: {policies: [lo]}}\n",
         "cases[0].expect.policies[0]: \"lo\" is not the @name or @id of a policy\n"},
        {"  - {expect: {errors: low}}\n", "cases[0].expect.errors: must be a list of names\n"},
        {" []\n", "d/bank.test.yaml:3:2: cases: must be a list of cases\n"},
        {"  [\n", "d/bank.test.yaml:4:1: this is not YAML"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_cases(rows[i].cases);
        ck_assert_msg(run("policy test d") == CLI_USAGE, "%s", rows[i].cases);
        ck_assert_str_eq(captured[0], "");
        expect(1, rows[i].says);
    }
}
END_TEST

START_TEST(wrong_targets_are_exit_2)
{
    static const char one[] =
        "cases: [{name: a, request: {tool: t, source: a}, expect: {decision: deny}}]\n";
    ck_assert_int_eq(run("policy test nowhere"), CLI_USAGE);
    expect(1, "nowhere cannot be read: No such file or directory");
    ck_assert_int_eq(run("policy test d"), CLI_USAGE);
    expect(1, "there is no file *.test.yaml in d");
    write_file("d/other.test.yaml", one);
    ck_assert_int_eq(run("policy test d"), CLI_USAGE);
    expect(1, "d/other.test.yaml:1:1: there is no configuration or policy of this name beside it; "
              "name the file by the key tests\n");
    write_file("d/other.test.yaml", "tests: gone.yaml\ncases: []\n");
    ck_assert_int_eq(run("policy test d"), CLI_USAGE);
    expect(1, "d/other.test.yaml:1:8: tests: d/gone.yaml cannot be read\n");
    write_file("d/other.test.yaml", "# nothing\n");
    ck_assert_int_eq(run("policy test d"), CLI_USAGE);
    expect(1, "the file is empty; a file of cases holds the key \"cases\"\n");
    /* The tested file may have a mistake itself. */
    write_file("d/other.test.yaml", "tests: bank.yaml\n");
    write_file("d/bank.test.yaml", one);
    ck_assert_int_eq(run("policy test d"), CLI_USAGE);
    expect(1, "d/other.test.yaml:1:1: cases: the key is missing\n");
    expect(1, "d/bank.yaml:6:22: governance.defaults.action: V-014 the environment variable "
              "DEFAULT is not set");
    write_file("d/other.test.yaml",
               "environment: {DEFAULT: deny}\ntests: bank.yaml\ncases: [{name: "
               "a, request: {tool: t, source: a}, expect: {decision: deny}}]");
    ck_assert_int_eq(remove("d/bank.test.yaml"), 0);
    ck_assert_int_eq(run("policy test d"), CLI_DONE);
    write_file("d/bank.cedar", "permit(principal, action, resource)\n");
    ck_assert_int_eq(run("policy test d"), CLI_USAGE);
    expect(1, "d/bank.cedar:2:1: unexpected the end of the text");
}
END_TEST

START_TEST(a_configurations_files_are_found_beside_it)
{
    static const char rules[] = "sources: [{id: a, kind: mcp, url: 'http://a/'}]\n"
                                "cedar: {policies: [bank.cedar]}\n";
    char text[512];
    snprintf(text, sizeof text,
             "schema: 1\n%sgovernance: {defaults: {action: deny}, shadow: next.yaml}\n", rules);
    write_file("d/bank.yaml", text);
    write_file("d/bank.cedar", "permit(principal, action, resource);");
    write_cases("  - {name: one, request: {tool: get}, expect: {decision: deny}}\n");
    snprintf(text, sizeof text, "schema: 1\n%sgovernance: {defaults: {action: deny}}\n", rules);
    write_file("d/next.yaml", text);
    ck_assert_int_eq(run("policy test d"), CLI_DONE);
    ck_assert_str_eq(captured[1], "");
    write_file("d/next.yaml", "schema: 2\n");
    ck_assert_int_eq(run("policy test d"), CLI_USAGE);
    expect(1, "d/next.yaml:1:9: schema: ");
    ck_assert_int_eq(remove("d/bank.cedar"), 0);
    ck_assert_int_eq(run("policy test d"), CLI_USAGE);
    expect(1, "d/bank.yaml:3:20: cedar.policies[0]: V-013 ");
}
END_TEST

START_TEST(values_are_what_json_reads_them_as)
{
    write_cases(
        "  - {name: a, request: {tool: get, source: a, arguments: {a: 1, b: 1.50, c: -0, d: "
        "01, e: 1e400, f: true, g: True, h: ~, i: null, j: '1', k: \"\", l: 2026-01-31, m: "
        "[1, {n: []}], o: {}, p: 9007199254740993, q: yes}}, expect: {decision: deny}}\n");
    ck_assert_int_eq(run("policy test d"), CLI_FAILURE);
    expect(0,
           "    call        get {\"a\":1,\"b\":1.50,\"c\":-0,\"d\":\"01\",\"e\":1e400,\"f\":true,"
           "\"g\":\"True\",\"h\":null,\"i\":null,\"j\":\"1\",\"k\":\"\",\"l\":\"2026-01-31\","
           "\"m\":[1,{\"n\":[]}],\"o\":{},\"p\":9007199254740993,\"q\":\"yes\"} of a\n");
}
END_TEST

TCase *policy_test_cases(void)
{
    TCase *cases = tcase_create("policy test");
    tcase_add_checked_fixture(cases, start, finish);
    tcase_add_test(cases, cases_pass_and_reach_everything);
    tcase_add_test(cases, a_failure_shows_both_sides_and_why);
    tcase_add_test(cases, an_unreached_rule_fails_only_when_asked);
    tcase_add_test(cases, json_holds_every_case);
    tcase_add_test(cases, policies_are_tested_alone);
    tcase_add_test(cases, wrong_files_are_exit_2_with_place_and_key);
    tcase_add_test(cases, wrong_targets_are_exit_2);
    tcase_add_test(cases, a_configurations_files_are_found_beside_it);
    tcase_add_test(cases, values_are_what_json_reads_them_as);
    return cases;
}
