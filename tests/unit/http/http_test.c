/* The HTTP server side, by raw clients over loopback. */
#include <stdlib.h>

#include "suite.h"

int main(void)
{
    Suite *suite = suite_create("http");
    suite_add_tcase(suite, request_tests());
    suite_add_tcase(suite, response_tests());
    suite_add_tcase(suite, departure_tests());
    suite_add_tcase(suite, stream_tests());
    suite_add_tcase(suite, server_tests());
    suite_add_tcase(suite, guard_tests());
    suite_add_tcase(suite, tls_tests());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
