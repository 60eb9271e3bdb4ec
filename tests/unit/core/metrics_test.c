/* Metrics: the text in both formats, caps, threads. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

/* The whole text; the caller frees. */
static char *scrape(bool open_metrics)
{
    struct buffer out;
    buffer_init(&out);
    metrics_write(&out, open_metrics);
    return buffer_take(&out, NULL);
}

static void expect_line(bool open_metrics, const char *line)
{
    char *text = scrape(open_metrics);
    char *wanted = memory_format("\n%s\n", line);
    ck_assert_msg(strstr(text, wanted) != NULL, "no line %s in:\n%s", line, text);
    free(wanted);
    free(text);
}

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

START_TEST(counters_end_in_one_total_in_both_formats)
{
    metrics_count(METRIC_DECISIONS, STR("gate2"), STR("approve"));
    metrics_count(METRIC_DECISIONS, STR("gate2"), STR("approve"));
    metrics_count(METRIC_DECISIONS, STR("gate2"), STR("deny"));
    expect_line(false, "# TYPE thoughtgate_decisions_total counter");
    expect_line(true, "# TYPE thoughtgate_decisions counter");
    for (int open_metrics = 0; open_metrics < 2; open_metrics++) {
        expect_line(open_metrics,
                    "thoughtgate_decisions_total{gate=\"gate2\",outcome=\"approve\"} 2");
        expect_line(open_metrics, "thoughtgate_decisions_total{gate=\"gate2\",outcome=\"deny\"} 1");
        char *text = scrape(open_metrics);
        ck_assert_uint_eq(occurrences(text, "_total_total"), 0);
        ck_assert_int_eq(strcmp(text + strlen(text) - strlen("# EOF\n"), "# EOF\n") == 0,
                         open_metrics);
        free(text);
    }
    metrics_finish();
}
END_TEST

START_TEST(gauges_are_set_moved_and_dropped)
{
    metrics_set(METRIC_TOOLS_BY_ANNOTATION, 7, METRIC_LABELS(STR("required")));
    metrics_set(METRIC_UPTIME, 1.5, NULL);
    metrics_add(METRIC_ACTIVE_REQUESTS, 1, NULL);
    metrics_add(METRIC_ACTIVE_REQUESTS, -1, NULL);
    expect_line(false, "thoughtgate_tools_by_annotation{annotation=\"required\"} 7");
    expect_line(false, "thoughtgate_uptime_seconds 1.5");
    expect_line(false, "thoughtgate_active_requests 0");
    metrics_reset(METRIC_TOOLS_BY_ANNOTATION);
    char *text = scrape(false);
    ck_assert_ptr_null(strstr(text, "annotation=\"required\""));
    ck_assert_ptr_nonnull(strstr(text, "thoughtgate_uptime_seconds 1.5"));
    free(text);
    metrics_finish();
}
END_TEST

START_TEST(histograms_are_cumulative)
{
    metrics_observe(METRIC_APPROVAL_WAIT, 1, METRIC_LABELS(STR("admin"), STR("approved")));
    metrics_observe(METRIC_APPROVAL_WAIT, 7.5, METRIC_LABELS(STR("admin"), STR("approved")));
    metrics_observe(METRIC_APPROVAL_WAIT, 1e6, METRIC_LABELS(STR("admin"), STR("approved")));
#define SERIES "thoughtgate_approval_wait_duration_s"
#define LABELS "channel=\"admin\",outcome=\"approved\""
    expect_line(false, "# TYPE " SERIES " histogram");
    expect_line(false, SERIES "_bucket{" LABELS ",le=\"1\"} 1");
    expect_line(false, SERIES "_bucket{" LABELS ",le=\"5\"} 1");
    expect_line(false, SERIES "_bucket{" LABELS ",le=\"10\"} 2");
    expect_line(false, SERIES "_bucket{" LABELS ",le=\"3600\"} 2");
    expect_line(false, SERIES "_bucket{" LABELS ",le=\"+Inf\"} 3");
    expect_line(false, SERIES "_sum{" LABELS "} 1000008.5");
    expect_line(false, SERIES "_count{" LABELS "} 3");
    expect_line(true, SERIES "_bucket{" LABELS ",le=\"10.0\"} 2");
    metrics_finish();
}
END_TEST

START_TEST(label_values_are_escaped_bounded_and_utf8)
{
    metrics_count(METRIC_ERRORS, STR("a\"b\\c\nd"), STR("tools/call"));
    metrics_count(METRIC_ERRORS, STR("\xFF"), STR("tools/call"));
    /* Characters that a terminal would obey: an escape, a C1 control, U+202E. */
    metrics_count(METRIC_ERRORS, STR("\x1B[2J"), STR("tools/list"));
    metrics_count(METRIC_ERRORS, STR("\xC2\x9B"), STR("tools/list"));
    metrics_count(METRIC_ERRORS, STR("a\xE2\x80\xAE"), STR("tools/list"));
    expect_line(false, "thoughtgate_errors_total{error_type=\"__invalid__\",method=\"tools/"
                       "list\"} 3");
    expect_line(false, "thoughtgate_errors_total{error_type=\"a\\\"b\\\\c\\nd\",method=\"tools/"
                       "call\"} 1");
    expect_line(false, "thoughtgate_errors_total{error_type=\"__invalid__\",method=\"tools/"
                       "call\"} 1");
    char long_name[400];
    memset(long_name, 'x', sizeof long_name);
    long_name[127] = (char)0xC3; /* a character that must not be cut in two */
    long_name[128] = (char)0xA9;
    metrics_count(METRIC_RULE_MATCHES, str_slice(long_name, sizeof long_name));
    char *line = memory_format("thoughtgate_rule_matches_total{action=\"%.127s\"} 1", long_name);
    expect_line(false, line);
    free(line);
    metrics_finish();
}
END_TEST

