/* The messages that the gateway itself sends to servers. */
#include <string.h>

#include "mcp_client/rpc_call.h"
#include "suites.h"
#include "taskgate/json/text.h"

static void expect_request(struct str params, const char *tail)
{
    struct buffer body, id, expected;
    buffer_init(&body);
    buffer_init(&id);
    buffer_init(&expected);
    rpc_call_write_request(&body, &id, "tools/list", params);
    buffer_append_format(&expected, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"method\":\"tools/list\"%s}",
                         STR_ARGS(buffer_str(&id)), tail);
    ck_assert_msg(str_equal(buffer_str(&body), buffer_str(&expected)), "%.*s",
                  STR_ARGS(buffer_str(&body)));
    buffer_finish(&expected);
    buffer_finish(&id);
    buffer_finish(&body);
}

START_TEST(a_request_has_the_id_that_it_tells)
{
    expect_request(STR_EMPTY, "");
    expect_request(STR("{\"cursor\":\"a\"}"), ",\"params\":{\"cursor\":\"a\"}");
}
END_TEST

START_TEST(no_two_requests_have_one_id)
{
    struct buffer bodies, ids[2];
    buffer_init(&bodies);
    for (size_t i = 0; i < 2; i++) {
        buffer_init(&ids[i]);
        rpc_call_write_request(&bodies, &ids[i], "ping", STR_EMPTY);
        ck_assert(str_starts_with(buffer_str(&ids[i]), STR("\"tg:")));
    }
    ck_assert(!str_equal(buffer_str(&ids[0]), buffer_str(&ids[1])));
    buffer_finish(&ids[1]);
    buffer_finish(&ids[0]);
    buffer_finish(&bodies);
}
END_TEST

TCase *rpc_call_tests(void)
{
    TCase *tests = tcase_create("rpc_call");
    tcase_add_test(tests, a_request_has_the_id_that_it_tells);
    tcase_add_test(tests, no_two_requests_have_one_id);
    return tests;
}
