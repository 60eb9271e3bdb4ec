/* The executed bytes: the client's own but for `task` and the id. */
#include <string.h>

#include "json_test.h"
#include "taskgate/core/buffer.h"
#include "taskgate/json/envelope.h"

#define HEAD "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":"
#define EXECUTED "{\"jsonrpc\":\"2.0\",\"id\":\"tg:1\",\"method\":\"m\",\"params\":"

static const struct {
    const char *body, *executed;
} cases[] = {
    /* The task first, in the middle, last, alone, absent. */
    {HEAD "{\"task\":{\"ttl\":1},\"name\":\"x\"}}", EXECUTED "{\"name\":\"x\"}}"},
    {HEAD "{\"name\":\"x\",\"task\":{},\"uri\":1}}", EXECUTED "{\"name\":\"x\",\"uri\":1}}"},
    {HEAD "{\"name\":\"x\",\"task\":{}}}", EXECUTED "{\"name\":\"x\"}}"},
    {HEAD "{\"task\":{}}}", EXECUTED "{}}"},
    {HEAD "{\"name\":\"x\"}}", EXECUTED "{\"name\":\"x\"}}"},
    /* White space beside the task goes with it; other white space stays. */
    {HEAD "{ \"task\" : {} , \"name\" : \"x\" } }", EXECUTED "{ \"name\" : \"x\" } }"},
    {HEAD "{ \"a\": 1 , \"task\": {} , \"b\": 2 }}", EXECUTED "{ \"a\": 1 , \"b\": 2 }}"},
    {HEAD "{\n  \"name\": \"x\",\n  \"task\": {}\n}}", EXECUTED "{\n  \"name\": \"x\"\n}}"},
    {HEAD "{ \"a\":1 , \"task\":{} }}", EXECUTED "{ \"a\":1 }}"},
    {HEAD "{\t\"task\":{}\n}}", EXECUTED "{\n}}"},
    /* Nothing inside strings is taken for structure, and only params' own task goes. */
    {HEAD "{\"a\":\",\",\"task\":{},\"b\":\"\\\"task\\\":{}\"}}",
     EXECUTED "{\"a\":\",\",\"b\":\"\\\"task\\\":{}\"}}"},
    {HEAD "{\"arguments\":{\"task\":{}},\"task\":{\"ttl\":\"}\"}}}",
     EXECUTED "{\"arguments\":{\"task\":{}}}}"},
    {HEAD "{\"a\":1,\"t\\u0061sk\":7}}", EXECUTED "{\"a\":1}}"},
    {HEAD "{\"arguments\":{\"id\":1},\"task\":{}}}", EXECUTED "{\"arguments\":{\"id\":1}}}"},
    /* The id behind params, and of another type. */
    {" {\"method\":\"m\",\"params\":{\"task\":{},\"a\":1},\"jsonrpc\":\"2.0\", \"id\" : \"c\" }\n",
     " {\"method\":\"m\",\"params\":{\"a\":1},\"jsonrpc\":\"2.0\", \"id\" : \"tg:1\" }\n"},
    {"{\"id\":-5,\"params\":{\"a\":1,\"task\":{}},\"jsonrpc\":\"2.0\",\"method\":\"m\"}",
     "{\"id\":\"tg:1\",\"params\":{\"a\":1},\"jsonrpc\":\"2.0\",\"method\":\"m\"}"},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1}",
     "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":\"tg:1\"}"},
    /* A notification has no id to replace. */
    {"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{\"task\":{}}}",
     "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{}}"},
};

START_TEST(executed_bytes_are_the_clients_own)
{
    struct envelope envelope, again;
    struct buffer out;
    buffer_init(&out);
    ck_assert_int_eq(envelope_read(&envelope, str_from(cases[_i].body), NULL), ENVELOPE_OK);
    envelope_write_executable(&envelope, STR("tg:1"), false, &out);
    expect_str(buffer_str(&out), cases[_i].executed);
    ck_assert_int_eq(envelope_read(&again, buffer_str(&out), NULL), ENVELOPE_OK);
    ck_assert_uint_eq(again.task_member.length, 0);
    expect_str(again.id, envelope.id.length ? "\"tg:1\"" : "");
    envelope_finish(&again);
    envelope_finish(&envelope);
    buffer_finish(&out);
}
END_TEST

START_TEST(the_task_stays_for_an_upstream_that_requires_it)
{
    struct envelope envelope;
    struct buffer out;
    buffer_init(&out);
    ck_assert_int_eq(envelope_read(&envelope, STR(HEAD "{\"task\": {\"ttl\":5} , \"a\":1}}"), NULL),
                     ENVELOPE_OK);
    buffer_append_char(&out, '>');
    envelope_write_executable(&envelope, STR("tg:\"1"), true, &out);
    expect_str(buffer_str(&out), ">{\"jsonrpc\":\"2.0\",\"id\":\"tg:\\\"1\",\"method\":\"m\","
                                 "\"params\":{\"task\": {\"ttl\":5} , \"a\":1}}");
    envelope_finish(&envelope);
    buffer_finish(&out);
}
END_TEST

Suite *executable_suite(void)
{
    Suite *suite = suite_create("executable");
    TCase *tests = tcase_create("executable");
    tcase_add_loop_test(tests, executed_bytes_are_the_clients_own, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_test(tests, the_task_stays_for_an_upstream_that_requires_it);
    suite_add_tcase(suite, tests);
    return suite;
}
