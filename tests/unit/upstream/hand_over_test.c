/* A running call with a new owner: the memory that it still needs of its first owner, the receiver
 * of its events, and the permitted silence of upstream from then on. */
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

static void new_body(void *context, struct str bytes)
{
    struct record *record = context;
    record->pieces++;
    buffer_append(&record->body, bytes);
}

static void new_head(void *context, int status, const struct http_header *headers, size_t count)
{
    struct record *record = context;
    record->heads++;
    record->status = status;
}

static void new_end(void *context, enum upstream_result result, const char *detail)
{
    struct record *record = context;
    record->ends++;
    record->result = result;
}

static void hand_to_other(struct record *record)
{
    static const struct upstream_callbacks callbacks = {new_head, new_body, new_end};
    record->in_head = record->in_body = NULL;
    upstream_call_hand_over(record->call, &callbacks, record->other);
}

/* _i: before anything has come, in the head, in the body. */
START_TEST(the_new_owner_is_told_what_comes_from_then_on)
{
    static const struct {
        const char *before, *after;
        int first_heads, second_heads;
    } cases[] = {{"", "hello world", 0, 1}, {"", "hello world", 1, 0}, {"hello ", "world", 1, 0}};
    struct scene scene;
    struct record second = {.status = 0};
    struct record first = {.in_head = _i == 1 ? hand_to_other : NULL,
                           .in_body = _i == 2 ? hand_to_other : NULL,
                           .other = &second};
    struct peer peer;
    buffer_init(&second.headers);
    buffer_init(&second.body);
    second.scene = &scene;
    start(&scene);
    post_to(&scene, &first);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    if (_i == 0)
        hand_to_other(&first);
    peer_send_text(&peer, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello ");
    run_until(scene.loop, _i == 2 ? &first.pieces : &second.pieces, 1);
    peer_send_text(&peer, "world");
    await_end(&second, UPSTREAM_DONE);
    expect_text(&first.body, cases[_i].before);
    expect_text(&second.body, cases[_i].after);
    ck_assert_int_eq(first.heads, cases[_i].first_heads);
    ck_assert_int_eq(second.heads, cases[_i].second_heads);
    ck_assert_int_eq(first.ends, 0);
    forget(&first);
    forget(&second);
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

TCase *hand_over_tests(void)
{
    TCase *tests = tcase_create("hand_over_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_body_that_has_gone_out_is_no_longer_needed, 0, 2);
    tcase_add_test(tests, without_a_body_nothing_is_needed);
    tcase_add_loop_test(tests, the_new_owner_is_told_what_comes_from_then_on, 0, 3);
    tcase_add_loop_test(tests, the_silence_limit_can_be_lifted_and_set_again, 0, 2);
    tcase_add_test(tests, a_limit_set_before_there_is_a_connection_holds_after);
    return tests;
}
