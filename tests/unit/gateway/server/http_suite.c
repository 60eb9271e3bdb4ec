/* The messages that the gateway itself sends to servers. */
#include <string.h>

#include "server/http.h"
#include "suites.h"
#include "taskgate/json/text.h"

static void expect_request(struct str params, const char *tail)
{
    struct buffer body, id, expected;
    buffer_init(&body);
    buffer_init(&id);
    buffer_init(&expected);
    exchange_write_request(&body, &id, "tools/list", params);
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
        exchange_write_request(&bodies, &ids[i], "ping", STR_EMPTY);
        ck_assert(str_starts_with(buffer_str(&ids[i]), STR("\"tg:")));
    }
    ck_assert(!str_equal(buffer_str(&ids[0]), buffer_str(&ids[1])));
    buffer_finish(&ids[1]);
    buffer_finish(&ids[0]);
    buffer_finish(&bodies);
}
END_TEST

START_TEST(a_session_is_forgotten_by_a_whole_404_alone)
{
    static const struct {
        enum upstream_result result;
        int status;
        const char *session, *message;
        bool forgets;
    } cases[] = {
        {UPSTREAM_DONE, 404, "s", "", true},
        {UPSTREAM_DONE, 404, "s", "{\"id\":null,\"error\":{}}", true},
        {UPSTREAM_DONE, 404, "s", "{\"id\":\"tg:1\",\"error\":{}}", false},
        {UPSTREAM_DONE, 404, NULL, "", false},
        {UPSTREAM_DONE, 400, "s", "", false},
        {UPSTREAM_GONE, 404, "s", "", false},
        {UPSTREAM_SILENT, 404, "s", "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct exchange_reply reply = {.result = cases[i].result,
                                             .status = cases[i].status,
                                             .message = str_from(cases[i].message)};
        struct headers request;
        headers_init(&request, true);
        if (cases[i].session)
            headers_add(&request, STR("mcp-session-id"), str_from(cases[i].session));
        ck_assert_msg(exchange_reply_forgets_session(&reply, &request) == cases[i].forgets,
                      "case %zu", i);
        headers_finish(&request);
    }
}
END_TEST

TCase *http_tests(void)
{
    TCase *tests = tcase_create("http");
    tcase_add_test(tests, a_request_has_the_id_that_it_tells);
    tcase_add_test(tests, no_two_requests_have_one_id);
    tcase_add_test(tests, a_session_is_forgotten_by_a_whole_404_alone);
    return tests;
}
