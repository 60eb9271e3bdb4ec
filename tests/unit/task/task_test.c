/* The task value, its table of moves, its clocks. */
#include <check.h>
#include <stdlib.h>

#include "support.h"

int main(void)
{
    Suite *suite = suite_create("task");
    suite_add_tcase(suite, transitions_case());
    suite_add_tcase(suite, promoted_case());
    suite_add_tcase(suite, clocks_case());
    suite_add_tcase(suite, value_case());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
