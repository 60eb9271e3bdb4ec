/* The operators' API over real sockets with a real store: rights and answers. */
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

/* "/api/v1/tasks/ID" and its continuation; valid until the next call. */
static const char *task_path(const char *rest)
{
    static char path[128];
    snprintf(path, sizeof path, "/api/v1/tasks/%s%s", scene.id, rest);
    return path;
}

/* ---- rights ---- */

START_TEST(every_route_asks_for_its_role)
{
    static const struct {
        const char *method, *path, *token;
        int status;
    } rows[] = {
        {"GET", "/api/v1/tasks", "", 401},
        {"GET", "/api/v1/tasks", AS("wrong"), 401},
        {"GET", "/api/v1/tasks", AS("viewx"), 401},
        {"GET", "/api/v1/tasks", "Authorization: Basic view\r\n", 401},
        {"GET", "/api/v1/tasks", "Authorization: Bearer\r\n", 401},
        {"GET", "/api/v1/tasks", "Authorization: Bearer \r\n", 401},
        {"GET", "/api/v1/tasks", "Authorization: bearer view\r\n", 200},
        {"GET", "/api/v1/tasks", AS("view"), 200},
        {"GET", "/api/v1/tasks", AS("decide"), 200},
        {"GET", "/api/v1/tasks", AS("extra"), 200},
        {"GET", "/api/v1/tasks", AS("audit"), 200},
        {"GET", "/api/v1/tasks/tg_0", AS("audit"), 404},
        {"POST", "/api/v1/tasks/tg_0/approve", AS("audit"), 403},
        {"POST", "/api/v1/tasks/tg_0/cancel", AS("audit"), 403},
        {"POST", "/api/v1/calls", AS("audit"), 403},
        {"GET", "/api/v1/grants", "", 401},
        {"GET", "/api/v1/grants", AS("call"), 403},
        {"GET", "/api/v1/grants", AS("view"), 200},
        {"GET", "/api/v1/grants", AS("audit"), 200},
        {"POST", "/api/v1/grants/gr_0/revoke", AS("view"), 403},
        {"POST", "/api/v1/grants/gr_0/revoke", AS("audit"), 403},
        {"POST", "/api/v1/grants/gr_0/revoke", AS("call"), 403},
        {"POST", "/api/v1/grants/gr_0/revoke", AS("decide"), 404},
        {"GET", "/api/v1/whoami", "", 401},
        {"GET", "/api/v1/whoami", AS("wrong"), 401},
        {"GET", "/api/v1/whoami", AS("call"), 200},
        {"GET", "/api/v1/whoami", AS("audit"), 200},
        {"GET", "/api/v1/whoami", AS("view"), 200},
        {"GET", "/api/v1/whoami", AS("extra"), 200},
        {"GET", "/api/v1/tasks", AS("call"), 403},
        {"GET", "/api/v1/tasks/tg_0", AS("call"), 404},
        {"GET", "/api/v1/tasks/tg_0/result", AS("call"), 404},
        {"GET", "/api/v1/tasks/tg_0/result", AS("view"), 404},
        {"GET", "/api/v1/tasks/tg_0/result", "", 401},
        {"POST", "/api/v1/calls", "", 401},
        {"POST", "/api/v1/calls", AS("view"), 403},
        {"POST", "/api/v1/calls", AS("decide"), 403},
        {"POST", "/api/v1/calls", AS("call"), 415},
        {"GET", "/api/v1/events", AS("call"), 403},
        {"GET", "/api/v1/events", "", 401},
        {"GET", "/api/v1/tasks/tg_0", "", 401},
        {"POST", "/api/v1/tasks/tg_0/approve", "", 401},
        {"POST", "/api/v1/tasks/tg_0/approve", AS("view"), 403},
        {"POST", "/api/v1/tasks/tg_0/reject", AS("call"), 403},
        {"POST", "/api/v1/tasks/tg_0/cancel", AS("view"), 403},
        {"POST", "/api/v1/tasks/tg_0/cancel", AS("extra"), 404},
        {"POST", "/api/v1/tasks/tg_0/cancel", AS("call"), 403},
        {"POST", "/slack/interactions", "", 401},
        {"POST", "/slack/interactions", AS("decide"), 401},
        {"GET", "/health", "", 200},
        {"GET", "/ready", "", 200},
        {"GET", "/metrics", "", 200},
        {"GET", "/", "", 200},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = scene_ask(&scene, rows[i].method, rows[i].path, rows[i].token, NULL);
        ck_assert_msg(status == rows[i].status, "row %zu: %s %s %s gave %d", i, rows[i].method,
                      rows[i].path, rows[i].token, status);
        if (status == 401)
            ck_assert_ptr_nonnull(strstr(scene.head, "Bearer"));
    }
}
END_TEST

