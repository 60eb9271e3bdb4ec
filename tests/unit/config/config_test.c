/* The config module. */
#include <stdlib.h>

#include "suites.h"

int main(void)
{
    Suite *suite = suite_create("config");
    suite_add_tcase(suite, values_case());
    suite_add_tcase(suite, glob_case());
    suite_add_tcase(suite, glob_work_case());
    suite_add_tcase(suite, load_case());
    suite_add_tcase(suite, search_case());
    suite_add_tcase(suite, pseudo_case());
    suite_add_tcase(suite, findings_case());
    suite_add_tcase(suite, findings_behind_case());
    suite_add_tcase(suite, environment_case());
    suite_add_tcase(suite, otel_case());
    suite_add_tcase(suite, clocks_case());
    suite_add_tcase(suite, robustness_case());
    suite_add_tcase(suite, secure_url_case());
    suite_add_tcase(suite, shadow_case());
    suite_add_tcase(suite, slack_case());
    suite_add_tcase(suite, store_case());
    suite_add_tcase(suite, summary_case());
    suite_add_tcase(suite, memory_case());
    suite_add_tcase(suite, memory_groups_case());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
