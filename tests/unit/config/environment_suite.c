/* Every environment variable: its target, its precedence, and the messages for bad values. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "support.h"

/* Loads the minimal file, with `more` behind it, in an environment of up to three pairs. */
static struct config *load_in(const char *more, const char *first, const char *second,
                              const char *third, const char *problems)
{
    const char *pairs[] = {first, second, third, NULL};
    char *text = with(more);
    test_environment(pairs);
    struct config *config = expect_load(text, problems);
    test_environment(NULL);
    free(text);
    return config;
}

#define FIELD(member) offsetof(struct config, member), sizeof(((struct config *)NULL)->member)

/* One number: a pair, the target field, and its expected value. */
static const struct {
    const char *pair;
    size_t offset, size;
    int64_t value;
} numbers[] = {
    {"THOUGHTGATE_OUTBOUND_PORT=8001", FIELD(proxy_port), 8001},
    {"THOUGHTGATE_OUTBOUND_PORT=0", FIELD(proxy_port), 0},
    {"THOUGHTGATE_ADMIN_PORT=8002", FIELD(admin_port), 8002},
    {"THOUGHTGATE_TASK_DEFAULT_TTL_MS=1234", FIELD(times.task_default_ttl_ms), 1234},
    {"THOUGHTGATE_TASK_DEFAULT_TTL_SECS=12", FIELD(times.task_default_ttl_ms), 12000},
    {"THOUGHTGATE_DEFAULT_TASK_TTL_SECS=13", FIELD(times.task_default_ttl_ms), 13000},
    {"THOUGHTGATE_TASK_MAX_TTL_MS=700000", FIELD(times.task_max_ttl_ms), 700000},
    {"THOUGHTGATE_TASK_MAX_TTL_SECS=701", FIELD(times.task_max_ttl_ms), 701000},
    {"THOUGHTGATE_MAX_TASK_TTL_SECS=702", FIELD(times.task_max_ttl_ms), 702000},
    {"THOUGHTGATE_TASK_MAX_PENDING_PER_PRINCIPAL=3", FIELD(limits.pending_per_principal), 3},
    {"THOUGHTGATE_TASK_MAX_PENDING_GLOBAL=4", FIELD(limits.pending_total), 4},
    {"THOUGHTGATE_APPROVAL_TIMEOUT_SECS=5", FIELD(times.approval_timeout_ms), 5000},
    {"THOUGHTGATE_DEFAULT_APPROVAL_TIMEOUT_SECS=6", FIELD(times.approval_timeout_ms), 6000},
    {"THOUGHTGATE_APPROVAL_VALIDITY_SECS=7", FIELD(times.approval_validity_ms), 7000},
    {"THOUGHTGATE_EXECUTION_TIMEOUT_SECS=8", FIELD(times.execution_timeout_ms), 8000},
    {"THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS=9", FIELD(times.sync_forward_timeout_ms), 9000},
    {"THOUGHTGATE_UPSTREAM_CONNECT_TIMEOUT_SECS=10", FIELD(times.connect_timeout_ms), 10000},
    {"THOUGHTGATE_TOOLS_FETCH_TIMEOUT_MS=11", FIELD(times.tools_fetch_timeout_ms), 11},
    {"THOUGHTGATE_TOOLS_MAX_PAGES=12", FIELD(times.tools_max_pages), 12},
    {"THOUGHTGATE_MAX_REQUEST_BODY_BYTES=4096", FIELD(limits.body_bytes), 4096},
    {"THOUGHTGATE_RATE_LIMIT_RPS=14", FIELD(limits.requests_per_second), 14},
    {"THOUGHTGATE_SHUTDOWN_TIMEOUT_SECS=40", FIELD(times.shutdown_timeout_ms), 40000},
    {"THOUGHTGATE_SHUTDOWN_TIMEOUT_SECS=10", FIELD(times.drain_timeout_ms), 9000},
    {"THOUGHTGATE_DRAIN_TIMEOUT_SECS=3", FIELD(times.drain_timeout_ms), 3000},
    {"THOUGHTGATE_DRAIN_TIMEOUT_SECS=28", FIELD(times.drain_timeout_ms), 28000},
    {"THOUGHTGATE_SHUTDOWN_LINGER_SECS=5", FIELD(times.linger_ms), 5000},
    /* if only one of a pair is set, the other's default gives way */
    {"THOUGHTGATE_TASK_MAX_TTL_MS=5000", FIELD(times.task_default_ttl_ms), 5000},
    {"THOUGHTGATE_TASK_DEFAULT_TTL_MS=90000000", FIELD(times.task_max_ttl_ms), 90000000},
    {"THOUGHTGATE_TOOLS_MAX_PAGES= 12 ", FIELD(times.tools_max_pages), 12},
    {"THOUGHTGATE_TOOLS_MAX_PAGES=", FIELD(times.tools_max_pages), 100}, /* empty is unset */
};

