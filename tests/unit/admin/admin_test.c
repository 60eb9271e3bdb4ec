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
        {"GET", "/api/v1/definitions", "", 401},
        {"GET", "/api/v1/definitions", AS("call"), 403},
        {"GET", "/api/v1/definitions", AS("view"), 200},
        {"GET", "/api/v1/definitions", AS("audit"), 200},
        {"POST", "/api/v1/definitions/accept", AS("view"), 403},
        {"POST", "/api/v1/definitions/accept", AS("audit"), 403},
        {"POST", "/api/v1/definitions/accept", AS("call"), 403},
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
        {"/ready", "Host: 10.0.0.7:7469\r\n", 403},
        {"/metrics", "Host: 10.0.0.7:7469\r\n", 403},
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
        const char *const lines[] = {
            "content-security-policy: default-src 'none'; script-src 'self';",
            "frame-ancestors 'none'\r\n", "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n", "cross-origin-opener-policy: same-origin\r\n",
            /* The page's files alone are kept, and asked for each time. */
            i < 2 ? "cache-control: no-cache\r\n" : "cache-control: no-store\r\n"};
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
    scene_get(&scene, scene_task_path(&scene, ""), 200);
    char *start_of_it =
        memory_format("{\"id\":\"%s\",\"state\":\"pending\",\"status\":\"input_"
                      "required\",\"source\":\"up\",\"tool\":\"drop\","
                      "\"arguments\":{\"table\":\"a b\",\"n\":"
                      "12345678901234567890},\"meta\":{},\"otherParams\":{},\"headers\":{},"
                      "\"redactFields\":[\"password\",\"card.number\"],\"argumentsDigest\":\"",
                      scene.id);
    scene_has(&scene, start_of_it);
    free(start_of_it);
    scene_has(&scene,
              "\"principal\":\"agent "
              "1f2e\",\"principalBy\":\"client\",\"workflow\":\"default\",\"createdAt\":\"20");
    scene_has(&scene, "\"executeBy\":null,\"execution\":null,\"decidedAt\":null,\"decidedBy\":null,"
                      "\"reason\":null,"
                      "\"statusMessage\":\"\",\"digest\":\"");
}
END_TEST

START_TEST(redacted_values_are_hidden_wherever_the_path_leads)
{
    scene_create(&scene, "pay",
                 "{\"pass\\u0077ord\":{\"x\":1},\"card\":[{\"number\":\"4111\",\"name\":\"A\"},"
                 "{\"number\":[4112]}],\"list\":[],\"o\":{},\"number\":7,\"x\":{\"password\":8}}");
    scene_get(&scene, scene_task_path(&scene, ""), 200);
    scene_has(&scene, "\"arguments\":{\"pass\\u0077ord\":\"[REDACTED]\",\"card\":[{\"number\":"
                      "\"[REDACTED]\",\"name\":\"A\"},{\"number\":\"[REDACTED]\"}],\"list\":[],"
                      "\"o\":{},\"number\":7,\"x\":{\"password\":8}}");
    /* A removed workflow: the fields of all workflows stay hidden. */
    scene_configure(true, "approval: {other: {timeout: 10m, redact_fields: [number]}}\n");
    scene_get(&scene, scene_task_path(&scene, ""), 200);
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
    scene_post(&scene, scene_task_path(&scene, "/approve"), "{\"reason\": \"asked Ada\"}", 200);
    scene_has(&scene, "\"state\":\"approved\",\"status\":\"working\"");
    scene_has(&scene, "\"decidedBy\":\"hand\",\"reason\":\"asked Ada\"");
    scene_has_not(&scene, "\"executeBy\":null");
    scene_get(&scene, scene_task_path(&scene, ""), 200);
    scene_has(&scene, "\"decidedBy\":\"hand\"");
    scene_post(&scene, scene_task_path(&scene, "/reject"), "{}", 409);
    scene_has(&scene, "\"code\":\"conflict\"");
    scene_has(&scene, "\"state\":\"approved\"}}");
    scene_post(&scene, scene_task_path(&scene, "/cancel"), "", 200);
    scene_has(&scene, "\"state\":\"cancelled\",\"status\":\"cancelled\"");
    scene_create(&scene, "drop", "{}");
    scene_post(&scene, scene_task_path(&scene, "/reject"), "{\"reason\":null}", 200);
    scene_has(&scene, "\"state\":\"rejected\",\"status\":\"failed\"");
}
END_TEST

START_TEST(a_running_call_is_not_approved_into_running_again)
{
    scene_create(&scene, "drop", "{}");
    scene_post(&scene, scene_task_path(&scene, "/approve"), "{}", 200);
    scene_change(&scene, &(struct task_change){.to = TASK_EXECUTING});
    scene_post(&scene, scene_task_path(&scene, "/approve"), "{}", 409);
    scene_has(&scene, "\"state\":\"executing\"}}");
    scene_get(&scene, scene_task_path(&scene, ""), 200);
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
        int status =
            scene_ask(&scene, "POST", scene_task_path(&scene, "/approve"), headers, rows[i].body);
        ck_assert_msg(status == rows[i].status, "%s gave %d %s", rows[i].body, status, scene.body);
        free(headers);
    }
    scene_create(&scene, "drop", "{}");
    char long_body[2100] = "{\"reason\":\"";
    memset(long_body + 11, 'x', 2001);
    memcpy(long_body + 2012, "\"}", 3);
    scene_post(&scene, scene_task_path(&scene, "/approve"), long_body, 400);
    ck_assert_int_eq(
        scene_ask(&scene, "POST", scene_task_path(&scene, "/approve"), AS("decide"), ""), 200);
    scene_post(&scene, "/api/v1/tasks/tg_00000000-0000-4000-8000-000000000000/approve", "{}", 404);
    scene_get(&scene, "/api/v1/tasks/nothing", 404);
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
    tcase_add_test(cases, a_running_call_is_not_approved_into_running_again);
    tcase_add_test(cases, bodies_are_json_with_a_reason_or_nothing);
    Suite *suite = suite_create("admin");
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, events_case());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
