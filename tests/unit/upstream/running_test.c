/* A running call: whether it still needs its body, and another limit of silence. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"
#include "suite.h"
#include "taskgate/core/clock.h"

/* _i: a body that goes out with the head, and one that needs many writes. */
START_TEST(a_body_that_has_gone_out_is_no_longer_needed)
{
    const size_t length = _i == 0 ? 1000 : (size_t)16 << 20;
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    struct upstream_request request = post;
    char *body = malloc(length);
    ck_assert_ptr_nonnull(body);
    memset(body, 'b', length);
    request.body = str_slice(body, length);
    start(&scene);
    call_with(&scene, &record, request);
    ck_assert(!upstream_call_has_begun(record.call));
    ck_assert(!upstream_call_has_sent(record.call));
    origin_accept(&scene.origin, &peer);
    if (_i == 1) {
        peer_await(&peer, "bbbb");
        ck_assert(!upstream_call_has_sent(record.call)); /* more than two sockets hold */
    }
    peer_await(&peer, "\r\n\r\n");
    const char *end = memmem(peer.received.bytes, peer.received.length, "\r\n\r\n", 4);
    size_t head = (size_t)(end + 4 - peer.received.bytes);
    peer_await_bytes(&peer, head + length);
    run_idle(scene.loop);
    ck_assert(upstream_call_has_begun(record.call));
    ck_assert(upstream_call_has_sent(record.call));
    memset(body, 'x', length);
    free(body);
    peer_send_text(&peer, SHORT_ANSWER);
    await_end(&record, UPSTREAM_DONE);
    expect_text(&record.body, "ok");
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(without_a_body_nothing_is_needed)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    call_with(&scene, &record, get);
    ck_assert(upstream_call_has_sent(record.call));
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "\r\n\r\n");
    peer_send_text(&peer, SHORT_ANSWER);
    await_end(&record, UPSTREAM_DONE);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static void run_for(struct scene *scene, int64_t time_ms)
{
    int64_t start_ms = clock_monotonic_ms();
    while (clock_monotonic_ms() - start_ms < time_ms)
        loop_run_once(scene->loop, 5);
}

/* _i: before the response, and within its body. */
START_TEST(the_silence_limit_can_be_lifted_and_set_again)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    post_to(&scene, &record);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    if (_i == 1) {
        peer_send_text(&peer, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello ");
        run_until(scene.loop, &record.pieces, 1);
    }
    upstream_call_set_silence(record.call, 400);
    upstream_call_set_silence(record.call, 0);
    run_for(&scene, 700);
    ck_assert_int_eq(record.ends, 0);
    upstream_call_set_silence(record.call, 50);
    await_end(&record, UPSTREAM_SILENT);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_limit_set_before_there_is_a_connection_holds_after)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    post_to(&scene, &record);
    upstream_call_set_silence(record.call, 100);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    await_end(&record, UPSTREAM_SILENT);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

TCase *running_tests(void)
{
    TCase *tests = tcase_create("running_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_body_that_has_gone_out_is_no_longer_needed, 0, 2);
    tcase_add_test(tests, without_a_body_nothing_is_needed);
    tcase_add_loop_test(tests, the_silence_limit_can_be_lifted_and_set_again, 0, 2);
    tcase_add_test(tests, a_limit_set_before_there_is_a_connection_holds_after);
    return tests;
}
