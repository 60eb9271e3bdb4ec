/* A relay's answers to failures, and the replies that it must read. */
#include "conversation/relay.h"
#include "suites.h"

static const struct {
    enum upstream_result result;
    enum relay_failure failure;
    enum jsonrpc_error error;
} failures[] = {
    {UPSTREAM_CONNECT_FAILED, RELAY_CONNECT_FAILED, JSONRPC_UPSTREAM_FAILED},
    {UPSTREAM_SILENT, RELAY_TIMEOUT, JSONRPC_UPSTREAM_TIMEOUT},
    {UPSTREAM_DONE, RELAY_UNREADABLE, JSONRPC_UPSTREAM_ERROR},
    {UPSTREAM_GONE, RELAY_GONE, JSONRPC_UPSTREAM_FAILED},
};

START_TEST(a_failure_has_the_error_of_its_kind)
{
    enum relay_failure failure = relay_failure_of(failures[_i].result);
    ck_assert_int_eq(failure, failures[_i].failure);
    ck_assert_int_eq(relay_failure_error(failure), failures[_i].error);
}
END_TEST

static bool take(struct call *call, struct str message)
{
    return false;
}

static void rewrite(struct call *call, const struct relay_reply *reply, struct buffer *new_result)
{
}

START_TEST(a_response_that_nobody_changes_is_not_read)
{
    const struct relay_options none = {0}, rewriting = {.rewrite = rewrite},
                               taking = {.take_message = take};
    ck_assert(!relay_rewrites(&none));
    ck_assert(relay_rewrites(&rewriting));
    ck_assert(!relay_may_take(&none, STR("{\"method\":\"ping\"}")));
    ck_assert(relay_may_take(&taking, STR("{\"method\":\"ping\"}")));
    ck_assert(!relay_may_take(&taking, STR("{\"result\":{}}")));
}
END_TEST

TCase *relay_tests(void)
{
    TCase *tests = tcase_create("relay");
    tcase_add_loop_test(tests, a_failure_has_the_error_of_its_kind, 0,
                        sizeof failures / sizeof *failures);
    tcase_add_test(tests, a_response_that_nobody_changes_is_not_read);
    return tests;
}
