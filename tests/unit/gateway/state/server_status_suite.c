/* Whether servers answer, and the observer of their changes. */
#include "state/tool_catalog.h"
#include "suites.h"
#include "taskgate/core/metrics.h"

START_TEST(all_are_reachable_unless_one_is_known_not_to_be)
{
    struct catalog *catalog = catalog_create();
    ck_assert(catalog_all_reachable(catalog));
    server_status_note(catalog, STR("a"), true);
    server_status_note(catalog, STR("b"), false);
    ck_assert(!catalog_all_reachable(catalog));
    server_status_note(catalog, STR("b"), true);
    ck_assert(catalog_all_reachable(catalog));
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

struct seen_changes {
    size_t count;
    enum catalog_change changes[8];
};

static void see_change(void *context, struct str source, enum catalog_change change)
{
    struct seen_changes *seen = context;
    ck_assert(str_equal(source, STR("up")));
    ck_assert_uint_lt(seen->count, 8);
    seen->changes[seen->count++] = change;
}

START_TEST(the_observer_is_told_of_each_change_of_a_server_once)
{
    static const bool notes[] = {true, true, false, false, true, true};
    struct seen_changes seen = {0};
    struct catalog *catalog = catalog_create();
    server_status_note(catalog, STR("other"), true); /* no observer yet */
    server_status_observe(catalog, &(struct server_observer){see_change, &seen});
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        server_status_note(catalog, STR("up"), notes[i]);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_int_eq(seen.changes[0], CATALOG_CONNECTED);
    ck_assert_int_eq(seen.changes[1], CATALOG_DISCONNECTED);
    ck_assert_int_eq(seen.changes[2], CATALOG_RECONNECTED);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

TCase *server_status_tests(void)
{
    TCase *tests = tcase_create("server status");
    tcase_add_test(tests, all_are_reachable_unless_one_is_known_not_to_be);
    tcase_add_test(tests, the_observer_is_told_of_each_change_of_a_server_once);
    return tests;
}
