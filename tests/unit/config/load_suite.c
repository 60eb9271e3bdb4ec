/* Whole files and their configurations. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "support.h"
#include "taskgate/core/memory.h"

START_TEST(minimal_file_gets_the_defaults)
{
    struct config *config = expect_load(minimal, "");
    ck_assert_str_eq(config->path, "t.yaml");
    ck_assert_uint_eq(config->source_count, 1);
    ck_assert_str_eq(config->sources[0].id, "up");
    ck_assert_str_eq(config->sources[0].url, "http://127.0.0.1:1/mcp");
    ck_assert(config->sources[0].enabled);
    ck_assert_int_eq(config->sources[0].expose_mode, EXPOSE_ALL);
    ck_assert_int_eq(config->default_action, ACTION_FORWARD);
    ck_assert_uint_eq(config->workflow_count, 1);
    ck_assert_str_eq(config->workflows[0].name, "default");
    ck_assert_int_eq(config->workflows[0].timeout_ms, 600000);
    ck_assert_int_eq(config->workflows[0].valid_for_ms, 300000);
    ck_assert(config->workflows[0].admin_only);
    ck_assert_str_eq(config->store_path, "/var/lib/taskgate/taskgate.db");
    ck_assert(config->store_path_is_default);
    ck_assert_int_eq(config->workers, 1);
    ck_assert_str_eq(config->proxy_bind, "127.0.0.1");
    ck_assert_str_eq(config->admin_bind, "127.0.0.1");
    ck_assert_int_eq(config->proxy_port, 7467);
    ck_assert_int_eq(config->admin_port, 7469);
    ck_assert_int_eq(config->execution, EXECUTION_ON_APPROVAL);
    ck_assert_int_eq(config->pending_status, PENDING_STATUS_AUTO);
    ck_assert_int_eq(config->limits.pending_per_principal, 100);
    ck_assert_int_eq(config->limits.pending_bytes_per_principal, 64 << 20);
    ck_assert_int_eq(config->limits.pending_total, 10000);
    ck_assert_int_eq(config->limits.body_bytes, 4 << 20);
    ck_assert_int_eq(config->limits.result_bytes, 16 << 20);
    ck_assert_int_eq(config->limits.store_bytes, 1 << 30);
    ck_assert_int_eq(config->limits.reply_bytes, 64 << 20);
    ck_assert_int_eq(config->limits.sessions, 10000);
    ck_assert_int_eq(config->limits.connections, 10000);
    ck_assert_int_eq(config->limits.requests_per_second, 0);
    ck_assert_int_eq(config->times.task_default_ttl_ms, 600000);
    ck_assert_int_eq(config->times.task_max_ttl_ms, 86400000);
    ck_assert_int_eq(config->times.sync_forward_timeout_ms, 60000);
    ck_assert_int_eq(config->times.execution_timeout_ms, 3600000);
    ck_assert_int_eq(config->times.connect_timeout_ms, 5000);
    ck_assert_int_eq(config->times.approval_timeout_ms, 600000);
    ck_assert_int_eq(config->times.approval_validity_ms, 300000);
    ck_assert_int_eq(config->times.tools_fetch_timeout_ms, 30000);
    ck_assert_int_eq(config->times.tools_max_pages, 100);
    ck_assert_int_eq(config->times.shutdown_timeout_ms, 30000);
    ck_assert_int_eq(config->times.drain_timeout_ms, 25000);
    config_unref(config);
}
END_TEST

START_TEST(a_byte_order_mark_is_no_content)
{
    char *text = memory_format("\xEF\xBB\xBF%s", minimal);
    config_unref(expect_load(text, ""));
    free(text);
    expect_problems("\xEF\xBB\xBFschema: 2\n",
                    "t.yaml:1:1: sources: V-010 the key is missing\n"
                    "t.yaml:1:1: governance: the key is missing\n"
                    "t.yaml:1:9: schema: schema version 2 is not supported; write schema: 1\n");
}
END_TEST

/* As tools leave it that read the file as YAML 1.1 and write it again. */
START_TEST(answers_may_be_truth_values)
{
    char *text = with("clients: [{match: a, tasks: false}, {match: b, tasks: True}, "
                      "{match: c, tasks: No}, {match: d, tasks: auto}]\n");
    struct config *config = expect_load(text, "");
    ck_assert_int_eq(config->clients[0].tasks, CLIENT_TASKS_NO);
    ck_assert_int_eq(config->clients[1].tasks, CLIENT_TASKS_YES);
    ck_assert_int_eq(config->clients[2].tasks, CLIENT_TASKS_NO);
    ck_assert_int_eq(config->clients[3].tasks, CLIENT_TASKS_AUTO);
    config_unref(config);
    free(text);
    text = with("approval: {default: {confirm: false, typed: No}}\n");
    config = expect_load(text, "");
    ck_assert_int_eq(config->workflows[0].confirm, CONFIRM_OFF);
    ck_assert_int_eq(config->workflows[0].typed, BALLOT_TYPING_OFF);
    config_unref(config);
    free(text);
    text = with("clients: [{match: a, tasks: 'false'}]\nexecution: true\n");
    expect_problems(text, "t.yaml:9:29: clients[0].tasks: \"false\" is not an answer; it may be "
                          "auto, yes, no\n"
                          "t.yaml:10:12: execution: \"true\" is not a time of execution; it may be "
                          "on_approval, on_result\n");
    free(text);
}
END_TEST

