/* The messages between a legacy client and a modern server. */
#include <stdlib.h>

#include "mcp_test.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/legacy_bridge.h"
#include "taskgate/mcp/parameter_headers.h"

#define P "io.modelcontextprotocol/"

static void assert_text(struct buffer *out, const char *expected)
{
    ck_assert(json_check(buffer_str(out), NULL));
    expect_written(out, expected);
}

START_TEST(capabilities_are_declared_as_each_modern_request_does)
{
    static const struct {
        const char *declared, *expected;
    } cases[] = {
        {"{}", "{}"},
        {"", "{}"},
        {"{\"elicitation\":{},\"tasks\":{\"list\":{}}}", "{\"elicitation\":{\"form\":{}}}"},
        {"{\"elicitation\":{\"url\":{}}}", "{\"elicitation\":{\"url\":{}}}"},
        {"{\"elicitation\":true,\"roots\":{\"listChanged\":true}}", "{\"roots\":{}}"},
        {"{\"sampling\":{\"tools\":{}},\"experimental\":{\"x\":1}}",
         "{\"experimental\":{\"x\":1},\"sampling\":{\"tools\":{}}}"},
        {"{\"extensions\":{\"" P "tasks\":{}}}", "{}"},
        {"{\"extensions\":{\"" P "tasks\":{},\"a/b\":{}}}", "{\"extensions\":{\"a/b\":{}}}"},
    };
    struct buffer out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        legacy_bridge_write_capabilities(&out, str_from(cases[i].declared));
        assert_text(&out, cases[i].expected);
    }
    buffer_finish(&out);
}
END_TEST

START_TEST(initialize_is_answered_in_a_legacy_version)
{
    static const struct {
        const char *asked, *expected;
    } cases[] = {{"\"2024-11-05\"", "2024-11-05"},
                 {"\"2025-06-18\"", "2025-06-18"},
                 {"\"2026-07-28\"", "2025-11-25"},
                 {"\"2999-01-01\"", "2025-11-25"},
                 {"\"x\"", "2025-11-25"},
                 {"", "2025-11-25"},
                 {"5", "2025-11-25"}};
    struct buffer out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        legacy_bridge_write_initialize(
            &out, STR("{\"capabilities\":{\"tools\":{},\"tasks\":{}},\"resultType\":\"complete\"}"),
            str_from(cases[i].asked), "up");
        char *expected =
            memory_format("{\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},"
                          "\"serverInfo\":{\"name\":\"up\",\"version\":\"0\"}}",
                          cases[i].expected);
        assert_text(&out, expected);
        free(expected);
    }
    buffer_finish(&out);
}
END_TEST

START_TEST(results_lose_what_the_legacy_era_has_not)
{
    static const struct {
        const char *result, *expected;
    } cases[] = {
        {"{\"resultType\":\"complete\"}", "{}"},
        {"{\"resultType\":\"complete\",\"_meta\":{\"" P "serverInfo\":{}}}", "{}"},
        {"{\"_meta\":{\"" P "serverInfo\":{},\"a\":1}}", "{\"_meta\":{\"a\":1}}"},
        {"{\"ttlMs\":1,\"cacheScope\":\"public\",\"tools\":[1.50, 2]}", "{\"tools\":[1.50, 2]}"},
    };
    struct buffer out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        legacy_bridge_write_result(&out, str_from(cases[i].result));
        assert_text(&out, cases[i].expected);
    }
    legacy_bridge_write_call_result(&out, STR("{\"structuredContent\":{\"a\":1}}"), false);
    assert_text(&out, "{\"structuredContent\":{\"a\":1}}");
    legacy_bridge_write_call_result(&out, STR("{\"structuredContent\":{\"a\":1}}"), true);
    assert_text(&out, "{\"structuredContent\":{\"result\":{\"a\":1}}}");
    legacy_bridge_write_call_result(&out, STR("{\"structuredContent\":null}"), false);
    assert_text(&out, "{\"structuredContent\":{\"result\":null}}");
    buffer_finish(&out);
}
END_TEST

START_TEST(params_get_the_envelope_and_nothing_of_the_clients_that_means_more_there)
{
    const struct legacy_bridge_envelope envelope = {STR("{\"sampling\":{}}"),
                                                    STR("{\"name\":\"c\"}"), STR("\"info\"")};
    const struct legacy_bridge_envelope bare = {.capabilities = STR("{}")};
    struct buffer out = {0};
    legacy_bridge_write_params(
        &out,
        STR("{\"name\":\"t\",\"task\":{},\"inputResponses\":{},\"requestState\":\"s\",\"_meta\":{"
            "\"progressToken\":1,\"" P "logLevel\":\"debug\",\"" P "related-task\":{}}}"),
        &envelope);
    assert_text(&out, "{\"name\":\"t\",\"_meta\":{\"progressToken\":1,\"" P
                      "protocolVersion\":\"2026-07-28\",\"" P
                      "clientCapabilities\":{\"sampling\":{}},\"" P
                      "clientInfo\":{\"name\":\"c\"},\"" P "logLevel\":\"info\"}}");
    legacy_bridge_write_params(&out, STR_EMPTY, &bare);
    assert_text(&out, "{\"_meta\":{\"" P "protocolVersion\":\"2026-07-28\",\"" P
                      "clientCapabilities\":{}}}");
    buffer_finish(&out);
}
END_TEST