START_TEST(invented_tool_names_do_not_fill_the_memory)
{
    for (int i = 0; i < 1000; i++) {
        char *tool = memory_format("tool-%d", i);
        metrics_count(METRIC_REQUESTS, STR("tools/call"), str_from(tool), STR("success"));
        free(tool);
    }
    char *text = scrape(false);
    ck_assert_uint_eq(occurrences(text, "\nthoughtgate_requests_total{"), 201);
    free(text);
    expect_line(false, "thoughtgate_requests_total{method=\"tools/call\",tool_name=\"tool-199\","
                       "status=\"success\"} 1");
    expect_line(false, "thoughtgate_requests_total{method=\"tools/call\",tool_name=\"__other__\","
                       "status=\"success\"} 800");
    metrics_finish();
}
END_TEST

#define THREADS 4
#define ROUNDS 5000

static void *count_much(void *context)
{
    for (int i = 0; i < ROUNDS; i++) {
        metrics_count(METRIC_TASKS_CREATED, STR("approval"));
        metrics_observe(METRIC_UPSTREAM_DURATION, i % 20, METRIC_LABELS(STR("up")));
        if (i % 1000 == 0)
            free(scrape(i % 2000 == 0));
        if (i % 20 == 0)
            metrics_reset(METRIC_UPSTREAM_HEALTH);
        metrics_set(METRIC_UPSTREAM_HEALTH, 1, METRIC_LABELS(STR("up"), STR("healthy")));
    }
    return NULL;
}

START_TEST(threads_lose_no_count)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_much, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    expect_line(false, "thoughtgate_tasks_created_total{task_type=\"approval\"} 20000");
    expect_line(false, "thoughtgate_upstream_duration_ms_count{target=\"up\"} 20000");
    metrics_finish();
}
END_TEST

static void *count_a_little(void *context)
{
    struct metrics_handle handle = {0};
    for (int i = 0; i < 10; i++)
        metrics_add_by(&handle, METRIC_RULE_MATCHES, 1, METRIC_LABELS(STR("deny")));
    metrics_count(METRIC_RULE_MATCHES, STR("deny"));
    return NULL;
}

START_TEST(the_counts_of_an_ended_thread_stay)
{
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, count_a_little, NULL), 0);
        pthread_join(thread, NULL);
    }
    expect_line(false, "thoughtgate_rule_matches_total{action=\"deny\"} 33");
    metrics_finish();
}
END_TEST

START_TEST(a_handle_counts_in_its_series)
{
    struct metrics_handle wait = {0}, active = {0};
    for (int round = 0; round < 2; round++) {
        metrics_add_by(&active, METRIC_ACTIVE_REQUESTS, 2, NULL);
        metrics_add(METRIC_ACTIVE_REQUESTS, 1, NULL);
        metrics_observe_by(&wait, METRIC_UPSTREAM_DURATION, 3, METRIC_LABELS(STR("up")));
        metrics_observe(METRIC_UPSTREAM_DURATION, 1e9, METRIC_LABELS(STR("up")));
        expect_line(false, "thoughtgate_active_requests 3");
        expect_line(false, "thoughtgate_upstream_duration_ms_count{target=\"up\"} 2");
        expect_line(false, "thoughtgate_upstream_duration_ms_sum{target=\"up\"} 1000000003");
        metrics_finish(); /* and the second round begins anew */
    }
}
END_TEST

START_TEST(reference_names_each_metric)
{
    struct buffer out;
    buffer_init(&out);
    metrics_write_reference(&out);
    char *text = buffer_take(&out, NULL);
    ck_assert_ptr_nonnull(
        strstr(text, "- `thoughtgate_task_validation_errors_total` (counter; `error`): "));
    ck_assert_ptr_nonnull(strstr(text, ", 900, 1800, 3600\n"));
    free(text);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("metrics");
    tcase_add_test(cases, counters_end_in_one_total_in_both_formats);
    tcase_add_test(cases, gauges_are_set_moved_and_dropped);
    tcase_add_test(cases, histograms_are_cumulative);
    tcase_add_test(cases, label_values_are_escaped_bounded_and_utf8);
    tcase_add_test(cases, invented_tool_names_do_not_fill_the_memory);
    tcase_add_test(cases, threads_lose_no_count);
    tcase_add_test(cases, the_counts_of_an_ended_thread_stay);
    tcase_add_test(cases, a_handle_counts_in_its_series);
    tcase_add_test(cases, reference_names_each_metric);
    Suite *suite = suite_create("metrics");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
