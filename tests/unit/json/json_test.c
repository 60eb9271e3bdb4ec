/* Runs the suites of the json layer. */
#include "json_test.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

void expect_str(struct str actual, const char *expected)
{
    ck_assert_msg(str_equal(actual, str_from(expected)), "got <%.*s>, want <%s>", STR_ARGS(actual),
                  expected);
}

struct str exact_copy(struct str text)
{
    char *bytes = memory_alloc(text.length ? text.length : 1);
    if (text.length)
        memcpy(bytes, text.bytes, text.length);
    return str_slice(bytes, text.length);
}

int main(void)
{
    SRunner *runner = srunner_create(envelope_suite());
    srunner_add_suite(runner, refusal_suite());
    srunner_add_suite(runner, executable_suite());
    srunner_add_suite(runner, fold_suite());
    srunner_add_suite(runner, text_suite());
    srunner_add_suite(runner, canonical_suite());
    srunner_add_suite(runner, differential_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
