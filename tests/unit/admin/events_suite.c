/* The operators' event stream, probes, metrics and page over real sockets. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

#include "peer.h"
#include "scene.h"

static struct scene scene;

static void start(void)
{
    scene_start(&scene);
}

static void finish(void)
{
    scene_finish(&scene);
}

/* ---- events ---- */

static void open_events(struct peer *peer, const char *headers)
{
    char *request =
        memory_format("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n%s\r\n", headers);
    peer_connect(peer, scene.loop, admin_port(scene.admin));
    peer_send_text(peer, request);
    peer_await(peer, ": open\n\n");
    free(request);
}

/* The number of the last event received. */
static unsigned long long last_number(struct peer *peer)
{
    char *text = memory_copy_str(buffer_str(&peer->received));
    char *at = text, *last = NULL;
    while ((at = strstr(at, "\nid: ")) != NULL)
        last = at++;
    ck_assert_ptr_nonnull(last);
    unsigned long long number = strtoull(last + 5, NULL, 10);
    free(text);
    return number;
}

START_TEST(changes_are_told_as_they_are_committed)
{
    struct peer peer;
    open_events(&peer, AS("view"));
    peer_expect(&peer, "content-type: text/event-stream\r\n");
    scene_create(&scene, "pay", "{\n\"password\": \"hunter2\"\n}");
    peer_await(&peer, "\"state\":\"pending\"");
    peer_expect(&peer, "event: task\nid: ");
    peer_expect(&peer, "\"arguments\":{\"password\":\"[REDACTED]\"}");
    unsigned long long first = last_number(&peer);
    scene_post(&scene, scene_task_path(&scene, "/approve"), "{}", 200);
    peer_await(&peer, "\"state\":\"approved\"");
    ck_assert_uint_eq(last_number(&peer), first + 1);

    /* Another reader comes back and gets exactly the missed changes. */
    struct peer other;
    char *headers = memory_format(AS("view") "Last-Event-ID: %llu\r\n", first);
    open_events(&other, headers);
    peer_await(&other, "\"state\":\"approved\"");
    ck_assert(!peer_has(&other, "\"state\":\"pending\""));
    free(headers);
    peer_close(&other);
    open_events(&other, AS("view") "Last-Event-ID: 1\r\n");
    peer_await(&other, "\"state\":\"approved\"");
    peer_expect(&other, "\"state\":\"pending\"");
    peer_close(&other);
    open_events(&other, AS("view"));
    run_idle(scene.loop);
    ck_assert(!peer_has(&other, "event: task"));
    peer_close(&other);
    peer_close(&peer);
}
END_TEST

START_TEST(large_tasks_are_told_but_not_all_kept)
{
    enum { BYTES = 3 * 1024 * 1024, TASKS = 12 };
    struct peer peer;
    struct buffer arguments;
    buffer_init(&arguments);
    buffer_append_format(&arguments, "{\"x\":\"%0*d\"}", BYTES, 0);
    char *text = buffer_take(&arguments, NULL);
    for (int i = 0; i < TASKS; i++)
        scene_create(&scene, i == 0 ? "first" : i == TASKS - 1 ? "last" : "other", text);
    free(text);
    open_events(&peer, AS("decide") "Last-Event-ID: 1\r\n");
    run_idle(scene.loop);
    ck_assert(!peer_has(&peer, "\"tool\":\"first\"")); /* 36 MiB are more than are kept */
    peer_await(&peer, "\"tool\":\"other\"");
    peer_close(&peer);
}
END_TEST

START_TEST(a_token_that_is_taken_away_ends_its_stream)
{
    struct peer viewer, approver;
    open_events(&viewer, AS("view"));
    open_events(&approver, AS("decide"));
    scene_configure(false, "");
    scene_create(&scene, "drop", "{}");
    peer_await(&approver, "\"state\":\"pending\"");
    peer_await(&viewer, "0\r\n\r\n"); /* the last chunk */
    ck_assert(!peer_has(&viewer, "event: task"));
    peer_close(&viewer);
    peer_close(&approver);
}
END_TEST

START_TEST(the_oldest_of_too_many_streams_of_an_operator_ends)
{
    enum { STREAMS = 64 };
    struct peer viewer, peers[STREAMS + 1];
    open_events(&viewer, AS("view"));
    for (int i = 0; i < STREAMS; i++)
        open_events(&peers[i], AS("decide"));
    ck_assert(!peer_has(&peers[0], "0\r\n\r\n"));
    open_events(&peers[STREAMS], AS("decide"));
    peer_await(&peers[0], "0\r\n\r\n"); /* the last chunk */
    scene_create(&scene, "drop", "{}");
    for (int i = 1; i <= STREAMS; i++)
        peer_await(&peers[i], "\"state\":\"pending\"");
    peer_await(&viewer, "\"state\":\"pending\"");
    for (int i = 0; i <= STREAMS; i++)
        peer_close(&peers[i]);
    peer_close(&viewer);
}
END_TEST

START_TEST(shutting_down_ends_streams_and_readiness_but_not_decisions)
{
    struct peer peer;
    open_events(&peer, AS("view"));
    scene_create(&scene, "drop", "{}");
    admin_announce_shut_down(scene.admin);
    peer_await(&peer, "0\r\n\r\n"); /* the last chunk: an end, not a cut */
    peer_close(&peer);
    scene_ask(&scene, "GET", "/ready", "", NULL);
    ck_assert_int_eq(scene.http_status, 503);
    scene_has(&scene, "{\"status\":\"not_ready\"");
    scene_has(&scene, "\"reason\":\"shutting_down\"");
    scene_get(&scene, "/api/v1/events", 503);
    scene_post(&scene, scene_task_path(&scene, "/reject"), "{}", 200);
}
END_TEST

