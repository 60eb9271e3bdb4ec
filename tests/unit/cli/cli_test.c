/* The command line without a gateway: arguments, exit codes, safe output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/cli/cli.h"
#include "taskgate/core/memory.h"

#include "harness.h"
#include "options.h"
#include "tasks.h"
#include "terminal.h"

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
           "\"annotation\":{\"upstream_tasks\":\"required\",\"no_upstream_tasks\":\"required\"},"
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
         "\"annotation\":{\"upstream_tasks\":\"optional\",\"no_upstream_tasks\":\"forbidden\"}"},
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

/* ---- output ---- */

static void expect_text(struct buffer *actual, const char *wanted)
{
    char *text = buffer_take(actual, NULL);
    ck_assert_str_eq(text, wanted);
    free(text);
}

START_TEST(nothing_misleads_a_terminal)
{
    struct buffer out;
    buffer_init(&out);
    terminal_append_text(&out, STR("a\x1B[31m\"b\\c\xE2\x80\xAE\xC2\x9B"
                                   "d\n\xC3\xA9"));
    expect_text(&out, "a\\u001b[31m\"b\\c\\u202e\\u009bd\\n\xC3\xA9");
    terminal_append_json(&out, STR("{\"a\\\"\xE2\x80\xAE\":[1.50,\"\\u001b\",\"\xC2\x9B\"]}"));
    expect_text(&out, "{\"a\\\"\\u202e\":[1.50,\"\\u001b\",\"\\u009b\"]}");
    terminal_append_pretty(&out,
                           STR("{\"n\":9007199254740993,\"e\":{},\"l\":[ ],\"x\":[1,{\"y\":"
                               "\"\\n\"}]}"),
                           STR_EMPTY);
    expect_text(&out, "{\n  \"n\": 9007199254740993,\n  \"e\": {},\n  \"l\": [],\n  \"x\": [\n    "
                      "1,\n    {\n      \"y\": \"\\n\"\n    }\n  ]\n}");
}
END_TEST

START_TEST(tasks_are_shown_whole_and_safe)
{
    static const char list[] =
        "{\"tasks\":[{\"id\":\"tg_1\",\"state\":\"pending\",\"tool\":\"x\xE2\x80\xAEy\",\"source\":"
        "\"up\",\"principal\":\"p\",\"createdAt\":\"2026-01-12T22:32:00.123Z\",\"decideBy\":"
        "\"2026-01-12T22:42:00.000Z\","
        "\"arguments\":{\"big\":9007199254740993},\"decidedBy\":null}],\"nextCursor\":\"c1f\"}";
    struct buffer out;
    buffer_init(&out);
    struct str task = str_slice(list + 10, strlen(list) - 10 - strlen("],\"nextCursor\":\"c1f\"}"));
    struct tasks_table table = {&task, 1, INT64_C(1768257130123), false};
    tasks_append_table(&out, &table);
    expect_text(&out, "ID    STATE    LEFT    TOOL      ASKED BY  SOURCE  ASKED\n"
                      "tg_1  pending  9m 49s  x\\u202ey  p         up      10s ago\n");
    tasks_append_details(&out, task);
    expect_text(&out, "Task       tg_1\nState      pending\nTool       x\\u202ey\nSource     up\n"
                      "Asked by   p\nCreated    2026-01-12 22:32:00Z\n"
                      "Decide by  2026-01-12 22:42:00Z\n"
                      "Arguments  {\n  \"big\": 9007199254740993\n}\n");
    tasks_append_change(&out, task);
    expect_text(&out, "tg_1  pending  x\\u202ey\n");
}
END_TEST

START_TEST(a_name_without_end_is_cut_where_others_stand_beside_it)
{
    char name[3002], *list, *task;
    name[0] = 'x'; /* so that the limit is within a character */
    for (size_t i = 1; i < 3001; i += 2)
        memcpy(name + i, "\xC3\xA9", 2);
    name[3001] = '\0';
    task = memory_format("{\"id\":\"tg_1\",\"state\":\"pending\",\"tool\":\"%s\"}", name);
    list = memory_format("{\"tasks\":[%s],\"nextCursor\":null}", task);
    struct buffer out;
    buffer_init(&out);
    tasks_append_change(&out, str_from(task));
    ck_assert_uint_lt(out.length, 200);
    ck_assert(str_is_utf8(buffer_str(&out)));
    ck_assert(str_ends_with(buffer_str(&out), STR("\xC3\xA9…\n")));
    buffer_clear(&out);
    struct str tasks[] = {str_from(task)};
    tasks_append_table(&out, &(struct tasks_table){tasks, 1, 0, false});
    ck_assert_uint_lt(out.length, 700);
    buffer_clear(&out);
    tasks_append_details(&out, str_from(task));
    ck_assert_ptr_nonnull(memmem(out.bytes, out.length, name, strlen(name)));
    buffer_finish(&out);
    free(list);
    free(task);
}
END_TEST

