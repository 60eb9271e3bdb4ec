/* Parts of the gateway that need no upstream. */
#include <stdlib.h>

#include "suites.h"
#include "taskgate/core/log.h"

int main(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    Suite *suite = suite_create("gateway");
    suite_add_tcase(suite, authorization_tests());
    suite_add_tcase(suite, call_counters_tests());
    suite_add_tcase(suite, call_part_tests());
    suite_add_tcase(suite, cursor_tests());
    suite_add_tcase(suite, headers_tests());
    suite_add_tcase(suite, list_cache_tests());
    suite_add_tcase(suite, input_requests_tests());
    suite_add_tcase(suite, quota_tests());
    suite_add_tcase(suite, rate_limit_tests());
    suite_add_tcase(suite, recorded_name_tests());
    suite_add_tcase(suite, request_parts_tests());
    suite_add_tcase(suite, server_budget_tests());
    suite_add_tcase(suite, sessions_tests());
    suite_add_tcase(suite, catalog_tests());
    suite_add_tcase(suite, compat_tests());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
