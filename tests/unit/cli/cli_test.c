/* The command line without a gateway: arguments, exit codes, safe output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"

#include "harness.h"
#include "options.h"

static void start(void)
{
    static const char text[] =
        "schema: 1\n"
        "sources:\n"
        "  - {id: one, kind: mcp, url: http://127.0.0.1:9/mcp, expose: {mode: blocklist, tools: "
        "[hidden]}}\n"
        "  - {id: two, kind: mcp, url: http://127.0.0.1:9/mcp, enabled: false}\n"
        "governance:\n"
        "  defaults: {action: forward}\n"
        "  rules:\n"
        "    - {match: \"delete_*\", action: approve, source: one}\n"
        "    - {match: \"drop_*\", action: deny, description: nobody drops}\n"
        "    - {match: \"pay_*\", action: policy, policy_id: p}\n"
        "task_annotation_overrides: {force_required: [special]}\n";
    int fd = mkstemp(config_path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, sizeof text - 1), (int)sizeof text - 1);
    close(fd);
    unsetenv("THOUGHTGATE_ADMIN_TOKEN");
    unsetenv("TASKGATE_TOKEN");
    setenv("THOUGHTGATE_POLICIES",
           "@id(\"p\")\n"
           "permit(principal, action == ThoughtGate::Action::\"Forward\", resource)\n"
           "when { resource.arguments.n < 5 && context.time.hour < 12 };\n"
           "permit(principal == ThoughtGate::App::\"auth:1\",\n"
           "       action == ThoughtGate::Action::\"Approve\", resource)\n"
           "when { principal.client_name like \"*\" };\n"
           "forbid(principal, action, resource)\n"
           "when { context.annotations has destructiveHint && context.annotations.destructiveHint "
           "};",
           1);
    /* A port where nobody listens: refused at once. */
    setenv("THOUGHTGATE_ADMIN_URL", "http://127.0.0.1:1", 1);
}

static void finish(void)
{
    unlink(config_path);
    forget_run();
}

/* ---- usage ---- */

START_TEST(usage_errors_are_exit_2_on_stderr_alone)
{
    static const struct {
        const char *arguments, *says;
    } rows[] = {
        {"", "Usage: taskgate COMMAND"},
        {"sreve", "did you mean serve?"},
        {"frobnicate", "Usage: taskgate COMMAND"},
        {"--config", "there is no command --config"},
        {"check --cnofig x", "did you mean --config?"},
        {"check --config", "--config needs a value: --config FILE"},
        {"check extra", "unexpected argument extra"},
        {"check --json=yes", "--json takes no value"},
        {"check -x", "unknown option -x"},
        {"explain", "TOOL is missing"},
        {"explain a b", "unexpected argument b"},
        {"explain a --source three --config CONFIG",
         "there is no source three; there are: one, two"},
        {"explain a --config CONFIG", "name one with --source: one, two"},
        {"check --config /no/such/file.yaml", "/no/such/file.yaml"},
        {"tasks", "Usage: taskgate tasks SUBCOMMAND"},
        {"tasks lits", "did you mean list?"},
        {"tasks approve", "ID is missing"},
        {"tasks show --reason x", "unknown option --reason"},
        {"tasks approve tg_1 --reason", "--reason needs a value"},
        {"tasks list tg_1", "unexpected argument tg_1"},
        {"policy", "Usage: taskgate policy SUBCOMMAND"},
        {"policy prase", "did you mean parse?"},
        {"policy frobnicate", "Usage: taskgate policy SUBCOMMAND"},
        {"policy authorize", "--policies is missing"},
        {"policy authorize --policies a --entities b", "--requests is missing"},
        {"policy authorize --policies a --requests b", "--entities is missing"},
        {"policy authorize --policies a --entities b --requests c d", "unexpected argument d"},
        {"policy test", "DIR is missing"},
        {"policy test a b", "unexpected argument b"},
        {"policy test --jsn a", "did you mean --json?"},
        {"policy parse", "FILE is missing"},
        {"policy parse a b", "unexpected argument b"},
        {"serve --nope", "unknown option --nope"},
        {"login x", "unexpected argument x"},
        {"logout --device", "unknown option --device"},
        {"whoami x", "unexpected argument x"},
        {"whomai", "did you mean whoami?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(run(rows[i].arguments) == CLI_USAGE, "%s", rows[i].arguments);
        ck_assert_str_eq(captured[0], "");
        expect(1, rows[i].says);
    }
}
END_TEST

static void fits_into_80_columns(const char *text)
{
    size_t column = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '\n')
            column = 0;
        else
            column += ((unsigned char)*at & 0xC0) != 0x80;
        ck_assert_msg(column <= 80, "%s", text);
    }
}

START_TEST(help_is_exit_0_on_stdout_alone)
{
    static const char *const commands[] = {
        "--help",          "-h",
        "serve --help",    "check --help",
        "explain --help",  "tasks --help",
        "explain x -h",    "tasks approve --help",
        "tasks list -h",   "tasks watch --help",
        "policy --help",   "policy test --help",
        "policy parse -h", "policy authorize -h",
        "tasks result -h", "policy simulate -h",
        "call --help",     "whoami --help",
        "login --help",    "logout --help",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        ck_assert_msg(run(commands[i]) == CLI_DONE, "%s", commands[i]);
        ck_assert_str_eq(captured[1], "");
        expect(0, "Usage: taskgate ");
        fits_into_80_columns(captured[0]);
    }
}
END_TEST

