/* The `initialize` reply. Behaviour 5.2. */
#include "mcp_test.h"

#include "taskgate/json/text.h"
#include "taskgate/mcp/capabilities.h"

#define OURS                                                                                       \
    "\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":"                                           \
    "{\"tools/call\":true,\"tools\":{\"call\":{}}}}"

static void expect_injected(const char *result, const char *expected)
{
    ck_assert(json_check(str_from(result), NULL));
    struct buffer out, again;
    buffer_init(&out);
    struct mcp_capabilities upstream;
    mcp_capabilities_detect(str_from(result), &upstream);
    mcp_capabilities_inject(&out, str_from(result), &upstream);
    ck_assert(json_check(buffer_str(&out), NULL));
    buffer_init(&again); /* twice is once */
    mcp_capabilities_inject(&again, buffer_str(&out), &upstream);
    expect_written(&out, expected);
    expect_written(&again, expected);
}

START_TEST(injection_upstream_has_none)
{
    expect_injected("{\"capabilities\":{}}", "{\"capabilities\":{" OURS "}}");
    expect_injected("{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{"
                    "\"listChanged\":true}},\"serverInfo\":{\"name\":\"s\"}}",
                    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{"
                    "\"listChanged\":true}," OURS "},\"serverInfo\":{\"name\":\"s\"}}");
    expect_injected("{\"protocolVersion\":\"2025-11-25\"}",
                    "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{" OURS "}}");
}
END_TEST

static const struct {
    const char *tasks, *expected;
} with_tasks[] = {
    /* Upstream's members stay, byte for byte and in their places. */
    {"{ \"requests\" : { \"sampling\":{\"createMessage\":{}} } , \"x\" : [1, 2] }",
     "{ \"requests\" : { \"sampling\":{\"createMessage\":{}},\"tools/call\":true,"
     "\"tools\":{\"call\":{}} } , \"x\" : [1, 2],\"list\":{},\"cancel\":{} }"},
    {"{\"list\":{\"a\":1},\"cancel\":{\"b\":2},\"requests\":{\"tools\":{\"call\":{\"c\":3},"
     "\"d\":4}}}",
     "{\"list\":{\"a\":1},\"cancel\":{\"b\":2},\"requests\":{\"tools\":{\"call\":{\"c\":3},"
     "\"d\":4},\"tools/call\":true}}"},
    /* A value that the official clients refuse becomes an object. */
    {"{\"list\":true,\"cancel\":true,\"requests\":{\"tools\":{\"call\":true}}}",
     "{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}},\"tools/call\":true}}"},
    {"{\"list\":null,\"cancel\":false,\"requests\":{\"tools\":true}}",
     "{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}},\"tools/call\":true}}"},
    {"{\"requests\":{\"tools/call\":{}}}",
     "{\"requests\":{\"tools/call\":true,\"tools\":{\"call\":{}}},\"list\":{},\"cancel\":{}}"},
    {"{\"requests\":{\"tools.call\":true}}",
     "{\"requests\":{\"tools.call\":true,\"tools/call\":true,\"tools\":{\"call\":{}}},"
     "\"list\":{},\"cancel\":{}}"},
    {"{\"requests\":true}", "{\"requests\":{\"tools/call\":true,\"tools\":{\"call\":{}}},"
                            "\"list\":{},\"cancel\":{}}"},
    {"true", "{\"list\":{},\"cancel\":{},\"requests\":{\"tools/call\":true,\"tools\":{\"call\":{}}"
             "}}"},
    {"null", "{\"list\":{},\"cancel\":{},\"requests\":{\"tools/call\":true,\"tools\":{\"call\":{}}"
             "}}"},
};

START_TEST(injection_upstream_has_tasks)
{
    struct buffer result, expected;
    buffer_init(&result);
    buffer_init(&expected);
    const char frame[] = "{\"capabilities\" : {\"a\":1.0, \"tasks\": %s ,\"z\":\"\\u00e9\"}}\n";
    buffer_append_format(&result, frame, with_tasks[_i].tasks);
    buffer_append_format(&expected, frame, with_tasks[_i].expected);
    buffer_append_char(&result, '\0');
    buffer_append_char(&expected, '\0');
    expect_injected(result.bytes, expected.bytes);
    buffer_finish(&result);
    buffer_finish(&expected);
}
END_TEST

START_TEST(status_is_advertised_when_upstream_has_it)
{
    expect_injected("{\"capabilities\":{\"notifications\":{\"tasks\":{\"status\":true}}}}",
                    "{\"capabilities\":{\"notifications\":{\"tasks\":{\"status\":true}}," OURS
                    "}}");
}
END_TEST

START_TEST(status_is_not_advertised_when_upstream_has_it_not)
{
    expect_injected("{\"capabilities\":{\"notifications\":{\"x\":{}}}}",
                    "{\"capabilities\":{\"notifications\":{\"x\":{}}," OURS "}}");
    expect_injected("{\"capabilities\":{\"notifications\":{\"tasks\":{\"status\":false,\"y\":1}}}}",
                    "{\"capabilities\":{\"notifications\":{\"tasks\":{\"y\":1}}," OURS "}}");
    expect_injected("{\"capabilities\":{\"notifications\":{\"tasks\":{\"status\":null}}}}",
                    "{\"capabilities\":{\"notifications\":{\"tasks\":{}}," OURS "}}");
}
END_TEST

/* Letters of the detected capabilities: t tasks, s task status, l list, c cancel, r resources. */
static const struct {
    const char *capabilities, *detected;
} rows[] = {
    {"{}", ""},
    {"{\"tasks\":{}}", ""},
    {"{\"tasks\":true}", ""},
    {"{\"tasks\":{\"requests\":{}}}", ""},
    {"{\"tasks\":{\"requests\":{\"tools/call\":true}}}", "t"},
    {"{\"tasks\":{\"requests\":{\"tools/call\":{}}}}", "t"},
    {"{\"tasks\":{\"requests\":{\"tools\\/call\":true}}}", "t"},
    {"{\"tasks\":{\"requests\":{\"tools.call\":true}}}", "t"},
    {"{\"tasks\":{\"requests\":{\"tools\":{\"call\":{}}}}}", "t"},
    {"{\"tasks\":{\"requests\":{\"tools\":{\"call\":true}}}}", "t"},
    {"{\"tasks\":{\"requests\":{\"tools/call\":false}}}", ""},
    {"{\"tasks\":{\"requests\":{\"tools/call\":null,\"tools\":{\"call\":{}}}}}", "t"},
    {"{\"tasks\":{\"requests\":{\"tools\":{}}}}", ""},
    {"{\"tasks\":{\"requests\":{\"tools\":{\"call\":\"yes\"}}}}", ""},
    {"{\"tasks\":{\"requests\":[\"tools/call\"]}}", ""},
    {"{\"tools/call\":true,\"requests\":{\"tools/call\":true}}", ""},
    {"{\"tasks\":{\"list\":{},\"cancel\":{}}}", "lc"},
    {"{\"tasks\":{\"list\":true,\"cancel\":false}}", "l"},
    {"{\"notifications\":{\"tasks\":{\"status\":true}}}", "s"},
    {"{\"notifications\":{\"tasks\":{\"status\":{}}}}", "s"},
    {"{\"notifications\":{\"tasks\":{\"status\":false}}}", ""},
    {"{\"notifications\":{\"tasks\":{}}}", ""},
    {"{\"resources\":{}}", "r"},
    {"{\"resources\":{\"subscribe\":true},\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{"
     "\"tools\":{\"call\":{}}}},\"notifications\":{\"tasks\":{\"status\":true}}}",
     "tslcr"},
    {"[]", ""},
    {"null", ""},
};

START_TEST(detection)
{
    struct buffer result, detected;
    buffer_init(&result);
    buffer_init(&detected);
    buffer_append_format(&result, "{\"capabilities\":%s}", rows[_i].capabilities);
    struct mcp_capabilities found;
    mcp_capabilities_detect(buffer_str(&result), &found);
    buffer_append_format(&detected, "%s%s%s%s%s", found.tasks ? "t" : "",
                         found.task_status ? "s" : "", found.tasks_list ? "l" : "",
                         found.tasks_cancel ? "c" : "", found.resources ? "r" : "");
    expect_str(buffer_str(&detected), rows[_i].detected);
    buffer_finish(&result);
    buffer_finish(&detected);
}
END_TEST

START_TEST(clients_declare_tasks_by_an_object)
{
    ck_assert(mcp_client_declares_tasks(STR("{\"capabilities\":{\"tasks\":{}}}")));
    ck_assert(mcp_client_declares_tasks(STR("{\"capabilities\":{\"tasks\":{\"list\":{}}}}")));
    ck_assert(mcp_client_declares_tasks(STR("{\"capabilities\":{\"tasks\":true}}")));
    ck_assert(!mcp_client_declares_tasks(STR("{\"capabilities\":{\"tasks\":null}}")));
    ck_assert(!mcp_client_declares_tasks(STR("{\"capabilities\":{}}")));
    ck_assert(!mcp_client_declares_tasks(STR("{\"tasks\":{}}")));
    ck_assert(!mcp_client_declares_tasks(STR_EMPTY));
}
END_TEST

/* For any strict JSON, strict JSON with the injection goes out. */
START_TEST(resources_are_offered_once)
{
    static const char *const cases[][2] = {
        {"{\"capabilities\":{\"tools\":{}},\"x\": 1.0}",
         "{\"capabilities\":{\"tools\":{},\"resources\":{}},\"x\": 1.0}"},
        {"{\"capabilities\":{\"resources\":{ \"subscribe\": true }}}",
         "{\"capabilities\":{\"resources\":{ \"subscribe\": true }}}"},
        {"{\"capabilities\":{\"resources\":false}}", "{\"capabilities\":{\"resources\":{}}}"},
        {"{}", "{\"capabilities\":{\"resources\":{}}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out;
        buffer_init(&out);
        mcp_capabilities_offer_resources(&out, str_from(cases[i][0]));
        expect_written(&out, cases[i][1]);
    }
}
END_TEST

START_TEST(mutated_replies_stay_json_and_get_the_injection)
{
    struct chance chance = {7};
    struct buffer result, out;
    buffer_init(&result);
    buffer_init(&out);
    size_t accepted = 0;
    for (size_t round = 0; round < 4000; round++) {
        buffer_clear(&result);
        buffer_append_format(&result, "{\"capabilities\":{\"tasks\": %s}}",
                             with_tasks[round % (sizeof with_tasks / sizeof with_tasks[0])].tasks);
        for (size_t i = chance_below(&chance, 4); i > 0; i--)
            chance_mutate(&chance, &result);
        if (!json_check(buffer_str(&result), NULL))
            continue;
        accepted++;
        struct mcp_capabilities found;
        mcp_capabilities_detect(buffer_str(&result), &found);
        mcp_capabilities_inject(&out, buffer_str(&result), &found);
        ck_assert(json_check(buffer_str(&out), NULL));
        mcp_capabilities_detect(buffer_str(&out), &found);
        ck_assert(found.tasks && found.tasks_list && found.tasks_cancel);
        buffer_clear(&out);
    }
    ck_assert_uint_gt(accepted, 500);
    buffer_finish(&result);
    buffer_finish(&out);
}
END_TEST

Suite *capabilities_suite(void)
{
    Suite *suite = suite_create("capabilities");
    TCase *tests = tcase_create("capabilities");
    tcase_add_test(tests, injection_upstream_has_none);
    tcase_add_loop_test(tests, injection_upstream_has_tasks, 0,
                        (int)(sizeof with_tasks / sizeof with_tasks[0]));
    tcase_add_test(tests, status_is_advertised_when_upstream_has_it);
    tcase_add_test(tests, status_is_not_advertised_when_upstream_has_it_not);
    tcase_add_loop_test(tests, detection, 0, (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(tests, clients_declare_tasks_by_an_object);
    tcase_add_test(tests, resources_are_offered_once);
    tcase_add_test(tests, mutated_replies_stay_json_and_get_the_injection);
    suite_add_tcase(suite, tests);
    return suite;
}
