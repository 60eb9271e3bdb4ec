/* The messages of a modern client and of a legacy server, in the words of the other. */
#include "mcp_test.h"
#include "taskgate/mcp/legacy_server.h"
#include "taskgate/mcp/question.h"

#define KEY "\"io.modelcontextprotocol/"

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
    legacy_server_write_request(&out, &envelope, STR("\"tg:1\""));
    expect_written(&out, requests[_i].written);
    envelope_finish(&envelope);
}
END_TEST

START_TEST(initialize_has_what_the_client_declares_but_tasks)
{
    struct buffer out = {0};
    legacy_server_write_initialize(
        &out, STR("{\"elicitation\":{},\"tasks\":{},\"extensions\":{" KEY "tasks\":{},\"x\":{}}}"),
        STR("{\"name\":\"c\",\"version\":\"1\"}"));
    expect_written(&out, "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{},"
                         "\"extensions\":{\"x\":{}}},\"clientInfo\":{\"name\":\"c\","
                         "\"version\":\"1\"}}");
    legacy_server_write_initialize(&out, STR("{\"extensions\":{" KEY "tasks\":{}}}"), STR_EMPTY);
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
    legacy_server_write_discover(&out, str_from(initialized), false);
    expect_written(&out,
                   "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"
                   "\"capabilities\":{\"tools\":{\"listChanged\":true},\"resources\":{},"
                   "\"extensions\":{" KEY "tasks\":{}}},\"instructions\":\"Be kind.\",\"ttlMs\":0,"
                   "\"cacheScope\":\"private\",\"_meta\":{" KEY "serverInfo\":{\"name\":\"s\"}}}");
    legacy_server_write_discover(
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
    ck_assert(legacy_server_write_result(&out, str_from(results[_i].result),
                                         results[_i].is_cacheable, str_from(results[_i].info)));
    expect_written(&out, results[_i].written);
    ck_assert(!legacy_server_write_result(&out, STR("[]"), false, STR_EMPTY));
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
    legacy_server_write_error(&out, str_from(errors[_i].error), errors[_i].is_read);
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
    {"{\"elicitation\":{\"url\":{}}}", false, true, false, false},
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
    legacy_server_write_question(
        &out, STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{"
                  "\"mode\":\"url\",\"elicitationId\":\"e\",\"url\":\"a:b\",\"task\":{},"
                  "\"_meta\":{" KEY "related-task\":{}}}}"));
    expect_written(&out, "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"url\","
                         "\"url\":\"a:b\"}}");
    legacy_server_write_question(&out, STR("{\"id\":1,\"method\":\"roots/list\"}"));
    expect_written(&out, "{\"method\":\"roots/list\"}");
    ck_assert(legacy_server_write_urls(
        &out, STR("{\"code\":-32042,\"data\":{\"elicitations\":[{\"url\":\"a:b\"},{\"mode\":"
                  "\"url\",\"elicitationId\":\"e\"}]}}")));
    expect_written(&out,
                   "{\"r0.1\":{\"method\":\"elicitation/create\",\"params\":{\"url\":\"a:b\"}},"
                   "\"r0.2\":{\"method\":\"elicitation/create\",\"params\":{"
                   "\"mode\":\"url\"}}}");
    ck_assert(!legacy_server_write_urls(&out, STR("{\"code\":-32042}")));
    ck_assert(
        !legacy_server_write_urls(&out, STR("{\"code\":-1,\"data\":{\"elicitations\":[1]}}")));
}
END_TEST

START_TEST(a_notification_loses_the_servers_reserved_keys)
{
    struct buffer out = {0};
    legacy_server_write_notification(&out,
                                     STR("{\"method\":\"m\",\"params\":{\"a\":1,\"_meta\":{"
                                         "\"io.modelcontextprotocol\\/subscriptionId\":1}}}"));
    expect_written(&out, "{\"method\":\"m\",\"params\":{\"a\":1}}");
    legacy_server_write_notification(&out, STR("{\"method\":\"m\"}"));
    expect_written(&out, "{\"method\":\"m\"}");
    buffer_finish(&out);
}
END_TEST

START_TEST(log_levels_have_ranks)
{
    ck_assert_int_eq(legacy_server_level(STR("\"debug\"")), 0);
    ck_assert_int_eq(legacy_server_level(STR("\"emergency\"")), 7);
    ck_assert_int_eq(legacy_server_level(STR("\"loud\"")), -1);
    ck_assert_int_eq(legacy_server_level(STR_EMPTY), -1);
}
END_TEST

Suite *legacy_server_suite(void)
{
    Suite *suite = suite_create("legacy_server");
    TCase *tests = tcase_create("legacy_server");
    tcase_add_loop_test(tests, a_request_goes_up_without_what_the_era_does_not_have, 0,
                        (int)(sizeof requests / sizeof *requests));
    tcase_add_test(tests, initialize_has_what_the_client_declares_but_tasks);
    tcase_add_test(tests, discover_is_made_of_the_result_of_initialize);
    tcase_add_loop_test(tests, a_result_gets_the_modern_form, 0,
                        (int)(sizeof results / sizeof *results));
    tcase_add_loop_test(tests, an_error_has_a_code_of_the_modern_era, 0,
                        (int)(sizeof errors / sizeof *errors));
    tcase_add_loop_test(tests, a_client_is_asked_what_it_declares, 0,
                        (int)(sizeof clients / sizeof *clients));
    tcase_add_test(tests, a_question_is_shown_without_what_the_client_cannot_use);
    tcase_add_test(tests, a_notification_loses_the_servers_reserved_keys);
    tcase_add_test(tests, log_levels_have_ranks);
    suite_add_tcase(suite, tests);
    return suite;
}