START_TEST(every_command_knows_its_version)
{
    static const char *const commands[] = {
        "--version",
        "serve --version",
        "check --version",
        "explain --version",
        "explain x --version",
        "tasks --version",
        "tasks list --version",
        "tasks approve --version",
        "tasks watch --version",
        "tasks result --version",
        "call --version",
        "whoami --version",
        "login --version",
        "logout --version",
        "policy --version",
        "policy authorize --version",
        "policy parse --version",
        "policy test --version",
        "policy simulate --version",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        ck_assert_msg(run(commands[i]) == CLI_DONE, "%s", commands[i]);
        ck_assert_str_eq(captured[0], "taskgate " TASKGATE_VERSION "\n");
        ck_assert_str_eq(captured[1], "");
    }
}
END_TEST

/* ---- check and explain ---- */

START_TEST(check_shows_the_rules_in_their_order)
{
    ck_assert_int_eq(run("check --config CONFIG"), CLI_DONE);
    expect(0, "0     delete_*       one     approve  default (10m)\n");
    expect(0, "1     drop_*         all     deny     -              nobody drops\n");
    expect(0, "-     anything else  all     forward  -\n");
    expect(0, "Always announced as required: special\n");
    ck_assert_int_eq(run("check --json --config CONFIG"), CLI_DONE);
    expect(0,
           "\"rules\":[{\"tool\":\"delete_*\",\"source\":\"one\",\"rule\":{\"index\":0,\"match\":"
           "\"delete_*\",\"line\":8},\"action\":\"approve\",\"workflow\":\"default\","
           "\"annotation\":{\"upstream_tasks\":\"required\",\"no_upstream_tasks\":\"required\","
           "\"plain\":\"optional\"},"
           "\"reason\":\"\"},");
    expect(0, "{\"tool\":\"*\",\"source\":null,\"rule\":null,\"action\":\"forward\"");
}
END_TEST

