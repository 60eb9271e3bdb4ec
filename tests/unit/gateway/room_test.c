/* The tests of one room, linked with what that room may call and nothing else (meson.build). */
#include <stdlib.h>

#include "suites.h"
#include "taskgate/core/log.h"

/* Both come from meson.build: the room's name, and its suites with commas. */
static TCase *(*const suites[])(void) = {ROOM_SUITES};

int main(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    Suite *suite = suite_create(ROOM_NAME);
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        suite_add_tcase(suite, suites[i]());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
