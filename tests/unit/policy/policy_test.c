/* The policy module. */
#include <stdlib.h>

#include "suites.h"

int main(void)
{
    Suite *suite = suite_create("policy");
    suite_add_tcase(suite, index_case());
    suite_add_tcase(suite, decide_case());
    suite_add_tcase(suite, matrices_case());
    suite_add_tcase(suite, engine_case());
    suite_add_tcase(suite, engine_load_case());
    suite_add_tcase(suite, uri_case());
    suite_add_tcase(suite, verdict_case());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