START_TEST(notifications_lose_the_id_of_their_stream)
{
    static const struct {
        const char *message, *expected;
    } cases[] = {
        {"{\"method\":\"m\"}", "{\"method\":\"m\"}"},
        {"{\"method\":\"m\",\"params\":{\"_meta\":{\"" P "subscriptionId\":1}}}",
         "{\"method\":\"m\"}"},
        {"{\"method\":\"m\",\"params\":{\"uri\":\"u\",\"_meta\":{\"" P "subscriptionId\":1}}}",
         "{\"method\":\"m\",\"params\":{\"uri\":\"u\"}}"},
        {"{\"method\":\"m\",\"params\":{\"_meta\":{\"a\":1,\"" P "subscriptionId\":1}}}",
         "{\"method\":\"m\",\"params\":{\"_meta\":{\"a\":1}}}"},
    };
    struct buffer out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        legacy_bridge_write_notification(&out, str_from(cases[i].message));
        assert_text(&out, cases[i].expected);
    }
    buffer_finish(&out);
}
END_TEST

START_TEST(a_required_input_becomes_a_request)
{
    struct buffer out = {0};
    legacy_bridge_write_request(&out, STR("tg:1"), STR("{\"method\":\"roots/list\"}"));
    assert_text(&out, "{\"jsonrpc\":\"2.0\",\"id\":\"tg:1\",\"method\":\"roots/list\","
                      "\"params\":{}}");
    legacy_bridge_write_request(
        &out, STR("k"),
        STR("{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"url\":\"a:b\"}}"));
    ck_assert(json_type(json_path(buffer_str(&out), "params", "elicitationId")) == JSON_STRING);
    buffer_finish(&out);
}
END_TEST

START_TEST(the_tasks_extension_is_declared_beside_others)
{
    struct buffer out = {0};
    legacy_bridge_write_with_tasks(&out, STR("{\"roots\":{},\"extensions\":{\"a/b\":{}}}"));
    assert_text(&out, "{\"roots\":{},\"extensions\":{\"a/b\":{},\"" P "tasks\":{}}}");
    legacy_bridge_write_with_tasks(&out, STR("{}"));
    assert_text(&out, "{\"extensions\":{\"" P "tasks\":{}}}");
    buffer_finish(&out);
}
END_TEST

static void put(void *context, struct str name, struct str value)
{
    struct buffer *out = context;
    buffer_append_format(out, "%.*s=%.*s;", STR_ARGS(name), STR_ARGS(value));
}

START_TEST(parameter_headers_are_made_of_the_arguments)
{
    static const struct {
        const char *arguments, *expected;
    } cases[] = {
        {"{\"s\":\"eu\",\"i\":42.0,\"b\":true}", "S=eu;I=42;B=true;"},
        {"{\"s\":null,\"i\":4.2e1}", "I=42;"},
        {"{\"s\":\" \\u00fc\"}", "S==?base64?IMO8?=;"},
        {"{\"s\":{},\"i\":1.5}", "I=1.5;"}, /* the server will refuse the argument itself */
        {"", ""},
    };
    struct parameter_headers *headers;
    struct buffer out = {0};
    ck_assert_int_eq(
        parameter_headers_create(
            STR("{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\",\"x-mcp-header\":"
                "\"S\"},\"i\":{\"type\":\"integer\",\"x-mcp-header\":\"I\"},\"b\":{\"type\":"
                "\"boolean\",\"x-mcp-header\":\"B\"}}}"),
            &headers, NULL),
        PARAMETER_HEADERS_SOME);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parameter_headers_write(headers, str_from(cases[i].arguments), put, &out);
        expect_written(&out, cases[i].expected);
    }
    parameter_headers_destroy(headers);
    buffer_finish(&out);
}
END_TEST

Suite *legacy_bridge_suite(void)
{
    Suite *suite = suite_create("legacy_bridge");
    TCase *texts = tcase_create("texts");
    tcase_add_test(texts, capabilities_are_declared_as_each_modern_request_does);
    tcase_add_test(texts, initialize_is_answered_in_a_legacy_version);
    tcase_add_test(texts, results_lose_what_the_legacy_era_has_not);
    tcase_add_test(texts, params_get_the_envelope_and_nothing_of_the_clients_that_means_more_there);
    tcase_add_test(texts, notifications_lose_the_id_of_their_stream);
    tcase_add_test(texts, a_required_input_becomes_a_request);
    tcase_add_test(texts, the_tasks_extension_is_declared_beside_others);
    tcase_add_test(texts, parameter_headers_are_made_of_the_arguments);
    suite_add_tcase(suite, texts);
    return suite;
}
