/* Texts in the words of one era, made of what was said in the other. */
#include <stdlib.h>

#include "mcp_test.h"
#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"
#include "taskgate/mcp/era.h"
#include "taskgate/mcp/legacy_text.h"
#include "taskgate/mcp/modern_text.h"
#include "taskgate/mcp/parameter_headers.h"
#include "taskgate/mcp/question.h"

#define P "io.modelcontextprotocol/"
#define KEY "\"" P

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
        modern_text_write_capabilities(&out, str_from(cases[i].declared));
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
        legacy_text_write_initialized(
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
        legacy_text_write_result(&out, str_from(cases[i].result));
        assert_text(&out, cases[i].expected);
    }
    legacy_text_write_call_result(&out, STR("{\"structuredContent\":{\"a\":1}}"), false);
    assert_text(&out, "{\"structuredContent\":{\"a\":1}}");
    legacy_text_write_call_result(&out, STR("{\"structuredContent\":{\"a\":1}}"), true);
    assert_text(&out, "{\"structuredContent\":{\"result\":{\"a\":1}}}");
    legacy_text_write_call_result(&out, STR("{\"structuredContent\":null}"), false);
    assert_text(&out, "{\"structuredContent\":{\"result\":null}}");
    buffer_finish(&out);
}
END_TEST

START_TEST(params_get_the_envelope_and_nothing_of_the_clients_that_means_more_there)
{
    const struct modern_envelope envelope = {STR("{\"sampling\":{}}"), STR("{\"name\":\"c\"}"),
                                             STR("\"info\"")};
    const struct modern_envelope bare = {.capabilities = STR("{}")};
    struct buffer out = {0};
    modern_text_write_params(
        &out,
        STR("{\"name\":\"t\",\"task\":{},\"inputResponses\":{},\"requestState\":\"s\",\"_meta\":{"
            "\"progressToken\":1,\"" P "logLevel\":\"debug\",\"" P "related-task\":{}}}"),
        &envelope);
    assert_text(&out, "{\"name\":\"t\",\"_meta\":{\"progressToken\":1,\"" P
                      "protocolVersion\":\"2026-07-28\",\"" P
                      "clientCapabilities\":{\"sampling\":{}},\"" P
                      "clientInfo\":{\"name\":\"c\"},\"" P "logLevel\":\"info\"}}");
    modern_text_write_params(&out, STR_EMPTY, &bare);
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
        {"{\"method\":\"m\",\"params\":{\"_meta\":{\"" P "related-task\":{},\"" P "x\":1}}}",
         "{\"method\":\"m\"}"},
        {"{\"method\":\"m\",\"params\":{}}", "{\"method\":\"m\",\"params\":{}}"},
        {"{\"method\":\"m\",\"params\":{\"uri\":\"u\",\"_meta\":{\"" P "subscriptionId\":1}}}",
         "{\"method\":\"m\",\"params\":{\"uri\":\"u\"}}"},
        {"{\"method\":\"m\",\"params\":{\"_meta\":{\"a\":1,\"" P "subscriptionId\":1}}}",
         "{\"method\":\"m\",\"params\":{\"_meta\":{\"a\":1}}}"},
    };
    struct buffer out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mcp_write_bare_notification(&out, str_from(cases[i].message));
        assert_text(&out, cases[i].expected);
    }
    buffer_finish(&out);
}
END_TEST

START_TEST(a_required_input_becomes_a_request)
{
    struct buffer out = {0};
    legacy_text_write_question(&out, STR("tg:1"), STR("{\"method\":\"roots/list\"}"));
    assert_text(&out, "{\"jsonrpc\":\"2.0\",\"id\":\"tg:1\",\"method\":\"roots/list\","
                      "\"params\":{}}");
    legacy_text_write_question(
        &out, STR("k"),
        STR("{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\",\"url\":\"a:b\"}}"));
    ck_assert(json_type(json_path(buffer_str(&out), "params", "elicitationId")) == JSON_STRING);
    buffer_finish(&out);
}
END_TEST