/* ---- probes ---- */

START_TEST(probes_say_what_is)
{
    scene_ask(&scene, "GET", "/health", "", NULL);
    scene_has(&scene,
              "{\"status\":\"healthy\",\"version\":\"" TASKGATE_VERSION "\",\"uptime_seconds\":0}");
    scene_ask(&scene, "GET", "/ready", "", NULL);
    scene_has(&scene, "{\"status\":\"ready\",\"checks\":{\"config_loaded\":true,\"store\":true,"
                      "\"upstream_reachable\":true}}");
    scene.upstream_reachable = false;
    admin_set_config_error(scene.admin, "a.yaml:1:2: \"x\"");
    ck_assert_int_eq(scene_ask(&scene, "GET", "/ready", "", NULL), 200);
    scene_has(&scene, "\"upstream_reachable\":false},\"config_error\":\"a.yaml:1:2: \\\"x\\\"\"}");
    admin_set_config_error(scene.admin, NULL);
    scene_ask(&scene, "GET", "/ready", "", NULL);
    scene_has_not(&scene, "config_error");
}
END_TEST

START_TEST(metrics_follow_the_tasks_and_the_accept_header)
{
    scene_create(&scene, "a", "{}");
    scene_post(&scene, scene_task_path(&scene, "/approve"), "{}", 200);
    scene_change(&scene, &(struct task_change){.to = TASK_EXECUTING});
    scene_change(&scene, &(struct task_change){.to = TASK_APPROVED});
    scene_post(&scene, scene_task_path(&scene, "/cancel"), "{}", 200);
    scene_create(&scene, "b", "{}");
    scene_post(&scene, scene_task_path(&scene, "/reject"), "{}", 200);
    scene_create(&scene, "c", "{}");
    scene_ask(&scene, "GET", "/metrics", "Accept: text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n",
              NULL);
    ck_assert_ptr_nonnull(strstr(scene.head, "content-type: text/plain; version=0.0.4"));
#define APPROVALS "thoughtgate_approval_requests_total{channel=\"admin\",outcome="
#define COMPLETED "thoughtgate_tasks_completed_total{task_type=\"approval\",outcome="
    scene_has(&scene, APPROVALS "\"pending\"} 3\n");
    scene_has(&scene, APPROVALS "\"approved\"} 1\n");
    scene_has(&scene, APPROVALS "\"rejected\"} 1\n");
    scene_has_not(&scene, APPROVALS "\"cancelled\"}");
    scene_has(&scene, COMPLETED "\"cancelled\"} 1\n");
    scene_has(&scene, COMPLETED "\"rejected\"} 1\n");
    scene_has(&scene, "thoughtgate_approval_wait_duration_s_count{channel=\"admin\",outcome="
                      "\"approved\"} 1\n");
    scene_has(&scene, "thoughtgate_tasks_pending{task_type=\"approval\"} 1\n");
    scene_has(&scene, "\nthoughtgate_uptime_seconds ");

    static const struct {
        const char *accept;
        bool open_metrics;
    } rows[] = {
        {"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", true},
        {"application/openmetrics-text;q=0.3,text/plain;q=0.7", false},
        {"text/plain, application/openmetrics-text;q=0", false},
        {"APPLICATION/openmetrics-text", true},
        {"*/*", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *accept = memory_format("Accept: %s\r\n", rows[i].accept);
        scene_ask(&scene, "GET", "/metrics", accept, NULL);
        bool is_open = strstr(scene.head, "content-type: application/openmetrics-text; "
                                          "version=1.0.0") != NULL;
        ck_assert_msg(is_open == rows[i].open_metrics, "%s", rows[i].accept);
        ck_assert_int_eq(strstr(scene.body, "\n# EOF\n") != NULL, is_open);
        free(accept);
    }
}
END_TEST

START_TEST(the_page_is_static)
{
    static const char *const files[][2] = {
        {"/", "text/html"},
        {"/page.css", "text/css"},
        {"/page.js", "text/javascript"},
        {"/api.js", "text/javascript"},
        {"/text.js", "text/javascript"},
        {"/row.js", "text/javascript"},
        {"/icon-many.svg", "image/svg+xml"},
        {"/icon.svg", "image/svg+xml"},
    };
    scene_create(&scene, "needle", "{}");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ck_assert_int_eq(scene_ask(&scene, "GET", files[i][0], "", NULL), 200);
        ck_assert_ptr_nonnull(strstr(scene.head, files[i][1]));
        ck_assert_uint_gt(strlen(scene.body), 100);
        scene_has_not(&scene, "needle");
    }
}
END_TEST

TCase *events_case(void)
{
    TCase *cases = tcase_create("events");
    tcase_add_checked_fixture(cases, start, finish);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, changes_are_told_as_they_are_committed);
    tcase_add_test(cases, large_tasks_are_told_but_not_all_kept);
    tcase_add_test(cases, a_token_that_is_taken_away_ends_its_stream);
    tcase_add_test(cases, the_oldest_of_too_many_streams_of_an_operator_ends);
    tcase_add_test(cases, shutting_down_ends_streams_and_readiness_but_not_decisions);
    tcase_add_test(cases, probes_say_what_is);
    tcase_add_test(cases, metrics_follow_the_tasks_and_the_accept_header);
    tcase_add_test(cases, the_page_is_static);
    return cases;
}
