/* Tasks of upstream's, found by the session that they run in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/task_aliases.h"
#include "suites.h"
#include "taskgate/core/memory.h"

START_TEST(a_task_of_upstreams_is_found_in_its_session_alone)
{
    struct task_aliases *tasks = task_aliases_create();
    struct task *task = task_create(TASK_PENDING);
    const struct str related = STR("{\"params\":{\"_meta\":{"
                                   "\"io.modelcontextprotocol/related-task\":"
                                   "{\"taskId\":\"a\"}},\"taskId\":\"b\"}}");
    const struct str status = STR("{\"params\":{\"taskId\":\"\\u0061\"}}");
    ck_assert(!task_aliases_any(tasks));
    task_aliases_put(tasks, "", "a", task);
    ck_assert(!task_aliases_any(tasks));
    task_aliases_put(tasks, "s", "a", task);
    task_aliases_put(tasks, "s", "a", task);
    ck_assert(task_aliases_any(tasks));
    ck_assert_ptr_null(task_aliases_find(tasks, "t", related));
    ck_assert_ptr_null(task_aliases_find(tasks, "", related));
    ck_assert_ptr_null(task_aliases_find(tasks, "s", STR("{\"params\":{\"taskId\":7}}")));
    ck_assert_ptr_null(task_aliases_find(tasks, "s", STR("{}")));
    struct str messages[] = {related, status};
    for (int i = 0; i < 2; i++) {
        struct task *found = task_aliases_find(tasks, "s", messages[i]);
        ck_assert_ptr_eq(found, task);
        task_unref(found);
    }
    task_aliases_remove(tasks, "t", "a");
    ck_assert(task_aliases_any(tasks));
    task_aliases_remove(tasks, "s", "a");
    ck_assert(!task_aliases_any(tasks));
    task_aliases_put(tasks, "s", "left", task);
    task_aliases_destroy(tasks);
    task_unref(task);
}
END_TEST

TCase *task_aliases_tests(void)
{
    TCase *tests = tcase_create("task_aliases");
    tcase_add_test(tests, a_task_of_upstreams_is_found_in_its_session_alone);
    return tests;
}