START_TEST(the_tasks_extension_is_declared_beside_others)
{
    struct buffer out = {0};
    modern_text_write_with_tasks(&out, STR("{\"roots\":{},\"extensions\":{\"a/b\":{}}}"));
    assert_text(&out, "{\"roots\":{},\"extensions\":{\"a/b\":{},\"" P "tasks\":{}}}");
    modern_text_write_with_tasks(&out, STR("{}"));
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

static const struct {
    const char *body, *written;
} requests[] = {
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{" KEY
     "protocolVersion\":\"2026-07-28\"}}}",
     "{\"jsonrpc\":\"2.0\",\"id\":\"tg:1\",\"method\":\"tools/list\",\"params\":{}}"},
    {"{\"id\":\"x\",\"params\":{\"requestState\":\"s\",\"name\":\"re\\u0061d\",\"task\":{},"
     "\"arguments\":{\"n\": 1e2},\"inputResponses\":{},\"_meta\":{\"progressToken\":1," KEY
     "clientCapabilities\":{},\"traceparent\":\"t\"}},\"method\":\"tools/call\","
     "\"jsonrpc\":\"2.0\"}",
     "{\"jsonrpc\":\"2.0\",\"id\":\"tg:1\",\"method\":\"tools/call\",\"params\":{"
     "\"name\":\"re\\u0061d\",\"arguments\":{\"n\": 1e2},\"_meta\":{\"progressToken\":1,"
     "\"traceparent\":\"t\"}}}"},
};

START_TEST(a_request_goes_up_without_what_the_era_does_not_have)
{
    struct envelope envelope;
    struct buffer out = {0};
    ck_assert(envelope_read(&envelope, str_from(requests[_i].body), NULL) == ENVELOPE_OK);
    legacy_text_write_request(&out, &envelope, STR("\"tg:1\""));
    expect_written(&out, requests[_i].written);
    envelope_finish(&envelope);
}
END_TEST

START_TEST(initialize_has_what_the_client_declares_but_tasks)
{
    struct buffer out = {0};
    legacy_text_write_initialize(
        &out, STR("{\"elicitation\":{},\"tasks\":{},\"extensions\":{" KEY "tasks\":{},\"x\":{}}}"),
        STR("{\"name\":\"c\",\"version\":\"1\"}"));
    expect_written(&out, "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{},"
                         "\"extensions\":{\"x\":{}}},\"clientInfo\":{\"name\":\"c\","
                         "\"version\":\"1\"}}");
    legacy_text_write_initialize(&out, STR("{\"extensions\":{" KEY "tasks\":{}}}"), STR_EMPTY);
    expect_written(&out, "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
                         "\"clientInfo\":{\"name\":\"unnamed\",\"version\":\"0\"}}");
}
END_TEST

START_TEST(discover_is_made_of_the_result_of_initialize)
{
    static const char initialized[] =
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{\"listChanged\":true},"
        "\"resources\":{\"subscribe\":true,\"listChanged\":true},\"tasks\":{}},"
        "\"instructions\":\"Be kind.\",\"serverInfo\":{\"name\":\"s\"}}";
    struct buffer out = {0};
    modern_text_write_discover(&out, str_from(initialized), false);
    expect_written(&out,
                   "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                   "\"capabilities\":{\"tools\":{\"listChanged\":true},\"resources\":{},"
                   "\"extensions\":{" KEY "tasks\":{}}},\"instructions\":\"Be kind.\",\"ttlMs\":0,"
                   "\"cacheScope\":\"private\",\"_meta\":{" KEY "serverInfo\":{\"name\":\"s\"}}}");
    modern_text_write_discover(
        &out, STR("{\"capabilities\":{\"resources\":{\"subscribe\":true},\"tools\":{\"x\":1}}}"),
        true);
    expect_written(&out, "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                         "\"capabilities\":{\"resources\":{\"subscribe\":true},"
                         "\"tools\":{\"x\":1,\"listChanged\":true},\"extensions\":{" KEY
                         "tasks\":{}}},\"ttlMs\":0,\"cacheScope\":\"private\"}");
}
END_TEST

static const struct {
    const char *result, *info, *written;
    bool is_cacheable;
} results[] = {
    {"{}", "", "{\"resultType\":\"complete\"}", false},
    {"{}", "{}", "{\"resultType\":\"complete\",\"_meta\":{" KEY "serverInfo\":{}}}", false},
    {"{\"content\":[ ],\"resultType\":\"task\"}", "",
     "{\"content\":[ ],\"resultType\":\"complete\"}", false},
    {"{\"tools\":[],\"ttlMs\":9,\"cacheScope\":\"public\"}", "",
     "{\"tools\":[],\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\"}", true},
    {"{\"_meta\":{\"a\":1," KEY "serverInfo\":0}}", "{\"name\":\"s\"}",
     "{\"resultType\":\"complete\",\"_meta\":{\"a\":1," KEY "serverInfo\":{\"name\":\"s\"}}}",
     false},
    {"{\"_meta\":{\"a\":1}}", "", "{\"resultType\":\"complete\",\"_meta\":{\"a\":1}}", false},
};

START_TEST(a_result_gets_the_modern_form)
{
    struct buffer out = {0};
    ck_assert(modern_text_write_result(&out, str_from(results[_i].result), results[_i].is_cacheable,
                                       str_from(results[_i].info)));
    expect_written(&out, results[_i].written);
    ck_assert(!modern_text_write_result(&out, STR("[]"), false, STR_EMPTY));
    ck_assert_uint_eq(out.length, 0);
}
END_TEST

static const struct {
    const char *error, *written;
    bool is_read;
} errors[] = {
    {"{\"code\":-32602,\"message\":\"m\",\"data\":1}",
     "{\"code\":-32602,\"message\":\"m\",\"data\":1}", false},
    {"{\"code\":-32002,\"message\":\"m\"}", "{\"code\":-32602,\"message\":\"m\"}", true},
    {"{\"code\":-32002,\"message\":\"m\"}",
     "{\"code\":-32603,\"message\":\"m\",\"data\":{\"original\":{\"code\":-32002,"
     "\"message\":\"m\"}}}",
     false},
    {"{\"code\":-32099}",
     "{\"code\":-32603,\"message\":\"Internal error\",\"data\":{\"original\":{\"code\":-32099}}}",
     false},
    {"{\"code\":-32019,\"message\":\"m\"}", "{\"code\":-32019,\"message\":\"m\"}", false},
    {"{\"code\":-32100,\"message\":\"m\"}", "{\"code\":-32100,\"message\":\"m\"}", false},
    {"{\"code\":-32042,\"message\":\"m\",\"data\":{\"elicitations\":[{\"url\":\"a:b\"}]}}",
     "{\"code\":-32602,\"message\":\"The call requires that these URLs are opened: a:b\"}", false},
};

START_TEST(an_error_has_a_code_of_the_modern_era)
{
    struct buffer out = {0};
    modern_text_write_error(&out, str_from(errors[_i].error), errors[_i].is_read);
    expect_written(&out, errors[_i].written);
}
END_TEST

static const struct {
    const char *message;
    enum mcp_question question;
} messages[] = {
    {"{\"method\":\"elicitation/create\",\"params\":{}}", MCP_QUESTION_FORM},
    {"{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\"}}", MCP_QUESTION_URL},
    {"{\"method\":\"sampling/createMessage\"}", MCP_QUESTION_SAMPLING},
    {"{\"method\":\"roots/list\"}", MCP_QUESTION_ROOTS},
    {"{\"method\":\"ping\"}", MCP_QUESTION_NONE},
};

static const struct {
    const char *capabilities;
    bool form, url, sampling, roots;
} clients[] = {
    {"{}", false, false, false, false},
    {"", false, false, false, false},
    {"{\"elicitation\":{}}", true, false, false, false},
    {"{\"elicitation\":{\"vendor\":{}}}", true, false, false, false},
    {"{\"elicitation\":{\"vendor\":{},\"form\":1}}", true, false, false, false},
    {"{\"elicitation\":{\"url\":{}}}", false, true, false, false},
    {"{\"elicitation\":{\"vendor\":{},\"url\":{}}}", false, true, false, false},
    {"{\"elicitation\":{\"form\":{},\"url\":{}}}", true, true, false, false},
    {"{\"elicitation\":true,\"sampling\":{},\"roots\":{}}", false, false, true, true},
};

START_TEST(a_client_is_asked_what_it_declares)
{
    struct str capabilities = str_from(clients[_i].capabilities);
    const bool expected[] = {clients[_i].form, clients[_i].url, clients[_i].sampling,
                             clients[_i].roots, false};
    bool any = false;
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        ck_assert_int_eq(mcp_question_of(str_from(messages[i].message)), messages[i].question);
        ck_assert_int_eq(mcp_may_ask(capabilities, messages[i].question), expected[i]);
        any |= expected[i];
    }
    ck_assert_int_eq(mcp_may_ask_any(capabilities), any);
}
END_TEST

START_TEST(a_question_is_shown_without_what_the_client_cannot_use)
{
    struct buffer out = {0};
    modern_text_write_question(
        &out, STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{"
                  "\"mode\":\"url\",\"elicitationId\":\"e\",\"url\":\"a:b\",\"task\":{},"
                  "\"_meta\":{" KEY "related-task\":{}}}}"));
    expect_written(&out, "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\","
                         "\"url\":\"a:b\"}}");
    modern_text_write_question(&out, STR("{\"id\":1,\"method\":\"roots/list\",\"params\":{"
                                         "\"task\":{},\"_meta\":{" KEY "related-task\":{}}}}"));
    expect_written(&out, "{\"method\":\"roots/list\",\"params\":{}}");
    modern_text_write_question(&out, STR("{\"id\":1,\"method\":\"roots/list\"}"));
    expect_written(&out, "{\"method\":\"roots/list\"}");
    ck_assert(modern_text_write_urls(
        &out, STR("{\"code\":-32042,\"data\":{\"elicitations\":[{\"url\":\"a:b\"},{\"mode\":"
                  "\"url\",\"elicitationId\":\"e\"}]}}")));
    expect_written(&out,
                   "{\"r0.1\":{\"method\":\"elicitation/create\",\"params\":{\"url\":\"a:b\"}},"
                   "\"r0.2\":{\"method\":\"elicitation/create\",\"params\":{"
                   "\"mode\":\"url\"}}}");
    ck_assert(!modern_text_write_urls(&out, STR("{\"code\":-32042}")));
    ck_assert(!modern_text_write_urls(&out, STR("{\"code\":-1,\"data\":{\"elicitations\":[1]}}")));
}
END_TEST

START_TEST(a_notification_loses_the_servers_reserved_keys)
{
    struct buffer out = {0};
    mcp_write_bare_notification(&out, STR("{\"method\":\"m\",\"params\":{\"a\":1,\"_meta\":{"
                                          "\"io.modelcontextprotocol\\/subscriptionId\":1}}}"));
    expect_written(&out, "{\"method\":\"m\",\"params\":{\"a\":1}}");
    mcp_write_bare_notification(&out, STR("{\"method\":\"m\"}"));
    expect_written(&out, "{\"method\":\"m\"}");
    buffer_finish(&out);
}
END_TEST

START_TEST(log_levels_have_ranks)
{
    ck_assert_int_eq(mcp_log_level(STR("\"debug\"")), 0);
    ck_assert_int_eq(mcp_log_level(STR("\"emergency\"")), 7);
    ck_assert_int_eq(mcp_log_level(STR("\"loud\"")), -1);
    ck_assert_int_eq(mcp_log_level(STR_EMPTY), -1);
}
END_TEST

Suite *texts_suite(void)
{
    Suite *suite = suite_create("texts");
    TCase *texts = tcase_create("texts");
    tcase_add_test(texts, capabilities_are_declared_as_each_modern_request_does);
    tcase_add_test(texts, initialize_is_answered_in_a_legacy_version);
    tcase_add_test(texts, results_lose_what_the_legacy_era_has_not);
    tcase_add_test(texts, params_get_the_envelope_and_nothing_of_the_clients_that_means_more_there);
    tcase_add_test(texts, notifications_lose_the_id_of_their_stream);
    tcase_add_test(texts, a_required_input_becomes_a_request);
    tcase_add_test(texts, the_tasks_extension_is_declared_beside_others);
    tcase_add_test(texts, parameter_headers_are_made_of_the_arguments);
    tcase_add_loop_test(texts, a_request_goes_up_without_what_the_era_does_not_have, 0,
                        (int)(sizeof requests / sizeof *requests));
    tcase_add_test(texts, initialize_has_what_the_client_declares_but_tasks);
    tcase_add_test(texts, discover_is_made_of_the_result_of_initialize);
    tcase_add_loop_test(texts, a_result_gets_the_modern_form, 0,
                        (int)(sizeof results / sizeof *results));
    tcase_add_loop_test(texts, an_error_has_a_code_of_the_modern_era, 0,
                        (int)(sizeof errors / sizeof *errors));
    tcase_add_loop_test(texts, a_client_is_asked_what_it_declares, 0,
                        (int)(sizeof clients / sizeof *clients));
    tcase_add_test(texts, a_question_is_shown_without_what_the_client_cannot_use);
    tcase_add_test(texts, a_notification_loses_the_servers_reserved_keys);
    tcase_add_test(texts, log_levels_have_ranks);
    suite_add_tcase(suite, texts);
    return suite;
}