START_TEST(a_number_goes_where_it_belongs)
{
    struct config *config =
        load_in("limits: {body_bytes: 8192}\n", numbers[_i].pair, NULL, NULL, "");
    const char *field = (const char *)config + numbers[_i].offset;
    int64_t value = 0;
    uint16_t port;
    if (numbers[_i].size == sizeof port) {
        memcpy(&port, field, sizeof port);
        value = port;
    } else {
        ck_assert_uint_eq(numbers[_i].size, sizeof value);
        memcpy(&value, field, sizeof value);
    }
    ck_assert_int_eq(value, numbers[_i].value);
    config_unref(config);
}
END_TEST

/* Pairs and all that is said about them, behind the minimal file. */
static const struct {
    const char *first, *second, *problems;
} said[] = {
    {"THOUGHTGATE_TASK_DEFAULT_TTL_SECS=1", "THOUGHTGATE_TASK_DEFAULT_TTL_MS=2000",
     "THOUGHTGATE_TASK_DEFAULT_TTL_SECS: warning: THOUGHTGATE_TASK_DEFAULT_TTL_MS is set as well "
     "and wins\n"},
    {"THOUGHTGATE_TASK_DEFAULT_TTL_MS=2000", "THOUGHTGATE_TASK_MAX_TTL_MS=1999",
     "THOUGHTGATE_TASK_DEFAULT_TTL_MS: must not be above THOUGHTGATE_TASK_MAX_TTL_MS\n"},
    {"THOUGHTGATE_TOOLS_MAX_PAGES=many", NULL,
     "THOUGHTGATE_TOOLS_MAX_PAGES: warning: this is no whole number, the variable is ignored\n"},
    {"THOUGHTGATE_TOOLS_MAX_PAGES=-1", NULL,
     "THOUGHTGATE_TOOLS_MAX_PAGES: warning: this is no whole number, the variable is ignored\n"},
    {"THOUGHTGATE_TOOLS_MAX_PAGES=0", NULL,
     "THOUGHTGATE_TOOLS_MAX_PAGES: must be from 1 to 1000000\n"},
    {"THOUGHTGATE_TASK_MAX_PENDING_GLOBAL=0", NULL,
     "THOUGHTGATE_TASK_MAX_PENDING_GLOBAL: limits.pending_total: must be from 1 to 2147483647\n"},
    {"THOUGHTGATE_OUTBOUND_PORT=65536", NULL,
     "THOUGHTGATE_OUTBOUND_PORT: must be from 0 to 65535\n"},
    {"THOUGHTGATE_OUTBOUND_PORT=18446744073709551615", NULL,
     "THOUGHTGATE_OUTBOUND_PORT: must be from 0 to 65535\n"},
    {"THOUGHTGATE_APPROVAL_TIMEOUT_SECS=4", NULL,
     "THOUGHTGATE_APPROVAL_TIMEOUT_SECS: V-015 must be from 5 to 31536000\n"},
    {"THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS=9223372036854775807", NULL,
     "THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS: must be from 1 to 31536000\n"},
    {"THOUGHTGATE_ADMIN_PORT=7467", NULL,
     "THOUGHTGATE_ADMIN_PORT: must not be the proxy's port (THOUGHTGATE_OUTBOUND_PORT)\n"},
    {"THOUGHTGATE_ADMIN_PORT=0", "THOUGHTGATE_OUTBOUND_PORT=0", ""},
    {"THOUGHTGATE_DRAIN_TIMEOUT_SECS=10", "THOUGHTGATE_SHUTDOWN_TIMEOUT_SECS=10",
     "THOUGHTGATE_DRAIN_TIMEOUT_SECS: must be below THOUGHTGATE_SHUTDOWN_TIMEOUT_SECS\n"},
    {"THOUGHTGATE_ADMIN_BIND=everywhere", NULL,
     "THOUGHTGATE_ADMIN_BIND: this is no IP address to listen on, such as 127.0.0.1, 0.0.0.0 or "
     "::1\n"},
    {"THOUGHTGATE_UPSTREAM=not a url", NULL,
     "THOUGHTGATE_UPSTREAM: sources[].url: V-008 the URL holds white space or a control "
     "character\n"},
    /* nothing in the environment may switch approval off */
    {"THOUGHTGATE_PROFILE=development", NULL,
     "THOUGHTGATE_PROFILE: \"development\" is refused: nothing in the environment may switch "
     "approval off; unset it\n"},
    {"THOUGHTGATE_DEV_MODE=true", NULL,
     "THOUGHTGATE_DEV_MODE: \"true\" is refused: nothing in the environment may switch approval "
     "off; unset it\n"},
    {"THOUGHTGATE_DEV_MODE=maybe", NULL,
     "THOUGHTGATE_DEV_MODE: \"maybe\" is refused: nothing in the environment may switch approval "
     "off; unset it\n"},
    {"THOUGHTGATE_APPROVAL_ADAPTER=Mock", "THOUGHTGATE_MOCK_AUTO_APPROVE=1",
     "THOUGHTGATE_MOCK_AUTO_APPROVE: \"1\" is refused: nothing in the environment may switch "
     "approval off; unset it\n"
     "THOUGHTGATE_APPROVAL_ADAPTER: \"Mock\" is refused: nothing in the environment may switch "
     "approval off; unset it\n"},
    {"THOUGHTGATE_ON_TIMEOUT=approve", NULL,
     "THOUGHTGATE_ON_TIMEOUT: \"approve\" is refused: nothing in the environment may switch "
     "approval off; unset it\n"},
    {"THOUGHTGATE_PROFILE=production", "THOUGHTGATE_DEV_MODE=False", ""},
    {"THOUGHTGATE_APPROVAL_ADAPTER=slack", "THOUGHTGATE_ON_TIMEOUT=deny", ""},
    {"THOUGHTGATE_PROFILE=", "THOUGHTGATE_DEV_MODE=", ""},
    {"THOUGHTGATE_ADMIN_TOKEN=x", NULL,
     "THOUGHTGATE_ADMIN_TOKEN: warning: the token is so short that it can be guessed; make one "
     "with: openssl rand -hex 24\n"},
    {"THOUGHTGATE_ADMIN_TOKEN=anything-long-enough", "THOUGHTGATE_ADMIN_URL=http://127.0.0.1:7469",
     ""},
    /* the source of Cedar policies */
    {"THOUGHTGATE_POLICIES=permit(principal,action,resource);", NULL, ""},
    {"THOUGHTGATE_POLICY_FILE=/dev/null", NULL, ""},
    {"THOUGHTGATE_POLICY_FILE=/nonexistent/x", NULL,
     "THOUGHTGATE_POLICY_FILE: V-013 the policy file /nonexistent/x cannot be read: No such file "
     "or "
     "directory\n"},
    {"THOUGHTGATE_POLICY_FILE=/dev/null", "THOUGHTGATE_POLICIES=forbid(principal,action,resource);",
     "THOUGHTGATE_POLICIES: warning: THOUGHTGATE_POLICY_FILE is set as well and wins\n"},
    /* variables of other programs that have no effect here yet */
    {"THOUGHTGATE_SLACK_APPROVE_REACTION=White Check", NULL,
     "THOUGHTGATE_SLACK_APPROVE_REACTION: this is not the name of an emoji; write it as Slack "
     "does, such as white_check_mark\n"},
    {"THOUGHTGATE_SLACK_APPROVE_REACTION=:thumbsdown:", "THOUGHTGATE_SLACK_BOT_TOKEN=xoxb",
     "THOUGHTGATE_SLACK_REJECT_REACTION: the emoji that rejects must not be the one that "
     "approves\n"},
    {"THOUGHTGATE_TELEMETRY_ENABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", ""},
    {"THOUGHTGATE_TELEMETRY_ENABLED=perhaps", NULL,
     "THOUGHTGATE_TELEMETRY_ENABLED: warning: this is no truth value, the variable is ignored; "
     "write true or false\n"},
    {"THOUGHTGATE_TELEMETRY_ENABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=c:4318",
     "OTEL_EXPORTER_OTLP_ENDPOINT: telemetry.otlp.endpoint: V-TEL-002 the URL must begin with "
     "http:// or https://\n"},
    {"THOUGHTGATE_TELEMETRY_ENABLED=true", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
     "OTEL_EXPORTER_OTLP_PROTOCOL: warning: this protocol is not spoken, the variable is ignored; "
     "it may be http/protobuf, http/json\n"},
    {"THOUGHTGATE_TELEMETRY_ENABLED=true", "OTEL_TRACES_SAMPLER=jaeger_remote",
     "OTEL_TRACES_SAMPLER: warning: this sampler does not exist, the variable is ignored; it may "
     "be always_on, always_off, traceidratio, or parentbased_…\n"},
    {"THOUGHTGATE_TELEMETRY_ENABLED=true", "OTEL_TRACES_SAMPLER_ARG=1.5",
     "OTEL_TRACES_SAMPLER_ARG: warning: this is no share, the variable is ignored; write a number "
     "from 0 to 1\n"},
    {"THOUGHTGATE_TELEMETRY_ENABLED=true", "OTEL_EXPORTER_OTLP_HEADERS=authorization,x=1",
     "OTEL_EXPORTER_OTLP_HEADERS: warning: a header cannot be read, and is left out; write "
     "NAME=VALUE,NAME=VALUE\n"},
    {"THOUGHTGATE_TELEMETRY_ENABLED=true", "OTEL_EXPORTER_OTLP_HEADERS=x=a%0d%0ab",
     "OTEL_EXPORTER_OTLP_HEADERS: warning: a header cannot be read, and is left out; write "
     "NAME=VALUE,NAME=VALUE\n"},
    /* without telemetry those of other programs are nobody's business */
    {"OTEL_EXPORTER_OTLP_ENDPOINT=c:4318", "OTEL_TRACES_SAMPLER=jaeger_remote", ""},
    {"THOUGHTGATE_UPSTREAM_TIMEOUT_SECS=30", NULL,
     "THOUGHTGATE_UPSTREAM_TIMEOUT_SECS: warning: the variable has no effect; use "
     "THOUGHTGATE_SYNC_FORWARD_TIMEOUT_SECS\n"},
    {"THOUGHTGATE_RATE_LIMIT_BURST=200", NULL,
     "THOUGHTGATE_RATE_LIMIT_BURST: warning: the variable has no effect; the rate limit has no "
     "burst of its own\n"},
};

