/* Marks of a hostile request: each pair once, at most twenty, and a cost that grows as the request.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../../scaling.h"
#include "decision/task_binding.h"
#include "suites.h"
#include "taskgate/json/text.h"

#define LITTLE ((size_t)64 * 1024)
#define MUCH (4 * LITTLE)

static void write_marks(struct buffer *out, struct str arguments)
{
    static char nothing[] = "", tool[] = "write";
    struct task task = {.tool = tool,
                        .principal = nothing,
                        .arguments = (char *)arguments.bytes,
                        .meta = nothing,
                        .other_params = nothing};
    task_marks_write(out, &task, NULL);
}

static void run(void *input)
{
    struct buffer out = {0};
    write_marks(&out, buffer_str(input));
    ck_assert_uint_gt(out.length, 0);
    buffer_finish(&out);
}

/* `part` as often as it fits into `length` bytes, NUL behind it. */
static void fill(struct buffer *text, const char *before, const char *part, const char *after,
                 size_t length)
{
    buffer_init(text);
    buffer_append_text(text, before);
    while (text->length + strlen(part) + strlen(after) < length)
        buffer_append_text(text, part);
    buffer_append_text(text, after);
    buffer_append_char(text, '\0');
    text->length--;
}

/* The part repeats; one of the texts before or behind it closes it. */
static const struct shape {
    const char *before, *part, *after;
    size_t marks;
} shapes[] = {
    {"{\"a\":[", "\"\u202E\u200Bp\u0430\\u0001\",", "0]}", 4}, /* the same pairs again */
    {"{\"a\":[", "{\"k\u202E\":[\"\u202E\"]},", "0]}", 1},     /* below a key that has it */
    {"{\"a\":\"", "p\u0430 \u03B1b ", "\"}", 1},               /* one text, foreign letters */
    {"{\"a\":\"\u202E", "\\u202e\\\"", "\"}", 1},              /* escapes */
    {"{\"a\":[", "[[[[[[\"x\"]]]]]],", "0]}", 0},              /* nothing to be found */
    {"{\"a\":[\"", "\u200B", "\",0]}", 1},                     /* one long text */
    {"{\"", "\u202E\u0430b", "\":\"\u202E\"}", 2},             /* one long key */
    {"{\"a\":[", "\"x\",", "\"\u202E\"]}", 1},                 /* behind all others */
    {"{\"a\":[{\"b\":[", "[{\"c\":{\"d\":\"\xEF\xBD\x81\u0430\"}}],", "0]}]}", 1},
};

static size_t count_marks(struct str arguments)
{
    struct buffer out = {0};
    write_marks(&out, arguments);
    struct error error;
    ck_assert(json_check(buffer_str(&out), &error));
    size_t count = json_count(buffer_str(&out));
    buffer_finish(&out);
    return count;
}

START_TEST(the_cost_of_marks_grows_as_the_request)
{
    const struct shape *shape = &shapes[_i];
    struct buffer little, much;
    fill(&little, shape->before, shape->part, shape->after, LITTLE);
    fill(&much, shape->before, shape->part, shape->after, MUCH);
    ck_assert_uint_eq(count_marks(buffer_str(&much)), shape->marks);
    expect_scaling(run, &little, &much, 8);
    buffer_finish(&little);
    buffer_finish(&much);
}
END_TEST

/* Nineteen pairs with the longest places, and the last three of them again and again. */
START_TEST(pairs_that_are_there_already_cost_little)
{
    struct buffer plain, marked, keys;
    buffer_init(&keys);
    buffer_append_char(&keys, '{');
    for (int i = 0; i < 4; i++)
        buffer_append_format(&keys, "\"%c%0190d\u202E\u200Bp\u0430\\u0001\":0,", 'a' + i, 0);
    buffer_append_format(&keys, "\"e%0190d\":[\"\u202E\u200Bp\u0430\",", 0);
    buffer_append_char(&keys, '\0');
    fill(&plain, keys.bytes, "\"abcdefghi\",", "0]}", MUCH);
    fill(&marked, keys.bytes, "\"\u202E\u200Bp\u0430a\",", "0]}", MUCH);
    ck_assert_uint_eq(count_marks(buffer_str(&marked)), 19);
    expect_scaling(run, &plain, &marked, 32);
    buffer_finish(&plain);
    buffer_finish(&marked);
    buffer_finish(&keys);
}
END_TEST

TCase *task_marks_tests(void)
{
    TCase *tests = tcase_create("task_marks");
    tcase_add_loop_test(tests, the_cost_of_marks_grows_as_the_request, 0,
                        (int)(sizeof shapes / sizeof *shapes));
    tcase_add_test(tests, pairs_that_are_there_already_cost_little);
    return tests;
}
