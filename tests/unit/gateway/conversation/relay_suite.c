/* A relay's answers to failures, and the replies that it must read. */
#include "conversation/relay.h"
#include "suites.h"

static const struct {
    enum upstream_result result;
    enum lost_reason reason;
    enum jsonrpc_error error;
} failures[] = {
    {UPSTREAM_CONNECT_FAILED, LOST_CONNECT, JSONRPC_UPSTREAM_FAILED},
    {UPSTREAM_SILENT, LOST_TIMEOUT, JSONRPC_UPSTREAM_TIMEOUT},
    {UPSTREAM_DONE, LOST_UNREADABLE, JSONRPC_UPSTREAM_ERROR},
    {UPSTREAM_GONE, LOST_GONE, JSONRPC_UPSTREAM_FAILED},
};

START_TEST(a_failure_has_the_error_of_its_kind)
{
    enum lost_reason reason = lost_reason_of(failures[_i].result);
    ck_assert_int_eq(reason, failures[_i].reason);
    ck_assert_int_eq(relay_failure_error(reason), failures[_i].error);
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
    const struct looks none = {0}, rewriting = {.rewrite = rewrite},
                       taking = {.take_message = take},
                       taking_all = {.take_message = take, .takes_all = true};
    const struct call legacy = {.dialect = &dialect_legacy}, modern = {.dialect = &dialect_modern};
    struct str ping = STR("{\"method\":\"ping\"}"), result = STR("{\"result\":{}}");
    ck_assert(!looks_read(&none));
    ck_assert(looks_read(&rewriting));
    ck_assert(!looks_may_take(&none, &legacy, ping));
    ck_assert(looks_may_take(&taking, &legacy, ping));
    ck_assert(!looks_may_take(&taking, &legacy, result));
    ck_assert(!looks_may_take(&taking, &modern, ping));
    ck_assert(looks_may_take(&taking_all, &modern, result));
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