START_TEST(each_variables_problems_are_told)
{
    config_unref(load_in("", said[_i].first, said[_i].second, NULL, said[_i].problems));
}
END_TEST

START_TEST(an_ignored_number_leaves_what_the_file_says)
{
    struct config *config = load_in("limits: {body_bytes: 8192}\n",
                                    "THOUGHTGATE_MAX_REQUEST_BODY_BYTES=4KiB", NULL, NULL,
                                    "THOUGHTGATE_MAX_REQUEST_BODY_BYTES: warning: "
                                    "limits.body_bytes: this is no whole number, the variable is "
                                    "ignored\n");
    ck_assert_int_eq(config->limits.body_bytes, 8192);
    config_unref(config);
}
END_TEST

START_TEST(milliseconds_win_over_seconds)
{
    struct config *config = load_in(
        "", "THOUGHTGATE_DEFAULT_TASK_TTL_SECS=9", "THOUGHTGATE_TASK_DEFAULT_TTL_SECS=1",
        "THOUGHTGATE_TASK_DEFAULT_TTL_MS=2000",
        "THOUGHTGATE_TASK_DEFAULT_TTL_SECS: warning: THOUGHTGATE_TASK_DEFAULT_TTL_MS is set as "
        "well and wins\n"
        "THOUGHTGATE_DEFAULT_TASK_TTL_SECS: warning: THOUGHTGATE_TASK_DEFAULT_TTL_MS is set as "
        "well and wins\n");
    ck_assert_int_eq(config->times.task_default_ttl_ms, 2000);
    config_unref(config);
}
END_TEST

