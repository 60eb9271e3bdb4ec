/* News between replicas is read as it was written, and nothing else is read. */
#include "replicas/news.h"

#include <string.h>

#include "suites.h"

#define TASK "tg_0b0f6c2e-5d0e-4c58-9a51-1c6b4a3f9d21"

static const struct news all[] = {
    {.kind = NEWS_TOOLS_CHANGED, .sequence = 1},
    {.kind = NEWS_TASK_WANTED, .task = TASK, .sequence = INT64_MAX},
    {.kind = NEWS_TASK_ASKS, .task = TASK, .sequence = 3},
    {.kind = NEWS_TASK_ASKS,
     .task = TASK,
     .requests = {"{\"r1:q\":{\"method\":\"x\"}}", 23},
     .questions = {"[{\"message\":\"\\\"\"}]", 18},
     .is_asking = true,
     .changed_ms = INT64_C(1700000000000),
     .sequence = 4},
    {.kind = NEWS_WAIT_OVER, .wait = {"{\"source\":\"up\",\"requestId\":7}", 29}, .sequence = 5},
    {.kind = NEWS_REPEATED_CALL, .call = {"{\"client\":\"up/o\"}", 17}, .sequence = 6},
};

START_TEST(written_news_is_read)
{
    const struct news *news = &all[_i];
    struct news read;
    struct buffer text;
    buffer_init(&text);
    news_write(&text, news);
    ck_assert_msg(news_read(buffer_str(&text), &read), "%.*s", STR_ARGS(buffer_str(&text)));
    ck_assert_int_eq(read.kind, news->kind);
    ck_assert_str_eq(read.task, news->task);
    ck_assert_int_eq(read.sequence, news->sequence);
    ck_assert_int_eq(read.changed_ms, news->changed_ms);
    ck_assert_int_eq(read.is_asking, news->is_asking);
    ck_assert(str_equal(read.wait, news->wait));
    ck_assert(str_equal(read.call, news->call));
    ck_assert(str_equal(read.requests, news->requests));
    ck_assert(str_equal(read.questions, news->questions));
    buffer_finish(&text);
}
END_TEST

static const char *const bad[] = {
    "",
    "{",
    "[]",
    "{\"kind\":\"tools_changed\"}",
    "{\"kind\":\"tools_changed\",\"sequence\":-1}",
    "{\"kind\":\"tools_changed\",\"sequence\":9223372036854775808}",
    "{\"kind\":\"gossip\",\"sequence\":1}",
    "{\"sequence\":1,\"task\":\"" TASK "\"}",
    "{\"kind\":\"task_wanted\",\"sequence\":1}",
    "{\"kind\":\"task_wanted\",\"sequence\":1,\"task\":\"up-1\"}",
    "{\"kind\":\"task_wanted\",\"sequence\":1,\"task\":\"" TASK "\\u0000\"}",
    "{\"kind\":\"task_wanted\",\"sequence\":1,\"task\":\"" TASK TASK "\"}",
    "{\"kind\":\"task_asks\",\"sequence\":1,\"task\":\"" TASK "\"}",
    "{\"kind\":\"task_asks\",\"sequence\":1,\"task\":\"" TASK "\",\"changedMs\":1,\"requests\":[]}",
    "{\"kind\":\"task_asks\",\"sequence\":1,\"task\":\"" TASK "\",\"changedMs\":1,\"questions\":1}",
    "{\"kind\":\"repeated_call\",\"sequence\":1,\"call\":[]}",
    "{\"kind\":\"wait_over\",\"sequence\":1}",
    "{\"kind\":\"wait_over\",\"sequence\":1,\"wait\":7}",
};

START_TEST(nothing_else_is_read)
{
    struct news read;
    ck_assert(!news_read(str_from(bad[_i]), &read));
}
END_TEST

TCase *news_text_tests(void)
{
    TCase *tests = tcase_create("news text");
    tcase_add_loop_test(tests, written_news_is_read, 0, sizeof all / sizeof *all);
    tcase_add_loop_test(tests, nothing_else_is_read, 0, sizeof bad / sizeof *bad);
    return tests;
}
