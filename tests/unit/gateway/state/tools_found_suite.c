/* Look-ups in the catalogue that take no lock. */
#include <pthread.h>

#include "suites.h"
#include "taskgate/core/metrics.h"
#include "tool_catalog_suite.h"

START_TEST(a_thread_finds_a_tool_again_without_the_lock)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = test_snapshot_of("");
    const struct mcp_capabilities capabilities = {.tasks = true};
    test_put_for(catalog, snapshot, STR("a"), test_strict);
    catalog_set_capabilities(catalog, &snapshot->config->sources[0], &capabilities);
    struct catalog_tool first = test_look_up(catalog, STR("a"), STR("wipe"));
    ck_assert(!test_look_up(catalog, STR("a"), STR("none")).known);
    ck_assert(catalog_has_seen_tasks(catalog, STR("up")));
    pthread_mutex_lock((pthread_mutex_t *)catalog); /* its first member */
    struct catalog_tool again = test_look_up(catalog, STR("a"), STR("wipe"));
    ck_assert(!test_look_up(catalog, STR("a"), STR("none")).known);
    ck_assert(catalog_has_seen_tasks(catalog, STR("up")));
    pthread_mutex_unlock((pthread_mutex_t *)catalog);
    ck_assert_int_eq(again.word, CATALOG_TOLD);
    ck_assert_str_eq(again.digest, first.digest);
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

START_TEST(a_found_tool_is_looked_up_anew_after_each_change)
{
    struct catalog *catalog = catalog_create();
    struct snapshot *snapshot = test_snapshot_of("");
    const struct config_source *source = &snapshot->config->sources[0];
    const struct mcp_capabilities capabilities = {.tasks = true};
    struct config other = *snapshot->config;
    struct str a = STR("a"), b = STR("b"), wipe = STR("wipe");
    ck_assert_int_eq(test_look_up(catalog, a, wipe).word, CATALOG_UNKNOWN);
    ck_assert(!catalog_has_seen_tasks(catalog, STR("up")));
    test_put_for(catalog, snapshot, a, test_mild); /* an owner gets a list */
    ck_assert_int_eq(test_look_up(catalog, a, wipe).word, CATALOG_TOLD);
    ck_assert_int_eq(test_look_up(catalog, b, wipe).word, CATALOG_OTHERS);
    ck_assert_str_eq(test_look_up(catalog, b, wipe).digest, "");
    test_put_for(catalog, snapshot, CATALOG_GATEWAY, test_mild); /* the gateway itself */
    ck_assert_int_eq(test_look_up(catalog, b, wipe).word, CATALOG_GATEWAYS);
    test_put_for(catalog, snapshot, b, test_strict); /* another */
    ck_assert_int_eq(test_look_up(catalog, b, wipe).word, CATALOG_TOLD);
    ck_assert_str_ne(test_look_up(catalog, b, wipe).digest, test_look_up(catalog, a, wipe).digest);
    test_put_for(catalog, snapshot, a, test_strict); /* the definition has changed */
    ck_assert_str_eq(test_look_up(catalog, b, wipe).digest, test_look_up(catalog, a, wipe).digest);
    catalog_set_stale(catalog, STR("up"));
    ck_assert(!test_look_up(catalog, a, wipe).is_current);
    test_put_tools(catalog, snapshot, (struct telling){a, true, true, 2}, &test_strict, 1);
    ck_assert(test_look_up(catalog, a, wipe).is_current);
    catalog_set_capabilities(catalog, source, &capabilities);
    ck_assert(catalog_has_seen_tasks(catalog, STR("up")));
    other.source_count = 0; /* a reload takes the source away */
    catalog_reconfigure(catalog, &other);
    ck_assert_int_eq(test_look_up(catalog, a, wipe).word, CATALOG_UNKNOWN);
    ck_assert(!catalog_has_seen_tasks(catalog, STR("up")));
    snapshot_unref(snapshot);
    catalog_destroy(catalog);
    metrics_finish();
}
END_TEST

TCase *tools_found_tests(void)
{
    TCase *tests = tcase_create("tools found");
    tcase_add_test(tests, a_thread_finds_a_tool_again_without_the_lock);
    tcase_add_test(tests, a_found_tool_is_looked_up_anew_after_each_change);
    return tests;
}
