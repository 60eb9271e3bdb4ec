/* The filter of a listen, in two parts. */
#include "mcp_test.h"

#include "taskgate/mcp/subscription.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *filter;
    const char *rest; /* the request to the server; NULL: none */
    const char *ids;
    size_t own_count;
    bool wants_tools;
} filters[] = {
    {"{}", NULL, "", 0, false},
    {"{\"toolsListChanged\":true}", "{\"toolsListChanged\":true}", "", 0, true},
    {"{\"toolsListChanged\":false,\"x\":null,\"resourceSubscriptions\":[]}", NULL, "", 0, false},
    {"{\"toolsListChanged\":\"true\"}", "{\"toolsListChanged\":\"true\"}", "", 0, false},
    {"{\"taskIds\":[]}", NULL, "[]", 0, false},
    {"{\"taskIds\":[\"up-1\"]}", "{\"taskIds\":[\"up-1\"]}", "[\"up-1\"]", 0, false},
    {"{\"taskIds\":[\"tg_1\"]}", NULL, "[\"tg_1\"]", 1, false},
    {"{\"taskIds\":[\"\\u0074g_1\"]}", NULL, "[\"\\u0074g_1\"]", 1, false},
    {"{ \"taskIds\" : [\"tg_1\", \"up-1\" ,\"tg_2\"] , \"future\":1}",
     "{ \"taskIds\" : [\"up-1\"] , \"future\":1}", "[\"tg_1\", \"up-1\" ,\"tg_2\"]", 2, false},
    {"{\"promptsListChanged\":true,\"taskIds\":[\"tg_1\"]}", "{\"promptsListChanged\":true}",
     "[\"tg_1\"]", 1, false},
};

START_TEST(the_server_is_asked_for_the_rest)
{
    struct mcp_subscription read;
    struct buffer rest;
    buffer_init(&rest);
    ck_assert_ptr_null(mcp_subscription_read(str_from(filters[_i].filter), &read));
    ck_assert(str_equal(read.task_ids, str_from(filters[_i].ids)));
    ck_assert_uint_eq(read.own_count, filters[_i].own_count);
    ck_assert(read.wants_tools == filters[_i].wants_tools);
    bool asks = mcp_subscription_write_rest(&rest, str_from(filters[_i].filter));
    ck_assert(asks == (filters[_i].rest != NULL));
    ck_assert(str_equal(buffer_str(&rest), str_from(asks ? filters[_i].rest : "")));
    buffer_finish(&rest);
}
END_TEST

START_TEST(a_malformed_filter_is_refused)
{
    static const char *const bad[] = {"{\"taskIds\":{}}", "{\"taskIds\":\"tg_1\"}",
                                      "{\"taskIds\":[1]}", "{\"taskIds\":[\"a\",null]}",
                                      "{\"taskIds\":null}"};
    struct mcp_subscription read;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ck_assert_ptr_nonnull(mcp_subscription_read(str_from(bad[i]), &read));
}
END_TEST

START_TEST(ids_of_the_gateways_own_are_bounded)
{
    for (size_t count = MCP_SUBSCRIPTION_MOST_TASKS; count < MCP_SUBSCRIPTION_MOST_TASKS + 2;
         count++) {
        struct mcp_subscription read;
        struct buffer filter;
        buffer_init(&filter);
        buffer_append_text(&filter, "{\"taskIds\":[\"up-1\"");
        for (size_t i = 0; i < count; i++)
            buffer_append_format(&filter, ",\"tg_%zu\"", i);
        buffer_append_text(&filter, "]}");
        const char *wrong = mcp_subscription_read(buffer_str(&filter), &read);
        ck_assert((wrong != NULL) == (count > MCP_SUBSCRIPTION_MOST_TASKS));
        buffer_finish(&filter);
    }
}
END_TEST

static const struct {
    const char *honoured;
    bool wants_tools;
    const char *own, *whole;
} acknowledgements[] = {
    {"", false, "", "{}"},
    {"[]", true, "", "{\"toolsListChanged\":true}"},
    {"{}", true, "\"tg_1\"", "{\"toolsListChanged\":true,\"taskIds\":[\"tg_1\"]}"},
    {"{\"toolsListChanged\":false,\"x\":1}", true, "", "{\"toolsListChanged\":true,\"x\":1}"},
    {"{\"taskIds\":[\"up-1\"],\"x\":1}", false, "\"tg_1\",\"tg_2\"",
     "{\"taskIds\":[\"up-1\",\"tg_1\",\"tg_2\"],\"x\":1}"},
    {"{\"taskIds\":[\"up-1\"]}", false, "", "{\"taskIds\":[\"up-1\"]}"},
    {"{\"taskIds\":[\"tg_9\",\"up-1\"]}", false, "", "{\"taskIds\":[\"up-1\"]}"},
    {"{\"taskIds\":[\"tg_9\"]}", false, "\"tg_1\"", "{\"taskIds\":[\"tg_1\"]}"},
    {"{\"taskIds\":[\"up-1\",\"tg_9\"]}", false, "", "{\"taskIds\":[\"up-1\"]}"},
};

START_TEST(both_acknowledgements_are_merged)
{
    struct buffer whole;
    buffer_init(&whole);
    mcp_subscription_write_honoured(&whole, str_from(acknowledgements[_i].honoured),
                                    acknowledgements[_i].wants_tools,
                                    str_from(acknowledgements[_i].own));
    ck_assert_msg(str_equal(buffer_str(&whole), str_from(acknowledgements[_i].whole)), "%.*s",
                  STR_ARGS(buffer_str(&whole)));
    buffer_finish(&whole);
}
END_TEST

Suite *subscription_suite(void)
{
    Suite *suite = suite_create("subscription");
    TCase *tcase = tcase_create("filter");
    tcase_add_loop_test(tcase, the_server_is_asked_for_the_rest, 0, COUNT_OF(filters));
    tcase_add_test(tcase, a_malformed_filter_is_refused);
    tcase_add_test(tcase, ids_of_the_gateways_own_are_bounded);
    tcase_add_loop_test(tcase, both_acknowledgements_are_merged, 0, COUNT_OF(acknowledgements));
    suite_add_tcase(suite, tcase);
    return suite;
}