START_TEST(a_token_in_the_query_is_refused_even_beside_a_good_one)
{
    scene_get(&scene, "/api/v1/tasks?token=view", 401);
    scene_get(&scene, "/api/v1/tasks?limit=1&access_token=view", 401);
}
END_TEST

START_TEST(paths_and_methods_are_closed)
{
    static const struct {
        const char *method, *path;
        int status;
    } rows[] = {
        {"GET", "/nothing", 404},
        {"GET", "/api/v1/tasks/", 404},
        {"GET", "/api/v1/tasks//approve", 404},
        {"GET", "/api/v1/tasks/a/b/c", 404},
        {"GET", "/api/v1/tasks/a/approve", 405},
        {"POST", "/api/v1/tasks", 405},
        {"DELETE", "/api/v1/tasks/a", 405},
        {"POST", "/health", 405},
        {"HEAD", "/api/v1/events", 405},
        {"HEAD", "/health", 200},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = scene_ask(&scene, rows[i].method, rows[i].path, AS("extra"), NULL);
        ck_assert_msg(status == rows[i].status, "%s %s gave %d", rows[i].method, rows[i].path,
                      status);
    }
    scene_ask(&scene, "PUT", "/api/v1/tasks", AS("extra"), NULL);
    ck_assert_ptr_nonnull(strstr(scene.head, "allow: GET\r\n"));
}
END_TEST

START_TEST(foreign_sites_are_refused_before_anything_else)
{
    static const struct {
        const char *path, *headers;
        int status;
    } rows[] = {
        {"/api/v1/tasks", AS("view") "Host: evil.example\r\n", 403},
        {"/", "Host: evil.example\r\n", 403},
        {"/nothing", "Host: evil.example\r\n", 403},
        {"/api/v1/tasks", AS("view") "Host: localhost:1\r\n", 200},
        {"/api/v1/tasks", AS("view") "Host: [::1]\r\n", 200},
        {"/api/v1/tasks", AS("view") "Origin: https://evil.example\r\n", 403},
        {"/api/v1/tasks", AS("view") "Origin: null\r\n", 403},
        {"/api/v1/tasks", AS("view") "Origin: http://localhost:7469\r\n", 200},
        {"/api/v1/tasks", AS("view") "Origin: https://ops.example\r\n", 200},
        {"/health", "Host: 10.0.0.7:7469\r\n", 200},
        {"/ready", "Host: 10.0.0.7:7469\r\n", 200},
        {"/metrics", "Host: 10.0.0.7:7469\r\n", 200},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int status = scene_ask(&scene, "GET", rows[i].path, rows[i].headers, NULL);
        ck_assert_msg(status == rows[i].status, "%s with %s gave %d", rows[i].path, rows[i].headers,
                      status);
    }
}
END_TEST

START_TEST(everything_has_the_security_headers)
{
    static const char *const paths[] = {"/", "/page.js", "/api/v1/tasks", "/nothing", "/health"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        scene_ask(&scene, "GET", paths[i], "", NULL);
        static const char *const lines[] = {
            "content-security-policy: default-src 'none'; script-src 'self';",
            "frame-ancestors 'none'\r\n", "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n", "cache-control: no-store\r\n"};
        for (size_t j = 0; j < sizeof lines / sizeof *lines; j++)
            ck_assert_msg(strstr(scene.head, lines[j]) != NULL, "%s: no %s in %s", paths[i],
                          lines[j], scene.head);
    }
}
END_TEST

/* ---- tasks ---- */

START_TEST(a_task_has_every_member)
{
    scene_create(&scene, "drop", "{ \"table\" : \"a b\", \"n\": 12345678901234567890 }");
    scene_get(&scene, task_path(""), 200);
    char *start_of_it =
        memory_format("{\"id\":\"%s\",\"state\":\"pending\",\"status\":\"input_"
                      "required\",\"source\":\"up\",\"tool\":\"drop\","
                      "\"arguments\":{\"table\":\"a b\",\"n\":"
                      "12345678901234567890},\"meta\":{},\"otherParams\":{},"
                      "\"redactFields\":[\"password\",\"card.number\"],\"argumentsDigest\":\"",
                      scene.id);
    scene_has(&scene, start_of_it);
    free(start_of_it);
    scene_has(&scene,
              "\"principal\":\"agent "
              "1f2e\",\"principalBy\":\"client\",\"workflow\":\"default\",\"createdAt\":\"20");
    scene_has(&scene, "\"executeBy\":null,\"decidedAt\":null,\"decidedBy\":null,\"reason\":null,"
                      "\"statusMessage\":\"\",\"digest\":\"");
}
END_TEST

