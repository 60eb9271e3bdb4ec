/*
 * Calls to an MCP server, against raw peers that answer, stall, break and vanish. Run once per
 * implementation, named by the environment. Promises of one implementation are tested with that
 * one.
 */
#include <stdlib.h>

#include "scene.h"
#include "suite.h"

int main(void)
{
    Suite *suite = suite_create("upstream");
    suite_add_tcase(suite, message_tests());
    suite_add_tcase(suite, failure_tests());
    suite_add_tcase(suite, control_tests());
    suite_add_tcase(suite, running_tests());
    suite_add_tcase(suite, reuse_tests());
    suite_add_tcase(suite, owner_tests());
    if (!is_by_libcurl()) {
        suite_add_tcase(suite, response_tests());
        suite_add_tcase(suite, pool_tests());
    } else {
        suite_add_tcase(suite, curl_tests());
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