/* A file as ThoughtGate's users have it, every key of its schema in it. */
static const char thoughtgate[] =
    "schema: 1\n"
    "sources:\n"
    "  - id: upstream\n"
    "    kind: mcp\n"
    "    url: ${MCP_URL:-http://mcp-server:3000}  # or ${MCP_URL}\n"
    "    prefix: null\n"
    "    description: \"The team's tools\"\n"
    "    enabled: true\n"
    "    expose:\n"
    "      mode: blocklist\n"
    "      tools: [\"debug_*\", \"internal/**\"]\n"
    "governance:\n"
    "  defaults:\n"
    "    action: forward\n"
    "  rules:\n"
    "    - match: \"delete_*\"\n"
    "      action: approve\n"
    "      approval: default\n"
    "      description: Deletions need a human\n"
    "    - match: \"transfer_*\"\n"
    "      action: approve\n"
    "      source: upstream\n"
    "      approval: finance\n"
    "      limits: {rate: 5/m, nested: [1, {a: b}]}\n"
    "      inspectors: [pii]\n"
    "    - match: \"*_unsafe\"\n"
    "      action: deny\n"
    "      source: [upstream]\n"
    "approval:\n"
    "  default:\n"
    "    destination:\n"
    "      type: slack\n"
    "      channel: \"#approvals\"\n"
    "      token_env: SLACK_BOT_TOKEN\n"
    "      mention: [\"@oncall\"]\n"
    "    timeout: 10m\n"
    "    blocking_timeout: 5m\n"
    "    on_timeout: deny\n"
    "  finance:\n"
    "    destination:\n"
    "      type: slack\n"
    "      channel: \"#finance\"\n"
    "    timeout: PT1H30M\n"
    "    redact_fields: [card.number, iban]\n"
    "task_annotation_overrides:\n"
    "  force_required: [export_all]\n"
    "cedar:\n"
    "  policies: [/dev/null]\n"
    "  schema: /dev/null\n"
    "telemetry:\n"
    "  enabled: true\n"
    "  otlp:\n"
    "    endpoint: http://otel-collector:4318\n"
    "    protocol: http/protobuf\n"
    "    headers: {Authorization: \"Bearer ${OTEL_TOKEN:-none}\"}\n"
    "  sampling: {strategy: tail, success_sample_rate: 0.10}\n"
    "  batch: {max_queue_size: 4096, max_export_batch_size: 512, scheduled_delay_ms: 10000,\n"
    "          export_timeout_ms: 30000}\n"
    "  resource: {service.name: my-thoughtgate, deployment.environment: staging}\n"
    "  stdio: {propagate_upstream: false}\n";

