/* The parts of a request that an approval covers. */
#include <string.h>

#include "call/request_parts.h"
#include "suites.h"

static struct task *bind_parts(const char *params)
{
    struct task *task = task_create(TASK_PENDING);
    struct buffer body;
    struct envelope envelope;
    buffer_init(&body);
    buffer_append_format(
        &body, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":%s}", params);
    ck_assert_int_eq(envelope_read(&envelope, buffer_str(&body), NULL), ENVELOPE_OK);
    request_parts_bind(task, &envelope);
    envelope_finish(&envelope);
    buffer_finish(&body);
    return task;
}

static void expect_parts(const char *params, const char *meta, const char *other_params)
{
    struct task *task = bind_parts(params);
    ck_assert_str_eq(task->meta, meta);
    ck_assert_str_eq(task->other_params, other_params);
    task_unref(task);
}

START_TEST(all_params_are_in_one_of_the_parts)
{
    expect_parts("{\"name\":\"t\",\"arguments\":{},\"task\":{\"ttl\":1}}", "{}", "{}");
    expect_parts("{\"_meta\":{\"a\":1,\"progressToken\":2},\"x\":[3],\"name\":\"t\",\"uri\":\"u\"}",
                 "{\"a\":1}", "{\"x\":[3],\"uri\":\"u\"}");
    expect_parts("{\"name\":\"t\",\"\\u005fmeta\":{\"progress\\u0054oken\":2}}", "{}", "{}");
    expect_parts("{\"name\":\"t\",\"_meta\":\"hidden?\"}", "\"hidden?\"", "{}");
}
END_TEST

static bool digests_differ(const char *a, const char *b)
{
    struct task *one = bind_parts(a), *other = bind_parts(b);
    bool differ = strcmp(one->request_digest, other->request_digest) != 0;
    task_unref(one);
    task_unref(other);
    return differ;
}

START_TEST(the_digest_covers_each_part)
{
    static const char plain[] = "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2}}";
    static const char *const same[] = {
        "{\"arguments\" : {\"b\":2,\"a\":1}, \"name\":\"\\u0074\"}",
        "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2},\"_meta\":{\"progressToken\":\"p\"}}",
        "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2},\"_meta\":{},\"task\":{\"ttl\":5}}",
    };
    static const char *const others[] = {
        "{\"name\":\"u\",\"arguments\":{\"a\":1,\"b\":2}}",
        "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":3}}",
        "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2},\"_meta\":{\"x\":1}}",
        "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2},\"x\":1}",
        "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2},\"meta\":{\"x\":1}}",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        ck_assert_msg(!digests_differ(plain, same[i]), "%s", same[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert_msg(digests_differ(plain, others[i]), "%s", others[i]);
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(digests_differ(others[j], others[i]), "%s", others[i]);
    }
}
END_TEST

TCase *request_parts_tests(void)
{
    TCase *tests = tcase_create("request parts");
    tcase_add_test(tests, all_params_are_in_one_of_the_parts);
    tcase_add_test(tests, the_digest_covers_each_part);
    return tests;
}