START_TEST(explain_says_which_rule_and_why)
{
    static const struct {
        const char *arguments, *says;
    } rows[] = {
        {"explain delete_x --source one --json --config CONFIG",
         "{\"tool\":\"delete_x\",\"source\":\"one\",\"rule\":{\"index\":0,"},
        {"explain delete_x --source=two --json --config CONFIG", "\"rule\":null"},
        {"explain delete_x --source two --json --config CONFIG", "the source two is disabled"},
        {"explain hidden --source one --json --config CONFIG", "hides it from clients"},
        {"explain read --source one --json --config CONFIG",
         "\"annotation\":{\"upstream_tasks\":\"optional\",\"no_upstream_tasks\":\"forbidden\","
         "\"plain\":\"forbidden\"}"},
        {"explain special --source one --json --config CONFIG", "force_required"},
        {"explain --source one --config CONFIG -- --odd", "Tool       --odd\n"},
        {"explain drop_x --source one --config CONFIG", "Action     deny\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(run(rows[i].arguments) == CLI_DONE, "%s: %s", rows[i].arguments, captured[1]);
        expect(0, rows[i].says);
    }
}
END_TEST

START_TEST(explain_puts_one_call_to_the_policies)
{
    static const struct {
        const char *arguments, *says;
    } rows[] = {
        {"explain pay_x", "Decision   depends on the call: give --args and --principal\n"},
        {"explain pay_x --args {\"n\":4} --at 2026-01-04T11:00:00Z", "Decision   forward\n"},
        {"explain pay_x --args {\"n\":4} --at 2026-01-04T11:00:00Z",
         "Policies   p permits Forward (THOUGHTGATE_POLICIES:1:1)\n"},
        {"explain pay_x --args {\"n\":4} --at 2026-01-04T12:00:00Z",
         "Decision   reject, by the gate policy\n"},
        {"explain pay_x --args {\"n\":4} --at 2026-01-04T12:59:59+01:00", "Decision   forward\n"},
        {"explain pay_x --args {\"n\":4} --at 2026-01-04T11:30:00-00:30",
         "Decision   reject, by the gate policy\n"},
        {"explain pay_x --args {\"n\":4} --at 2026-01-04T12:59:59.999+0100",
         "Decision   forward\n"},
        {"explain pay_x --args {\"n\":5} --at 2026-01-04 --principal auth:1",
         "Decision   approve through the workflow default, by the gate approval\n"},
        {"explain pay_x --args {\"n\":5} --principal {\"name\":\"auth:2\"}", "Decision   reject"},
        {"explain pay_x --args {\"n\":\"secret\"} --at 2026-01-04",
         "Policies   p fails Forward (THOUGHTGATE_POLICIES:3:29): type error: expected long, found "
         "string\n"},
        {"explain pay_x --json --principal auth:1 --annotations {\"destructiveHint\":true}",
         "\"decision\":\"reject\",\"gate\":\"policy\",\"policies\":[{\"policy\":\"p\",\"effect\":"
         "\"permit\",\"action\":\"Forward\",\"file\":\"THOUGHTGATE_POLICIES\",\"line\":3,"
         "\"column\":"
         "27,\"error\":\"there is no attribute \\\"n\\\"\"},{\"policy\":\"policy2\",\"effect\":"
         "\"forbid\",\"action\":\"Forward\",\"file\":\"THOUGHTGATE_POLICIES\",\"line\":7,"
         "\"column\":"
         "1,\"error\":null}"},
        {"explain hidden --args {}", "Decision   deny, by the gate visibility\n"},
        {"explain drop_x --args {}", "Decision   deny, by the gate governance\n"},
        {"explain read --args {}", "Decision   forward\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *arguments = memory_format("%s --source one --config CONFIG", rows[i].arguments);
        ck_assert_msg(run(arguments) == CLI_DONE, "%s: %s", arguments, captured[1]);
        expect(0, rows[i].says);
        ck_assert_ptr_null(strstr(captured[0], "secret"));
        free(arguments);
    }
    static const struct {
        const char *arguments, *says;
    } wrong[] = {
        {"--principal {\"name\":1}", "--principal: name must be text"},
        {"--principal {\"nmae\":\"a\"}", "--principal: nmae is not one of name, client_name, "
                                         "client_version, subject, issuer, groups and scopes"},
        {"--principal {\"name\":\"a\"", "--principal is not JSON"},
        {"--at 2026-01-04T12:00:00+24:00", "--at 2026-01-04T12:00:00+24:00 is not a time"},
        {"--at +01:00", "--at +01:00 is not a time"},
        {"--args []", "--args must be a JSON object"},
        {"--args {", "--args is not JSON"},
        {"--args {\"a\":1,\"a\":2}", "--args is not JSON"},
        {"--principal {\"name\"", "--principal is not JSON"},
        {"--annotations 1", "--annotations must be a JSON object"},
        {"--at yesterday", "--at yesterday is not a time"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *arguments =
            memory_format("explain pay_x %s --source one --config CONFIG", wrong[i].arguments);
        ck_assert_msg(run(arguments) == CLI_USAGE, "%s", arguments);
        expect(1, wrong[i].says);
        free(arguments);
    }
}
END_TEST

START_TEST(strict_counts_warnings_as_errors)
{
    ck_assert_int_eq(run("check --strict --config CONFIG"), CLI_DONE);
    setenv("THOUGHTGATE_POLICIES", "permit(principal is User, action, resource);", 1);
    ck_assert_int_eq(run("check --config CONFIG"), CLI_DONE);
    expect(1, "THOUGHTGATE_POLICIES:1:1: warning: there are no entities of the type User");
    ck_assert_int_eq(run("check --strict --config CONFIG"), CLI_USAGE);
    ck_assert_str_eq(captured[0], "");
}
END_TEST

/* ---- the admin endpoint ---- */

START_TEST(an_endpoint_that_is_not_there_is_exit_3)
{
    static const char *const commands[] = {"tasks list", "tasks show tg_1",
                                           "tasks approve tg_1 --reason x", "tasks watch"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        ck_assert_msg(run(commands[i]) == CLI_REFUSED, "%s", commands[i]);
        ck_assert_str_eq(captured[0], "");
        expect(1, "the admin endpoint http://127.0.0.1:1 cannot be reached");
    }
}
END_TEST

START_TEST(a_wrong_environment_is_exit_2)
{
    setenv("THOUGHTGATE_ADMIN_URL", "file:///etc/passwd", 1);
    ck_assert_int_eq(run("tasks list"), CLI_USAGE);
    expect(1, "THOUGHTGATE_ADMIN_URL is not an http");
    setenv("THOUGHTGATE_ADMIN_URL", "http://127.0.0.1:1", 1);
    setenv("THOUGHTGATE_ADMIN_TOKEN", "a\r\nX-Evil: 1", 1);
    ck_assert_int_eq(run("tasks list"), CLI_USAGE);
    expect(1, "THOUGHTGATE_ADMIN_TOKEN holds");
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("cli");
    tcase_add_checked_fixture(cases, start, finish);
    tcase_add_test(cases, usage_errors_are_exit_2_on_stderr_alone);
    tcase_add_test(cases, help_is_exit_0_on_stdout_alone);
    tcase_add_test(cases, every_command_knows_its_version);
    tcase_add_test(cases, check_shows_the_rules_in_their_order);
    tcase_add_test(cases, explain_says_which_rule_and_why);
    tcase_add_test(cases, explain_puts_one_call_to_the_policies);
    tcase_add_test(cases, strict_counts_warnings_as_errors);
    tcase_add_test(cases, an_endpoint_that_is_not_there_is_exit_3);
    tcase_add_test(cases, a_wrong_environment_is_exit_2);
    Suite *suite = suite_create("cli");
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, output_cases());
    suite_add_tcase(suite, policy_cases());
    suite_add_tcase(suite, policy_test_cases());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