START_TEST(a_thoughtgate_file_loads_unchanged)
{
    const char *pairs[] = {"MCP_URL=https://mcp.example/v1", NULL};
    test_environment(pairs);
    struct config *config = expect_load(
        thoughtgate,
        "t.yaml:34:18: warning: approval.default.destination.token_env: V-014 the environment "
        "variable SLACK_BOT_TOKEN is not set, so nothing is sent to Slack; the admin endpoint "
        "decides; set it to the token of the bot\n"
        "t.yaml:37:23: warning: approval.default.blocking_timeout: the key has no effect\n"
        "t.yaml:41:7: warning: approval.finance.destination.token_env: V-014 the environment "
        "variable THOUGHTGATE_SLACK_BOT_TOKEN is not set, so nothing is sent to Slack; the admin "
        "endpoint decides; set it to the token of the bot\n"
        "t.yaml:49:11: warning: cedar.schema: the schema is not read: policies are checked against "
        "the entities and attributes that the gateway itself makes\n"
        "t.yaml:56:24: warning: telemetry.sampling.strategy: tail is left to the collector; head "
        "is used\n");
    test_environment(NULL);
    ck_assert_ptr_nonnull(config);
    ck_assert_str_eq(config->sources[0].url, "https://mcp.example/v1");
    ck_assert_ptr_null(config->sources[0].prefix);
    ck_assert_str_eq(config->sources[0].description, "The team's tools");
    ck_assert_int_eq(config->sources[0].expose_mode, EXPOSE_BLOCKLIST);
    ck_assert_uint_eq(config->sources[0].expose.count, 2);
    ck_assert_str_eq(config->sources[0].expose.items[1], "internal/**");
    ck_assert_uint_eq(config->rule_count, 3);
    ck_assert_str_eq(config->rules[0].match, "delete_*");
    ck_assert_int_eq(config->rules[0].action, ACTION_APPROVE);
    ck_assert_str_eq(config->rules[0].description, "Deletions need a human");
    ck_assert_int_eq(config->rules[0].line, 16);
    ck_assert_uint_eq(config->rules[0].sources.count, 0);
    ck_assert_uint_eq(config->rules[1].sources.count, 1);
    ck_assert_str_eq(config->rules[1].sources.items[0], "upstream");
    ck_assert_int_eq(config->rules[2].line, 26);
    const struct config_workflow *finance = config_workflow_of(config, &config->rules[1]);
    ck_assert_str_eq(finance->name, "finance");
    ck_assert_int_eq(finance->timeout_ms, 5400000);
    ck_assert(!finance->admin_only);
    ck_assert_uint_eq(finance->redact_fields.count, 2);
    ck_assert_str_eq(finance->redact_fields.items[0], "card.number");
    ck_assert_str_eq(config->force_required.items[0], "export_all");
    const struct config_telemetry *telemetry = &config->telemetry;
    ck_assert(telemetry->is_on);
    ck_assert_str_eq(telemetry->url, "http://otel-collector:4318/v1/traces");
    ck_assert_str_eq(telemetry->origin, "http://otel-collector:4318");
    ck_assert_int_eq(telemetry->protocol, OTLP_PROTOBUF);
    ck_assert_uint_eq(telemetry->header_count, 1);
    ck_assert_str_eq(telemetry->headers[0].name, "Authorization");
    ck_assert_str_eq(telemetry->headers[0].value, "Bearer none");
    ck_assert_int_eq(telemetry->sampler, SAMPLER_PARENT_RATIO);
    ck_assert_double_eq_tol(telemetry->sample_rate, 0.1, 1e-9);
    ck_assert_int_eq(telemetry->max_queue_size, 4096);
    ck_assert_int_eq(telemetry->max_export_batch_size, 512);
    ck_assert_int_eq(telemetry->scheduled_delay_ms, 10000);
    ck_assert_int_eq(telemetry->export_timeout_ms, 30000);
    ck_assert_uint_eq(telemetry->resource_count, 2);
    ck_assert_str_eq(telemetry->resource[1].name, "deployment.environment");
    ck_assert_str_eq(telemetry->resource[1].value, "staging");
    config_unref(config);
}
END_TEST

