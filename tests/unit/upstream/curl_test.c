/* Promises of the client by libcurl alone: heads that our own client would refuse. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "curl_client.h"
#include "scene.h"
#include "suite.h"
#include "taskgate/core/clock.h"

/* libcurl 7.88 would append a folded first line to the last header of the handle's previous
 * transfer, which is freed memory. Without a previous transfer it refuses the response; libcurl
 * 8.14 hands the line over, and ignores its blanks. */
START_TEST(a_folded_first_line_touches_nothing_of_the_transfer_before)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peers[2];
    start(&scene);
    for (int i = 0; i < 3; i++) {
        const bool is_folded = i == 1;
        struct peer *peer = &peers[i / 2];
        post_to(&scene, &record);
        if (!is_folded)
            origin_accept(&scene.origin, peer);
        peer_await(peer, "{\"a\":1}");
        peer_clear(peer);
        peer_send_text(peer, "HTTP/1.1 200 OK\r\n");
        if (is_folded)
            peer_send_text(peer, " folded: 0123456789012345678901234567890123456789\r\n");
        peer_send_text(peer, "X-A: b\r\nContent-Length: 2\r\n\r\nok");
        await_end(&record, is_folded ? UPSTREAM_GONE : UPSTREAM_DONE);
        expect_text(&record.body, is_folded ? "" : "ok");
        forget(&record);
    }
    ck_assert(!origin_has_client(&scene.origin));
    peer_close(&peers[0]);
    peer_close(&peers[1]);
    stop(&scene);
}
END_TEST

static const struct {
    const char *line;
    const char *name; /* of the only header; NULL: none */
    const char *value;
    bool is_refused;
} lines[] = {
    {"A:b\r\n", "a", "b", false},        {"A:\r\n", "a", "", false},
    {"no colon\r\n", NULL, NULL, false}, {" A: b\r\n", NULL, NULL, true},
    {":\r\n", NULL, NULL, true},         {" \t: b\r\n", NULL, NULL, true},
    {": b\r\n", NULL, NULL, true},       {"\tA: b\r\n", NULL, NULL, true},
    {" \r\n", NULL, NULL, true},         {" HTTP/1.1 500 Oops\r\n", NULL, NULL, true},
};

START_TEST(a_line_of_a_head_is_a_header_or_refused)
{
    struct curl_head head;
    curl_head_init(&head);
    ck_assert_ptr_null(curl_head_add_line(&head, STR("HTTP/1.1 200 OK\r\n")));
    const char *fault = curl_head_add_line(&head, str_from(lines[_i].line));
    ck_assert_int_eq(fault != NULL, lines[_i].is_refused);
    ck_assert(!head.is_complete);
    ck_assert_int_eq(head.status, 200);
    ck_assert_ptr_null(curl_head_add_line(&head, STR("\r\n")));
    ck_assert(head.is_complete);
    struct http_header *headers = curl_head_headers(&head);
    ck_assert_uint_eq(head.count, lines[_i].name != NULL);
    if (head.count == 1) {
        ck_assert(str_equal(headers[0].name, str_from(lines[_i].name)));
        ck_assert(str_equal(headers[0].value, str_from(lines[_i].value)));
    }
    free(headers);
    curl_head_finish(&head);
}
END_TEST

/* ---- https ---- */

static CURL *(*take_easy)(void);

static CURL *take_easy_that_trusts(void)
{
    CURL *easy = take_easy();
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    return easy;
}

static void post_to_tls(struct scene *scene, const struct tls_origin *origin, int answers)
{
    struct record record = {.status = 0};
    struct upstream_request request = post;
    char url[64];
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/", tls_origin_port(origin));
    request.url = url;
    call_with(scene, &record, request);
    await_end(&record, UPSTREAM_DONE);
    expect_text(&record.body, "ok");
    forget(&record);
    int64_t give_up_ms = clock_monotonic_ms() + 10000;
    while (tls_origin_answers(origin) < answers && clock_monotonic_ms() < give_up_ms)
        ;
    ck_assert_int_eq(tls_origin_answers(origin), answers);
}

/* _i: the first answer comes once, twice. A server of TLS 1.3 also sends tickets without a
 * request. */
START_TEST(a_tls_connection_is_kept_unless_something_is_unread)
{
    struct scene scene;
    const char *another = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    struct tls_origin *origin =
        tls_origin_start_answering(SHORT_ANSWER, _i == 0 ? NULL : another, _i == 0 ? 1 : 2);
    start(&scene);
    take_easy = curl_library.easy_init;
    curl_library.easy_init = take_easy_that_trusts;
    for (int i = 1; i <= 4; i++)
        post_to_tls(&scene, origin, i);
    stop(&scene);
    curl_library.easy_init = take_easy;
    tls_origin_stop(origin);
}
END_TEST

TCase *curl_tests(void)
{
    TCase *tests = tcase_create("curl_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_folded_first_line_touches_nothing_of_the_transfer_before);
    tcase_add_loop_test(tests, a_line_of_a_head_is_a_header_or_refused, 0,
                        (int)(sizeof(lines) / sizeof(lines[0])));
    tcase_add_loop_test(tests, a_tls_connection_is_kept_unless_something_is_unread, 0, 2);
    return tests;
}