START_TEST(redacted_values_are_hidden_wherever_the_path_leads)
{
    scene_create(&scene, "pay",
                 "{\"pass\\u0077ord\":{\"x\":1},\"card\":[{\"number\":\"4111\",\"name\":\"A\"},"
                 "{\"number\":[4112]}],\"list\":[],\"o\":{},\"number\":7,\"x\":{\"password\":8}}");
    scene_get(&scene, task_path(""), 200);
    scene_has(&scene, "\"arguments\":{\"pass\\u0077ord\":\"[REDACTED]\",\"card\":[{\"number\":"
                      "\"[REDACTED]\",\"name\":\"A\"},{\"number\":\"[REDACTED]\"}],\"list\":[],"
                      "\"o\":{},\"number\":7,\"x\":{\"password\":8}}");
    /* A removed workflow: the fields of all workflows stay hidden. */
    scene_configure(true, "approval: {other: {timeout: 10m, redact_fields: [number]}}\n");
    scene_get(&scene, task_path(""), 200);
    scene_has(&scene, "\"number\":\"[REDACTED]\",\"x\"");
}
END_TEST

START_TEST(lists_are_paged_and_filtered)
{
    char ids[5][TASK_ID_BYTES];
    for (int i = 0; i < 5; i++) {
        scene_create(&scene, i == 2 ? "odd" : "even", "{}");
        memcpy(ids[i], scene.id, sizeof ids[i]);
    }
    scene_get(&scene, "/api/v1/tasks?tool=odd", 200);
    scene_has(&scene, ids[2]);
    scene_has_not(&scene, ids[3]);
    scene_has(&scene, "\"nextCursor\":null}");
    scene_get(&scene, "/api/v1/tasks?limit=2&state=pending,expired&source=u%70", 200);
    scene_has(&scene, ids[4]);
    scene_has(&scene, ids[3]);
    scene_has_not(&scene, ids[2]);
    char *cursor = strstr(scene.body, "\"nextCursor\":\"");
    ck_assert_ptr_nonnull(cursor);
    cursor += strlen("\"nextCursor\":\"");
    cursor[strcspn(cursor, "\"")] = '\0';
    char *path = memory_format("/api/v1/tasks?limit=2&cursor=%s", cursor);
    scene_get(&scene, path, 200);
    free(path);
    scene_has(&scene, ids[2]);
    scene_has(&scene, ids[1]);
    scene_has_not(&scene, ids[3]);
    scene_get(&scene, "/api/v1/tasks?source=other", 200);
    scene_has(&scene, "{\"tasks\":[],\"nextCursor\":null}");
}
END_TEST

START_TEST(queries_that_mean_nothing_are_refused)
{
    static const char *const queries[] = {
        "limit=0",
        "limit=101",
        "limit=x",
        "limit=",
        "limit=-1",
        "cursor=",
        "cursor=zzz",
        "cursor=c",
        "cursor=c0",
        "cursor=c01",
        "cursor=cffffffffffffffff",
        "cursor=c1x",
        "state=open",
        "stat=active",
        "tool=%zz",
        "tool=%4",
        "cursor=C1",
    };
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        char *path = memory_format("/api/v1/tasks?%s", queries[i]);
        scene_get(&scene, path, 400);
        scene_has(&scene, "{\"error\":{\"code\":\"invalid_request\",\"message\":\"");
        free(path);
    }
}
END_TEST

/* ---- decisions ---- */

START_TEST(a_decision_is_kept_with_who_and_why)
{
    scene_create(&scene, "drop", "{}");
    scene_post(&scene, task_path("/approve"), "{\"reason\": \"asked Ada\"}", 200);
    scene_has(&scene, "\"state\":\"approved\",\"status\":\"working\"");
    scene_has(&scene, "\"decidedBy\":\"hand\",\"reason\":\"asked Ada\"");
    scene_has_not(&scene, "\"executeBy\":null");
    scene_get(&scene, task_path(""), 200);
    scene_has(&scene, "\"decidedBy\":\"hand\"");
    scene_post(&scene, task_path("/reject"), "{}", 409);
    scene_has(&scene, "\"code\":\"conflict\"");
    scene_has(&scene, "\"state\":\"approved\"}}");
    scene_post(&scene, task_path("/cancel"), "", 200);
    scene_has(&scene, "\"state\":\"cancelled\",\"status\":\"cancelled\"");
    scene_create(&scene, "drop", "{}");
    scene_post(&scene, task_path("/reject"), "{\"reason\":null}", 200);
    scene_has(&scene, "\"state\":\"rejected\",\"status\":\"failed\"");
}
END_TEST

