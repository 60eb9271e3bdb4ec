/* Calls that fail, and connections that are kept alive. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "scene.h"
#include "suite.h"
#include "taskgate/core/clock.h"

static const struct {
    const char *url;
    const char *name;
    const char *value;
    bool is_clean; /* as from the parser of a request */
} never_sent[] = {
    {"http://127.0.0.1:1/", "x", "1"},     /* refused */
    {"http://no.such.invalid/", "x", "1"}, /* no such name */
    {"ftp://127.0.0.1/", "x", "1"},        /* not ours to speak */
    {"http://", "x", "1"},                 /* no URL */
    {NULL, "x", "1\r\nx-evil: 2"},         /* split */
    {NULL, "x", "1\ny"},
    {NULL, "x\"", "1"},
    {NULL, "x y", "1"},
    {NULL, "x:", "1"},
    {NULL, "", "1"},
    {NULL, "x y", "1", true}, /* the parser lets it through */
    {NULL, "x\xC3\x84", "1", true},
};

START_TEST(an_unsendable_request_is_a_failed_connect)
{
    struct scene scene;
    struct record record = {.status = 0};
    start(&scene);
    const struct http_header header = {str_from(never_sent[_i].name),
                                       str_from(never_sent[_i].value), HTTP_NAME_OTHER,
                                       never_sent[_i].is_clean};
    call_with(&scene, &record,
              (struct upstream_request){.method = "POST",
                                        .url = never_sent[_i].url,
                                        .headers = &header,
                                        .header_count = 1,
                                        .body = STR("x")});
    await_end(&record, UPSTREAM_CONNECT_FAILED);
    ck_assert_uint_gt(strlen(record.detail), 0);
    ck_assert_int_eq(record.heads, 0);
    ck_assert(!origin_has_client(&scene.origin));
    forget(&record);
    stop(&scene);
}
END_TEST

START_TEST(a_self_signed_certificate_is_a_failed_connect)
{
    struct scene scene;
    struct record record = {.status = 0};
    char url[64];
    start(&scene);
    struct tls_origin *origin = tls_origin_start();
    snprintf(url, sizeof(url), "https://localhost:%u/", tls_origin_port(origin));
    struct upstream_request request = post;
    request.url = url;
    call_with(&scene, &record, request);
    await_end(&record, UPSTREAM_CONNECT_FAILED);
    ck_assert_ptr_nonnull(strstr(record.detail, "certificate"));
    ck_assert_int_eq(tls_origin_stop(origin), 0);
    forget(&record);
    stop(&scene);
}
END_TEST

static const struct {
    const char *answer; /* sent before the connection breaks */
    bool by_reset;
    int heads;
} breaks[] = {
    {"", false, 0},
    {"", true, 0},
    {"HTTP/1.1 200 OK\r\nContent-", false, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", false, 1},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false, 1},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true, 1},
    {"this is not HTTP\r\n\r\n", false, 0},
};

START_TEST(a_connection_that_breaks_is_gone)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    post_to(&scene, &record);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, breaks[_i].answer);
    run_until(scene.loop, &record.heads, breaks[_i].heads);
    run_idle(scene.loop);
    if (breaks[_i].by_reset)
        peer_reset(&peer);
    else
        peer_close(&peer);
    await_end(&record, UPSTREAM_GONE);
    ck_assert_uint_gt(strlen(record.detail), 0);
    ck_assert_int_eq(record.heads, breaks[_i].heads);
    if (breaks[_i].heads > 0)
        expect_text(&record.body, "abc");
    ck_assert(!origin_has_client(&scene.origin));
    forget(&record);
    stop(&scene);
}
END_TEST

/* A listener whose queue is full lets every connect hang. */
START_TEST(a_connect_that_hangs_ends_at_its_limit)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer fillers[8];
    char url[64];
    struct upstream_request request = post;
    start(&scene);
    ck_assert_int_eq(listen(scene.origin.fd, 0), 0);
    for (int i = 0; i < 8; i++)
        origin_fill(&scene.origin, &fillers[i]);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", scene.origin.port);
    request.url = url;
    request.connect_timeout_ms = _i == 0 ? 200 : 0;
    request.silence_timeout_ms = _i == 0 ? 0 : 200;
    int64_t start_ms = clock_monotonic_ms();
    call_with(&scene, &record, request);
    await_end(&record, UPSTREAM_CONNECT_FAILED);
    ck_assert_int_ge(clock_monotonic_ms() - start_ms, 200);
    ck_assert_uint_gt(strlen(record.detail), 0);
    forget(&record);
    for (int i = 0; i < 8; i++)
        peer_close(&fillers[i]);
    stop(&scene);
}
END_TEST

/* Sends a byte every 20 ms for longer than the limit. Returns when the last was sent, or 0 when the
 * machine stood still for so long that nothing can be said of the limit. */
static int64_t send_slowly(struct scene *scene, struct peer *peer, int64_t limit_ms)
{
    int64_t start_ms = clock_monotonic_ms(), sent_ms = start_ms, now_ms = start_ms;
    bool has_stalled = false;
    while (now_ms - start_ms < 2 * limit_ms && !has_stalled) {
        if (now_ms - sent_ms >= 20) {
            peer_send_text(peer, "1\r\n:\r\n");
            sent_ms = now_ms;
        }
        loop_run_once(scene->loop, 5);
        now_ms = clock_monotonic_ms();
        has_stalled = now_ms - sent_ms > limit_ms / 2;
    }
    return has_stalled ? 0 : sent_ms;
}