START_TEST(keys_of_its_own_are_read)
{
    static const char text[] =
        "schema: 1\n"
        "sources:\n"
        "  - {id: a, kind: mcp, url: 'http://a/', identity: session, enabled: no,\n"
        "     connections: per_owner}\n"
        "  - {id: b, kind: mcp, url: 'http://b/', headers: {X-Key: {env: KEY}}}\n"
        "governance:\n"
        "  defaults: {action: deny}\n"
        "  rules:\n"
        "    - {match: x, action: approve, execution: on_result}\n"
        "    - {match: y, action: forward}\n"
        "approval: {ops: {destination: {type: admin}, timeout: 30s}}\n"
        "store: {path: /x/y.db}\n"
        "workers: 3\n"
        "proxy: {bind: 0.0.0.0, allowed_hosts: ['gw:1'], allowed_origins: ['https://a']}\n"
        "admin:\n"
        "  allowed_hosts: [ops.example]\n"
        "  allowed_origins: ['https://ops.example']\n"
        "  tokens:\n"
        "    - name: alice\n"
        "      token_sha256: "
        "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\n"
        "      roles: [viewer, approver, caller]\n"
        "execution: on_result\n"
        "pending_status: working\n"
        "clients:\n"
        "  - {match: 'old-*', tasks: no}\n"
        "  - {match: '*', tasks: yes, pending_status: input_required}\n"
        "methods: {allow: ['vendor/*']}\n"
        "limits: {pending_per_principal: 1, pending_total: 2, body_bytes: 3KiB, result_bytes: 4,\n"
        "         sessions: 5, connections: 6, requests_per_second: 7,\n"
        "         requests_per_second_per_principal: 8}\n";
    const char *pairs[] = {"KEY=s3cret", NULL};
    test_environment(pairs);
    struct config *config = expect_load(text, "");
    test_environment(NULL);
    ck_assert_int_eq(config->sources[0].identity, IDENTITY_SESSION);
    ck_assert(!config->sources[0].enabled);
    ck_assert_int_eq(config->sources[1].identity, IDENTITY_AUTHORIZATION);
    ck_assert(config->sources[0].connections_per_owner);
    ck_assert(!config->sources[1].connections_per_owner);
    ck_assert_uint_eq(config->sources[1].header_count, 1);
    ck_assert_str_eq(config->sources[1].headers[0].name, "X-Key");
    ck_assert_str_eq(config->sources[1].headers[0].value, "s3cret");
    ck_assert(config->rules[0].has_execution);
    ck_assert_int_eq(config->rules[0].execution, EXECUTION_ON_RESULT);
    ck_assert(!config->rules[1].has_execution);
    ck_assert(config->workflows[0].admin_only);
    ck_assert_int_eq(config->workflows[0].timeout_ms, 30000);
    ck_assert_str_eq(config->store_path, "/x/y.db");
    ck_assert(!config->store_path_is_default);
    ck_assert_int_eq(config->workers, 3);
    ck_assert_str_eq(config->proxy_bind, "0.0.0.0");
    ck_assert_str_eq(config->proxy_allowed_hosts.items[0], "gw:1");
    ck_assert_str_eq(config->proxy_allowed_origins.items[0], "https://a");
    ck_assert_str_eq(config->admin_allowed_hosts.items[0], "ops.example");
    ck_assert_str_eq(config->admin_allowed_origins.items[0], "https://ops.example");
    ck_assert_str_eq(config->tokens[0].name, "alice");
    ck_assert_str_eq(config->tokens[0].sha256,
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_uint_eq(config->tokens[0].roles, ROLE_VIEWER | ROLE_APPROVER | ROLE_CALLER);
    ck_assert_int_eq(config->execution, EXECUTION_ON_RESULT);
    ck_assert_int_eq(config->pending_status, PENDING_STATUS_WORKING);
    ck_assert_str_eq(config->methods_allow.items[0], "vendor/*");
    ck_assert_int_eq(config->limits.pending_per_principal, 1);
    ck_assert_int_eq(config->limits.pending_total, 2);
    ck_assert_int_eq(config->limits.body_bytes, 3072);
    ck_assert_int_eq(config->limits.result_bytes, 4);
    ck_assert_int_eq(config->limits.sessions, 5);
    ck_assert_int_eq(config->limits.connections, 6);
    ck_assert_int_eq(config->limits.requests_per_second, 7);
    ck_assert_int_eq(config->limits.requests_per_second_per_principal, 8);
    const struct config_client *old = config_client_find(config, STR("old-client"));
    ck_assert_int_eq(old->tasks, CLIENT_TASKS_NO);
    ck_assert(!old->has_pending_status);
    const struct config_client *other = config_client_find(config, STR("new"));
    ck_assert_int_eq(other->tasks, CLIENT_TASKS_YES);
    ck_assert_int_eq(other->pending_status, PENDING_STATUS_INPUT_REQUIRED);
    config_unref(config);
}
END_TEST

START_TEST(endpoints_without_an_address_have_that_of_their_service)
{
    static const char *keys[] = {"TOKEN=xoxb-1", "PAGER=0123456789abcdef0123456789abcdef", NULL};
    test_environment(keys);
    struct config *config =
        expect_load("schema: 1\nsources: [{id: up, kind: mcp, url: 'http://h/'}]\n"
                    "governance: {defaults: {action: forward}}\n"
                    "admin: {public_url: 'https://gate.example'}\n"
                    "notify: [{type: pagerduty, routing_key_env: PAGER},"
                    " {type: slack, channel: C1, token_env: TOKEN}]\n",
                    "");
    test_environment(NULL);
    ck_assert_ptr_nonnull(config);
    ck_assert_str_eq(config->notify[0].url, "https://events.pagerduty.com/v2/enqueue");
    ck_assert_str_eq(config->notify[1].url, "https://slack.com/api");
    config_unref(config);
}
END_TEST

START_TEST(lookups_find_by_name)
{
    struct config *config = expect_load("schema: 1\n"
                                        "sources: [{id: a, kind: mcp, url: 'http://a/'}]\n"
                                        "governance:\n"
                                        "  defaults: {action: approve}\n"
                                        "  rules: [{match: x, action: approve, approval: ops}]\n"
                                        "approval: {ops: {}, default: {}}\n",
                                        "");
    ck_assert_ptr_eq(config_source_find(config, STR("a")), &config->sources[0]);
    ck_assert_ptr_null(config_source_find(config, STR("A")));
    ck_assert_ptr_eq(config_workflow_find(config, STR("default")), &config->workflows[1]);
    ck_assert_ptr_null(config_workflow_find(config, STR("none")));
    ck_assert_ptr_eq(config_workflow_of(config, NULL), &config->workflows[1]);
    ck_assert_ptr_eq(config_workflow_of(config, &config->rules[0]), &config->workflows[0]);
    ck_assert_ptr_null(config_client_find(config, STR("anyone")));
    ck_assert_ptr_eq(config_ref(config), config);
    config_unref(config);
    ck_assert_str_eq(config->sources[0].id, "a"); /* one reference is left */
    config_unref(config);
    config_unref(NULL);
}
END_TEST

START_TEST(actions_have_names)
{
    static const char *const names[] = {"forward", "approve", "deny", "policy"};
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(config_action_name((enum config_action)i), names[i]);
}
END_TEST

/* Substitution is over the raw text; places stay those of the file. */
START_TEST(variables_are_replaced_before_the_text_is_yaml)
{
    static const struct {
        const char *more, *problems;
    } rows[] = {
        {"store: {path: ${SET}}\n", ""},
        {"store: {path: '${SET}${SET}'}\n", ""},
        {"store: {path: ${UNSET:-d}}\n", ""},
        {"store: {path: a${UNSET:-}b}\n", ""},
        {"store: {path: '$SET ${1x} ${} ${SET ${A-b}'}\n", ""},
        {"workers: ${EMPTY:-7}\n", ""}, /* set but empty counts as set */
        /* a long value before, and a short one, move nothing */
        {"store: {path: ${SET}, pth: 1}\n", "t.yaml:9:23: store.pth: unknown key; did you mean "
                                            "\"path\"?\n"},
        {"store: {path: ${UNSET:-d}, pth: 1}\n", "t.yaml:9:28: store.pth: unknown key; did you "
                                                 "mean \"path\"?\n"},
        {"# ${SET} ${LINES}\nbogus: 1\n",
         "t.yaml:9:10: not_a_key: unknown key; known here: schema, sources, governance, approval, "
         "cedar, on_policy_error, task_annotation_overrides, telemetry, store, replica, state_key, "
         "workers, "
         "proxy, "
         "admin, execution, "
         "pending_status, clients, pseudo_tools, pseudo_tasks, methods, limits, audit, notify\n"
         "t.yaml:10:1: bogus: unknown key; known here: schema, sources, governance, approval, "
         "cedar, on_policy_error, task_annotation_overrides, telemetry, store, replica, state_key, "
         "workers, "
         "proxy, "
         "admin, execution, "
         "pending_status, clients, pseudo_tools, pseudo_tasks, methods, limits, audit, notify\n"},
        /* text of a variable is not shown, because it may be a secret */
        {"execution: ${SET}\n", "t.yaml:9:12: execution: the value of the variable is not a time "
                                "of execution; it may be on_approval, on_result\n"},
        {"execution: ${UNSET:-on_aproval}\n",
         "t.yaml:9:12: execution: the value of the variable is not a time of execution; did you "
         "mean \"on_approval\"?\n"},
        {"store: {path: ${BINARY}}\n",
         "t.yaml:9:15: store.path: the environment variable BINARY is not UTF-8; set it, or write "
         "a default as ${NAME:-default}\n"},
        /* characters, not bytes, are counted */
        {"store: {path: 'ä€😀${SET}', pth: 1}\n",
         "t.yaml:9:28: store.pth: unknown key; did you mean \"path\"?\n"},
    };
    const char *pairs[] = {"SET=/a/very/long/s3cret", "EMPTY=", "LINES=x\nnot_a_key: 1",
                           "BINARY=\xFF", NULL};
    char *text = with(rows[_i].more);
    test_environment(pairs);
    expect_problems(text, rows[_i].problems);
    test_environment(NULL);
    free(text);
}
END_TEST

START_TEST(a_value_may_bring_yaml_with_it)
{
    const char *pairs[] = {"LIST=a*, b", NULL};
    char *text = with("methods: {allow: [${LIST}]}\n");
    test_environment(pairs);
    struct config *config = expect_load(text, "");
    test_environment(NULL);
    ck_assert_uint_eq(config->methods_allow.count, 2);
    ck_assert_str_eq(config->methods_allow.items[0], "a*");
    config_unref(config);
    free(text);
}
END_TEST

START_TEST(the_reference_has_every_key_and_variable)
{
    static const char *const expected[] = {
        "\n- `schema` (a whole number; required): ",
        "\n### `sources[].headers.*`\n\n- `sources[].headers.*.env` (text; required): ",
        "\n- `governance.rules[].action` (forward, approve, deny or policy; required): ",
        "\n- `approval.*.timeout` (a duration, such as 10m; default `10m`): ",
        "\n- `limits.body_bytes` (a size, such as 4MiB; default `4MiB`): ",
        "\n- `admin.tokens[].roles` (a list of viewer, approver, caller or auditor; required): ",
        "else `THOUGHTGATE_DEFAULT_APPROVAL_TIMEOUT_SECS` (default `600`): ",
        "\n- `THOUGHTGATE_MAX_REQUEST_BODY_BYTES` (wins over `limits.body_bytes`): ",
        "\n- `THOUGHTGATE_ADMIN_TOKEN`: ",
    };
    struct buffer out;
    buffer_init(&out);
    config_write_reference(&out);
    buffer_append_char(&out, '\0');
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        ck_assert_msg(strstr(out.bytes, expected[i]) != NULL, "no \"%s\"", expected[i]);
    buffer_finish(&out);
}
END_TEST

TCase *load_case(void)
{
    TCase *tests = tcase_create("load");
    tcase_add_test(tests, minimal_file_gets_the_defaults);
    tcase_add_test(tests, a_byte_order_mark_is_no_content);
    tcase_add_test(tests, answers_may_be_truth_values);
    tcase_add_test(tests, a_thoughtgate_file_loads_unchanged);
    tcase_add_test(tests, keys_of_its_own_are_read);
    tcase_add_test(tests, endpoints_without_an_address_have_that_of_their_service);
    tcase_add_test(tests, lookups_find_by_name);
    tcase_add_test(tests, actions_have_names);
    tcase_add_loop_test(tests, variables_are_replaced_before_the_text_is_yaml, 0, 13);
    tcase_add_test(tests, a_value_may_bring_yaml_with_it);
    tcase_add_test(tests, the_reference_has_every_key_and_variable);
    return tests;
}