START_TEST(a_table_goes_on_in_further_lines_where_the_terminal_is_narrow)
{
    static const char *const headings[] = {"ID", "STATE", "ASKED BY", "REASON"};
    static const char *const cells[] = {"tg_1", "pending",  "an agent",          "",
                                        "tg_2", "rejected", "\xC3\xA9t\xC3\xA9", "too late"};
    static const struct {
        size_t room;
        const char *text;
    } rows[] = {
        {0, "ID    STATE     ASKED BY  REASON\n"
            "tg_1  pending   an agent\n"
            "tg_2  rejected  \xC3\xA9t\xC3\xA9       too late\n"},
        {34, "ID    STATE     ASKED BY  REASON\n"
             "tg_1  pending   an agent\n"
             "tg_2  rejected  \xC3\xA9t\xC3\xA9       too late\n"},
        {33, "ID    STATE     ASKED BY\n REASON\n"
             "tg_1  pending   an agent\n"
             "tg_2  rejected  \xC3\xA9t\xC3\xA9\n too late\n"},
        {20, "ID    STATE\n ASKED BY  REASON\n"
             "tg_1  pending\n an agent\n"
             "tg_2  rejected\n \xC3\xA9t\xC3\xA9       too late\n"},
        {1, "ID\n STATE\n ASKED BY\n REASON\n"
            "tg_1\n pending\n an agent\n"
            "tg_2\n rejected\n \xC3\xA9t\xC3\xA9\n too late\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct table table;
        struct buffer out;
        buffer_init(&out);
        table_init(&table, 4, headings);
        for (size_t j = 0; j < sizeof cells / sizeof *cells; j++)
            table_add(&table, str_from(cells[j]));
        table.room = rows[i].room;
        table_write(&table, &out);
        table_finish(&table);
        expect_text(&out, rows[i].text);
    }
}
END_TEST

START_TEST(a_table_fits_where_columns_may_be_cut)
{
    static const char *const headings[] = {"ID", "TOOL", "ASKED BY"};
    static const char *const cells[] = {
        "tg_1", "delete_database", "\xC3\xA9t\xC3\xA9 of the agents", "tg_2", "pay", "x"};
    static const struct {
        size_t room;
        const char *text;
    } rows[] = {
        {42, "ID    TOOL             ASKED BY\n"
             "tg_1  delete_database  \xC3\xA9t\xC3\xA9 of the agents\n"
             "tg_2  pay              x\n"},
        {34, "ID    TOOL           ASKED BY\n"
             "tg_1  delete_datab…  \xC3\xA9t\xC3\xA9 of the a…\n"
             "tg_2  pay            x\n"},
        {24, "ID    TOOL      ASKED BY\n"
             "tg_1  delete_…  \xC3\xA9t\xC3\xA9 of …\n"
             "tg_2  pay       x\n"},
        {20, "ID    TOOL\n ASKED BY\n"
             "tg_1  delete_…\n \xC3\xA9t\xC3\xA9 of …\n"
             "tg_2  pay\n x\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct table table;
        struct buffer out;
        buffer_init(&out);
        table_init(&table, 3, headings);
        for (size_t j = 0; j < sizeof cells / sizeof *cells; j++)
            table_add(&table, str_from(cells[j]));
        table.room = rows[i].room;
        table.may_shrink = 6;
        table_write(&table, &out);
        table_finish(&table);
        expect_text(&out, rows[i].text);
    }
}
END_TEST

START_TEST(ids_on_a_terminal_are_as_long_as_they_must_be)
{
    static const struct {
        const char *ids[2], *shown[2];
    } rows[] = {
        {{"tg_6b3b5ab1-8675-425a-bc83-7dc96d01aff5", "tg_7b3b5ab1-8675-425a-bc83-7dc96d01aff5"},
         {"tg_6b3b5ab1  ", "tg_7b3b5ab1  "}},
        {{"tg_6b3b5ab1-8675-425a-bc83-7dc96d01aff5", "tg_6b3b5ab1-9675-425a-bc83-7dc96d01aff5"},
         {"tg_6b3b5ab1-8  ", "tg_6b3b5ab1-9  "}},
    };
    for (size_t i = 0; i < 2; i++) {
        struct buffer out;
        struct str tasks[2];
        char *texts[2];
        buffer_init(&out);
        for (size_t j = 0; j < 2; j++) {
            texts[j] = memory_format("{\"id\":\"%s\",\"state\":\"failed\"}", rows[i].ids[j]);
            tasks[j] = str_from(texts[j]);
        }
        tasks_append_table(&out, &(struct tasks_table){tasks, 2, 0, true});
        buffer_append_char(&out, '\0');
        for (size_t j = 0; j < 2; j++) {
            ck_assert_ptr_nonnull(strstr(out.bytes, rows[i].shown[j]));
            free(texts[j]);
        }
        buffer_finish(&out);
    }
}
END_TEST

START_TEST(a_span_has_its_two_largest_units)
{
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {-5, "0s"},           {999, "0s"},        {59999, "59s"},        {60000, "1m 0s"},
        {3599000, "59m 59s"}, {3600000, "1h 0m"}, {86399000, "23h 59m"}, {90000000, "1d 1h"}};
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tasks_append_span(&out, rows[i].ms);
        expect_text(&out, rows[i].text);
    }
}
END_TEST

