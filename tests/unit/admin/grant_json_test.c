/* A grant as operators see it, from a row that may have anything. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "task_json.h"
#include "taskgate/json/text.h"

static const struct {
    int64_t calls, used;
    const char *left;
} rows[] = {
    {5, 2, "\"left\":3,"},         {5, 5, "\"left\":0,"},         {5, 6, "\"left\":0,"},
    {5, INT64_MIN, "\"left\":0,"}, {INT64_MIN, 5, "\"left\":0,"}, {INT64_MAX, -1, "\"left\":0,"},
};

START_TEST(numbers_that_nobody_has_counted_overflow_nothing)
{
    char text[] = "";
    const struct store_grant grant = {
        .id = text,
        .task_id = text,
        .owner = text,
        .principal = text,
        .source = text,
        .tool = text,
        .workflow = text,
        .rule = text,
        .terms = text,
        .arguments = text,
        .votes = text,
        .reason = text,
        .end_cause = text,
        .ended_by = text,
        .end_reason = text,
        .calls = rows[_i].calls,
        .used = rows[_i].used,
    };
    struct buffer out;
    buffer_init(&out);
    grant_json_write(&out, &grant, NULL);
    ck_assert(json_check(buffer_str(&out), NULL));
    buffer_append_char(&out, '\0');
    ck_assert_msg(strstr(out.bytes, rows[_i].left) != NULL, "%s", out.bytes);
    buffer_finish(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("admin grant");
    TCase *tests = tcase_create("grant");
    tcase_add_loop_test(tests, numbers_that_nobody_has_counted_overflow_nothing, 0,
                        sizeof rows / sizeof *rows);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
