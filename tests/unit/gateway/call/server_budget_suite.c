/* How many requests of a server are answered. */
#include "call/call.h"

#include "suites.h"

static int64_t take_all(struct server_budget *budget, enum server_request kind, int64_t now_ms)
{
    int64_t count = 0;
    while (count <= SERVER_PING_BURST && server_budget_take(budget, kind, now_ms))
        count++;
    return count;
}

START_TEST(a_burst_is_answered_and_then_so_many_a_second)
{
    struct server_budget budget = {0};
    ck_assert_int_eq(take_all(&budget, SERVER_REQUEST, 5000), SERVER_REQUEST_BURST);
    ck_assert_int_eq(take_all(&budget, SERVER_PING, 5000), SERVER_PING_BURST);
    ck_assert(!server_budget_take(&budget, SERVER_REQUEST, 5099));
    ck_assert(server_budget_take(&budget, SERVER_REQUEST, 5100));
    ck_assert(!server_budget_take(&budget, SERVER_REQUEST, 5100));
    ck_assert_int_eq(take_all(&budget, SERVER_REQUEST, 6100), SERVER_REQUESTS_PER_SECOND);
    ck_assert_int_eq(take_all(&budget, SERVER_REQUEST, 6150), 0);
    ck_assert_int_eq(take_all(&budget, SERVER_REQUEST, 6200), 1);
}
END_TEST

START_TEST(a_server_that_asks_now_and_then_is_always_answered)
{
    struct server_budget budget = {0};
    for (int64_t i = 0; i < 10000; i++)
        ck_assert(server_budget_take(&budget, SERVER_REQUEST, i * 100));
    ck_assert_int_eq(take_all(&budget, SERVER_REQUEST, 2000000), SERVER_REQUEST_BURST);
}
END_TEST

TCase *server_budget_tests(void)
{
    TCase *tests = tcase_create("server_budget");
    tcase_add_test(tests, a_burst_is_answered_and_then_so_many_a_second);
    tcase_add_test(tests, a_server_that_asks_now_and_then_is_always_answered);
    return tests;
}