START_TEST(silence_ends_a_call_and_any_byte_is_life)
{
    int64_t sent_ms = 0;
    for (int64_t limit_ms = 400; sent_ms == 0; limit_ms *= 2) {
        struct scene scene;
        struct record record = {.status = 0};
        struct peer peer;
        ck_assert_int_le(limit_ms, 6400);
        start(&scene);
        post_to(&scene, &record);
        origin_accept(&scene.origin, &peer);
        peer_await(&peer, "{\"a\":1}");
        peer_send_text(&peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        upstream_call_set_silence(record.call, limit_ms);
        sent_ms = send_slowly(&scene, &peer, limit_ms);
        ck_assert(sent_ms == 0 || record.ends == 0);
        await_end(&record, UPSTREAM_SILENT);
        ck_assert_int_ge(clock_monotonic_ms() - sent_ms, limit_ms);
        peer_await_close(&peer);
        forget(&record);
        peer_close(&peer);
        stop(&scene);
    }
}
END_TEST

/* A server may refuse a body before it has read it. */
START_TEST(an_answer_before_the_whole_request_was_sent_counts)
{
    enum { LENGTH = 32 << 20 };
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    struct upstream_request request = post;
    char *bytes = calloc(1, LENGTH);
    ck_assert_ptr_nonnull(bytes);
    start(&scene);
    request.body = str_slice(bytes, LENGTH);
    call_with(&scene, &record, request);
    origin_accept(&scene.origin, &peer);
    run_idle(scene.loop);
    peer_send_text(&peer, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    await_end(&record, UPSTREAM_DONE);
    ck_assert_int_eq(record.status, 413);
    expect_text(&record.body, "no");
    run_idle(scene.loop); /* its connection is not used again */
    int64_t start_ms = clock_monotonic_ms();
    peer_await_close(&peer);
    ck_assert_int_lt(clock_monotonic_ms() - start_ms, 3500); /* an idle one's end is at 4000 */
    free(bytes);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static void answer_first(struct scene *scene, struct record *record, struct peer *peer)
{
    post_to(scene, record);
    origin_accept(&scene->origin, peer);
    peer_await(peer, "{\"a\":1}");
    peer_send_text(peer, SHORT_ANSWER);
    await_end(record, UPSTREAM_DONE);
    forget(record);
    peer_clear(peer);
}

START_TEST(a_connection_is_used_again)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    answer_first(&scene, &record, &peer);
    for (int i = 0; i < 3; i++) {
        call_with(&scene, &record, i == 1 ? get : post);
        peer_await(&peer, i == 1 ? "GET " : "{\"a\":1}");
        peer_send_text(&peer, SHORT_ANSWER);
        await_end(&record, UPSTREAM_DONE);
        expect_text(&record.body, "ok");
        forget(&record);
        peer_clear(&peer);
        ck_assert(!origin_has_client(&scene.origin));
    }
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_connection_that_was_closed_while_idle_is_replaced)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    answer_first(&scene, &record, &peer);
    peer_close(&peer);
    answer_first(&scene, &record, &peer);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_post_that_was_sent_is_never_sent_again)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    answer_first(&scene, &record, &peer);
    post_to(&scene, &record);
    peer_await(&peer, "{\"a\":1}"); /* on the connection kept from before */
    if (_i == 0)
        peer_close(&peer);
    else
        peer_reset(&peer);
    await_end(&record, UPSTREAM_GONE);
    run_idle(scene.loop);
    if (origin_has_client(&scene.origin)) { /* a connection may have been made, in vain */
        origin_accept(&scene.origin, &peer);
        run_idle(scene.loop);
        peer_receive(&peer);
        ck_assert_uint_eq(peer.received.length, 0);
        peer_close(&peer);
    }
    forget(&record);
    stop(&scene);
}
END_TEST

START_TEST(a_get_is_sent_again_when_a_kept_connection_breaks_under_it)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    answer_first(&scene, &record, &peer);
    call_with(&scene, &record, get);
    peer_await(&peer, "GET ");
    peer_close(&peer);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "GET ");
    peer_send_text(&peer, SHORT_ANSWER);
    await_end(&record, UPSTREAM_DONE);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(an_unknown_client_is_refused)
{
    struct error error = {""};
    struct loop *loop = loop_create(&error);
    setenv("THOUGHTGATE_UPSTREAM_CLIENT", "Curl", 1); /* in this test's own process */
    ck_assert_ptr_null(upstream_client_create(loop, 8, &error));
    ck_assert_ptr_nonnull(strstr(error.message, "THOUGHTGATE_UPSTREAM_CLIENT: \"Curl\""));
    loop_destroy(loop);
}
END_TEST

TCase *failure_tests(void)
{
    TCase *tests = tcase_create("failure_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, an_unsendable_request_is_a_failed_connect, 0, 12);
    tcase_add_test(tests, a_self_signed_certificate_is_a_failed_connect);
    tcase_add_loop_test(tests, a_connection_that_breaks_is_gone, 0, 7);
    tcase_add_loop_test(tests, a_connect_that_hangs_ends_at_its_limit, 0, 2);
    tcase_add_test(tests, silence_ends_a_call_and_any_byte_is_life);
    tcase_add_test(tests, an_answer_before_the_whole_request_was_sent_counts);
    tcase_add_test(tests, a_connection_is_used_again);
    tcase_add_test(tests, a_connection_that_was_closed_while_idle_is_replaced);
    tcase_add_loop_test(tests, a_post_that_was_sent_is_never_sent_again, 0, 2);
    tcase_add_test(tests, an_unknown_client_is_refused);
    tcase_add_test(tests, a_get_is_sent_again_when_a_kept_connection_breaks_under_it);
    return tests;
}