START_TEST(what_runs_is_not_approved_into_running_again)
{
    scene_create(&scene, "drop", "{}");
    scene_post(&scene, task_path("/approve"), "{}", 200);
    scene_change(&scene, &(struct task_change){.to = TASK_EXECUTING});
    scene_post(&scene, task_path("/approve"), "{}", 409);
    scene_has(&scene, "\"state\":\"executing\"}}");
    scene_get(&scene, task_path(""), 200);
    scene_has(&scene, "\"state\":\"executing\"");
}
END_TEST

START_TEST(bodies_are_json_with_a_reason_or_nothing)
{
    static const struct {
        const char *type, *body;
        int status;
    } rows[] = {
        {"Content-Type: application/json\r\n", "{", 400},
        {"Content-Type: application/json\r\n", "[]", 400},
        {"Content-Type: application/json\r\n", "{} {}", 400},
        {"Content-Type: application/json\r\n", "{\"reason\":5}", 400},
        {"Content-Type: application/json\r\n", "{\"reason\":\"a\",\"reason\":\"b\"}", 400},
        {"Content-Type: application/json\r\n", "{\"reason\":\"a\\u0000b\"}", 400},
        {"Content-Type: application/json\r\n", "{\"raeson\":\"a\"}", 400},
        {"Content-Type: text/plain\r\n", "{}", 415},
        {"Content-Type: application/x-www-form-urlencoded\r\n", "", 415},
        {"", "{}", 415},
        {"Content-Type: application/json; charset=utf-8\r\n", "{\"reason\":\"ok\"}", 200},
    };
    scene_create(&scene, "drop", "{}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *headers = memory_format(AS("decide") "%s", rows[i].type);
        int status = scene_ask(&scene, "POST", task_path("/approve"), headers, rows[i].body);
        ck_assert_msg(status == rows[i].status, "%s gave %d %s", rows[i].body, status, scene.body);
        free(headers);
    }
    scene_create(&scene, "drop", "{}");
    char long_body[2100] = "{\"reason\":\"";
    memset(long_body + 11, 'x', 2001);
    memcpy(long_body + 2012, "\"}", 3);
    scene_post(&scene, task_path("/approve"), long_body, 400);
    ck_assert_int_eq(scene_ask(&scene, "POST", task_path("/approve"), AS("decide"), ""), 200);
    scene_post(&scene, "/api/v1/tasks/tg_00000000-0000-4000-8000-000000000000/approve", "{}", 404);
    scene_get(&scene, "/api/v1/tasks/nothing", 404);
}
END_TEST

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
    scene_post(&scene, task_path("/approve"), "{}", 200);
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
    scene_post(&scene, task_path("/reject"), "{}", 200);
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
    scene_post(&scene, task_path("/approve"), "{}", 200);
    scene_change(&scene, &(struct task_change){.to = TASK_EXECUTING});
    scene_change(&scene, &(struct task_change){.to = TASK_APPROVED});
    scene_post(&scene, task_path("/cancel"), "{}", 200);
    scene_create(&scene, "b", "{}");
    scene_post(&scene, task_path("/reject"), "{}", 200);
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
        {"/json.js", "text/javascript"},
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

int main(void)
{
    TCase *cases = tcase_create("admin");
    tcase_add_checked_fixture(cases, start, finish);
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, every_route_asks_for_its_role);
    tcase_add_test(cases, a_token_in_the_query_is_refused_even_beside_a_good_one);
    tcase_add_test(cases, paths_and_methods_are_closed);
    tcase_add_test(cases, foreign_sites_are_refused_before_anything_else);
    tcase_add_test(cases, everything_has_the_security_headers);
    tcase_add_test(cases, a_task_has_every_member);
    tcase_add_test(cases, redacted_values_are_hidden_wherever_the_path_leads);
    tcase_add_test(cases, lists_are_paged_and_filtered);
    tcase_add_test(cases, queries_that_mean_nothing_are_refused);
    tcase_add_test(cases, a_decision_is_kept_with_who_and_why);
    tcase_add_test(cases, what_runs_is_not_approved_into_running_again);
    tcase_add_test(cases, bodies_are_json_with_a_reason_or_nothing);
    tcase_add_test(cases, changes_are_told_as_they_are_committed);
    tcase_add_test(cases, large_tasks_are_told_but_not_all_kept);
    tcase_add_test(cases, a_token_that_is_taken_away_ends_its_stream);
    tcase_add_test(cases, shutting_down_ends_streams_and_readiness_but_not_decisions);
    tcase_add_test(cases, probes_say_what_is);
    tcase_add_test(cases, metrics_follow_the_tasks_and_the_accept_header);
    tcase_add_test(cases, the_page_is_static);
    Suite *suite = suite_create("admin");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