START_TEST(an_event_has_time_caller_and_cause)
{
    static const struct {
        const char *task, *line;
    } rows[] = {
        {"{\"id\":\"tg_1\",\"state\":\"pending\",\"tool\":\"pay\",\"principal\":\"bot\"}",
         "2026-01-12T22:32:10Z  tg_1  pending  pay  for bot\n"},
        {"{\"id\":\"tg_1\",\"state\":\"failed\",\"tool\":\"pay\",\"principal\":\"bot\","
         "\"decidedBy\":\"ann\",\"reason\":\"fine\",\"executeBy\":\"2026-01-12T22:35:00.000Z\","
         "\"statusMessage\":\"no \\u202e money\"}",
         "2026-01-12T22:32:10Z  tg_1  failed  pay  approved by ann  for bot: no \\u202e money\n"},
        {"{\"id\":\"tg_1\",\"state\":\"rejected\",\"tool\":\"pay\",\"principal\":\"bot\","
         "\"decidedBy\":\"ann\",\"reason\":\"too much\",\"statusMessage\":\"Rejected\"}",
         "2026-01-12T22:32:10Z  tg_1  rejected  pay  by ann  for bot: too much\n"},
    };
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tasks_append_event(&out, str_from(rows[i].task), INT64_C(1768257130123));
        expect_text(&out, rows[i].line);
    }
}
END_TEST

START_TEST(a_change_says_who_decided_and_nothing_that_others_did)
{
    static const struct {
        const char *task, *line;
    } rows[] = {
        {"{\"id\":\"tg_1\",\"state\":\"approved\",\"tool\":\"pay\",\"decidedBy\":\"ann\","
         "\"executeBy\":\"2026-01-12T22:35:00.000Z\"}",
         "tg_1  approved  pay  by ann\n"},
        {"{\"id\":\"tg_1\",\"state\":\"cancelled\",\"tool\":\"pay\",\"decidedBy\":\"ann\","
         "\"executeBy\":\"2026-01-12T22:35:00.000Z\"}",
         "tg_1  cancelled  pay  approved by ann\n"},
        {"{\"id\":\"tg_1\",\"state\":\"cancelled\",\"tool\":\"pay\",\"decidedBy\":\"bob\","
         "\"executeBy\":null}",
         "tg_1  cancelled  pay  by bob\n"},
        {"{\"id\":\"tg_1\",\"state\":\"completed\",\"tool\":\"pay\",\"decidedBy\":null,"
         "\"executeBy\":\"2026-01-12T22:35:00.000Z\"}",
         "tg_1  completed  pay\n"},
    };
    struct buffer out;
    buffer_init(&out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tasks_append_change(&out, str_from(rows[i].task));
        expect_text(&out, rows[i].line);
    }
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
    tcase_add_test(cases, nothing_misleads_a_terminal);
    tcase_add_test(cases, tasks_are_shown_whole_and_safe);
    tcase_add_test(cases, a_name_without_end_is_cut_where_others_stand_beside_it);
    tcase_add_test(cases, a_table_goes_on_in_further_lines_where_the_terminal_is_narrow);
    tcase_add_test(cases, a_table_fits_where_columns_may_be_cut);
    tcase_add_test(cases, ids_on_a_terminal_are_as_long_as_they_must_be);
    tcase_add_test(cases, a_span_has_its_two_largest_units);
    tcase_add_test(cases, an_event_has_time_caller_and_cause);
    tcase_add_test(cases, a_change_says_who_decided_and_nothing_that_others_did);
    Suite *suite = suite_create("cli");
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, policy_cases());
    suite_add_tcase(suite, policy_test_cases());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