START_TEST(upstream_replaces_the_url_of_a_single_source)
{
    struct config *config =
        load_in("", "THOUGHTGATE_UPSTREAM=https://other.example/x", NULL, NULL, "");
    ck_assert_str_eq(config->sources[0].url, "https://other.example/x");
    config_unref(config);

    const char *pairs[] = {"THOUGHTGATE_UPSTREAM=https://other.example/x", NULL};
    test_environment(pairs);
    expect_problems("schema: 1\n"
                    "sources:\n"
                    "  - {id: a, kind: mcp, url: 'http://a/'}\n"
                    "  - {id: b, kind: mcp, url: 'http://b/'}\n"
                    "governance: {defaults: {action: deny}}\n",
                    "THOUGHTGATE_UPSTREAM: sources[].url: there are several sources, and this "
                    "replaces the url of a single one; unset it, and write each url into the "
                    "file\n");
    test_environment(NULL);
}
END_TEST

START_TEST(force_required_is_merged)
{
    struct config *config = load_in("task_annotation_overrides: {force_required: [a, b]}\n",
                                    "THOUGHTGATE_TASK_FORCE_REQUIRED= b, c ,,d", NULL, NULL, "");
    static const char *const expected[] = {"a", "b", "c", "d"};
    ck_assert_uint_eq(config->force_required.count, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_str_eq(config->force_required.items[i], expected[i]);
    config_unref(config);
}
END_TEST

START_TEST(approval_timeout_is_that_of_workflows_without_one)
{
    struct config *config = load_in("approval: {slow: {timeout: 1h}, plain: {}}\n",
                                    "THOUGHTGATE_APPROVAL_TIMEOUT_SECS=30", NULL, NULL, "");
    ck_assert_int_eq(config_workflow_find(config, STR("slow"))->timeout_ms, 3600000);
    ck_assert_int_eq(config_workflow_find(config, STR("plain"))->timeout_ms, 30000);
    config_unref(config);
    config = load_in("", "THOUGHTGATE_APPROVAL_TIMEOUT_SECS=30", NULL, NULL, "");
    ck_assert_int_eq(config->workflows[0].timeout_ms, 30000);
    config_unref(config);
}
END_TEST

START_TEST(secrets_come_from_variables_and_stay_out_of_messages)
{
    static const char tokens[] = "admin:\n"
                                 "  tokens:\n"
                                 "    - {name: a, token_env: A, roles: [approver]}\n"
                                 "    - {name: b, token_env: B, roles: [caller]}\n";
    /* SHA-256 of "abc" */
    static const char digest[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    struct config *config = load_in(tokens, "A=abc", "B=sixteen-and-more", NULL,
                                    "t.yaml:11:28: warning: admin.tokens[0].token_env: the token "
                                    "in A is so short that it can be guessed; make one with: "
                                    "openssl rand -hex 24\n");
    ck_assert_str_eq(config->tokens[0].sha256, digest);
    ck_assert_uint_eq(config->tokens[0].roles, ROLE_APPROVER);
    ck_assert_uint_eq(config->tokens[1].roles, ROLE_CALLER);
    config_unref(config);
    load_in(tokens, "A=sixteen-and-more", "B=sixteen-and-more", NULL,
            "t.yaml:12:7: admin.tokens[1]: this is the token of admin.tokens[0] as well; each "
            "needs a token of its own\n");
    load_in(tokens, "A=abc\n", "B=", NULL,
            "t.yaml:11:28: admin.tokens[0].token_env: the token in A holds white space or control "
            "characters\n"
            "t.yaml:12:28: admin.tokens[1].token_env: V-014 the environment variable named here is "
            "not set; "
            "set it to the token\n");
}
END_TEST

START_TEST(those_who_are_told_have_a_secret_and_their_events)
{
    static const char notify[] = "notify:\n"
                                 "  - {url: 'https://h/a?key=1', secret_env: A}\n"
                                 "  - {url: 'http://h/b', secret_env: B, events: [ended, decided], "
                                 "include_arguments: true}\n";
    struct config *config = load_in(notify, "A=abc", "B=d e", NULL, "");
    ck_assert_uint_eq(config->notify_count, 2);
    ck_assert_str_eq(config->notify[0].url, "https://h/a?key=1");
    ck_assert_str_eq(config->notify[0].secret, "abc");
    ck_assert_uint_eq(config->notify[0].events, NOTIFY_ALL);
    ck_assert(!config->notify[0].include_arguments);
    ck_assert_str_eq(config->notify[1].secret, "d e");
    ck_assert_uint_eq(config->notify[1].events, NOTIFY_DECIDED | NOTIFY_ENDED);
    ck_assert(config->notify[1].include_arguments);
    config_unref(config);
    load_in(notify, "A=abc\n", "B=", NULL,
            "t.yaml:10:44: notify[0].secret_env: in the environment variable A: the value holds a "
            "line break or another control character\n"
            "t.yaml:11:37: notify[1].secret_env: V-014 the environment variable named here is not "
            "set; set "
            "it to the secret\n");
    load_in("notify:\n"
            "  - {url: 'http://h/', secret_env: A, events: [created]}\n"
            "  - {url: 'http://h/', secret_env: B, events: [ended]}\n",
            "A=abc", "B=abc", NULL,
            "t.yaml:11:11: notify[1].url: this is the URL of notify[0] as well; join their events "
            "in one\n");
}
END_TEST

START_TEST(events_that_are_told_have_names)
{
    static const char *const names[] = {"created", "decided", "expired", "ended"};
    for (unsigned i = 0; i < 4; i++)
        ck_assert_str_eq(config_notify_event_name((enum config_notify_event)(1u << i)), names[i]);
}
END_TEST

START_TEST(header_values_come_from_variables)
{
    static const char text[] =
        "schema: 1\n"
        "sources:\n"
        "  - id: up\n"
        "    kind: mcp\n"
        "    url: http://h/\n"
        "    headers: {Authorization: {env: AUTH}, X-Key: {env: KEY}, x-key: {env: KEY}}\n"
        "governance: {defaults: {action: deny}}\n";
    const char *pairs[] = {"AUTH=Bearer s3cret", "KEY=broken\r\ns3cret", NULL};
    test_environment(pairs);
    expect_problems(text, "t.yaml:6:56: sources[0].headers.X-Key: in the environment variable KEY: "
                          "the value holds a line break or another control character\n"
                          "t.yaml:6:62: sources[0].headers.x-key: the header stands here twice: "
                          "names differ in case only; keep one of them\n"
                          "t.yaml:6:75: sources[0].headers.x-key: in the environment variable "
                          "KEY: the value holds a line break or another control character\n");
    test_environment(NULL);
}
END_TEST

TCase *environment_case(void)
{
    TCase *tests = tcase_create("environment");
    tcase_add_loop_test(tests, a_number_goes_where_it_belongs, 0, sizeof numbers / sizeof *numbers);
    tcase_add_loop_test(tests, each_variables_problems_are_told, 0, sizeof said / sizeof *said);
    tcase_add_test(tests, an_ignored_number_leaves_what_the_file_says);
    tcase_add_test(tests, milliseconds_win_over_seconds);
    tcase_add_test(tests, upstream_replaces_the_url_of_a_single_source);
    tcase_add_test(tests, force_required_is_merged);
    tcase_add_test(tests, approval_timeout_is_that_of_workflows_without_one);
    tcase_add_test(tests, secrets_come_from_variables_and_stay_out_of_messages);
    tcase_add_test(tests, those_who_are_told_have_a_secret_and_their_events);
    tcase_add_test(tests, events_that_are_told_have_names);
    tcase_add_test(tests, header_values_come_from_variables);
    return tests;
}
