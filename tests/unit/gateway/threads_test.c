/* What workers share, from several threads at once; for the thread sanitizer. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "catalog.h"
#include "rate.h"
#include "sessions.h"
#include "taskgate/core/log.h"
#include "taskgate/core/metrics.h"

enum { THREADS = 4, ROUNDS = 400 };

struct shared {
    struct sessions *sessions;
    struct catalog *catalog;
    struct rate *rate;
    int allowed; /* atomic */
};

static const char *environment(const char *name)
{
    return NULL;
}

static struct snapshot *make_snapshot(void)
{
    static const char text[] = "schema: 1\n"
                               "sources: [{id: up, kind: mcp, url: \"http://127.0.0.1:1/mcp\"}]\n"
                               "governance: {defaults: {action: forward}}\n";
    struct config_problems problems = {0};
    struct config *config = config_parse(str_from(text), "t.yaml", environment, &problems);
    ck_assert_ptr_nonnull(config);
    struct snapshot *snapshot = snapshot_create(config, &problems);
    config_problems_finish(&problems);
    return snapshot;
}

static void use_sessions(struct shared *shared, struct str name, int round)
{
    struct session_facts facts = {.known = true}, seen;
    sessions_put(shared->sessions, STR("up"), name, &facts, 50);
    sessions_accept(shared->sessions, STR("up"), name, STR("t"), round, 50);
    sessions_get(shared->sessions, STR("up"), name, &seen);
    sessions_accepted_ago_ms(shared->sessions, STR("up"), name, STR("t"), round);
    if (round % 7 == 0)
        sessions_remove(shared->sessions, STR("up"), name, STR("t"));
}

static void use_catalog(struct shared *shared, struct str name, int round)
{
    struct snapshot *snapshot = snapshot_current();
    struct mcp_tool tool = {.name = name, .raw = STR("{}")};
    struct catalog_tool known;
    struct buffer kept = {0};
    catalog_put_tool(shared->catalog, snapshot, &snapshot->config->sources[0], &tool);
    catalog_find_tool(shared->catalog, STR("up"), name, &known);
    ck_assert(known.known);
    catalog_keep_list(shared->catalog, name, STR("list"));
    catalog_kept_list(shared->catalog, name, &kept);
    catalog_set_reachable(shared->catalog, STR("up"), round % 2 == 0);
    if (round % 50 == 0) {
        snapshot_install(make_snapshot()); /* a reload */
        catalog_announce_all(shared->catalog, snapshot);
    }
    buffer_finish(&kept);
    snapshot_unref(snapshot);
}

static void *work(void *context)
{
    struct shared *shared = context;
    char name[32];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "n%d", i % 97);
        use_sessions(shared, str_from(name), i);
        use_catalog(shared, str_from(name), i);
        if (rate_allows(shared->rate, STR("peer"), 100, 0))
            __atomic_add_fetch(&shared->allowed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

START_TEST(workers_share_sessions_catalogue_limits_and_configuration)
{
    struct shared shared = {
        .sessions = sessions_create(), .catalog = catalog_create(), .rate = rate_create()};
    pthread_t threads[THREADS];
    snapshot_install(make_snapshot());
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &shared), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(shared.allowed, 200);
    snapshot_install(NULL);
    rate_destroy(shared.rate);
    catalog_destroy(shared.catalog);
    sessions_destroy(shared.sessions);
    metrics_finish();
}
END_TEST

int main(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    Suite *suite = suite_create("gateway_threads");
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, workers_share_sessions_catalogue_limits_and_configuration);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
