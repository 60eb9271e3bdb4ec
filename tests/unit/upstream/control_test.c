/* Pausing, cancelling and starting calls, from anywhere. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "scene.h"
#include "suite.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"

static void resume_later(void *context)
{
    struct record *record = context;
    if (record->call != NULL)
        upstream_call_resume(record->call);
}

static void pause_often(struct record *record)
{
    if (record->pieces % 64 == 0) {
        upstream_call_pause(record->call);
        loop_timer_start(&record->timer, 0);
    }
}

START_TEST(sixty_megabytes_come_through_pauses_unharmed)
{
    enum { LENGTH = 60 << 20 };
    struct scene scene;
    struct record record = {.in_body = pause_often};
    struct peer peer;
    char sent[DIGEST_HEX_BYTES], received[DIGEST_HEX_BYTES];
    start(&scene);
    uint32_t *words = malloc(LENGTH);
    ck_assert_ptr_nonnull(words);
    uint32_t random = 1;
    for (size_t i = 0; i < LENGTH / sizeof(*words); i++)
        words[i] = random = random * 1664525u + 1013904223u;
    loop_timer_init(&record.timer, scene.loop, resume_later, &record);
    post_to(&scene, &record);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    char head[64];
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LENGTH);
    peer_send_text(&peer, head);
    peer_send(&peer, str_slice((const char *)words, LENGTH));
    await_end(&record, UPSTREAM_DONE);
    loop_timer_stop(&record.timer);
    ck_assert_uint_eq(record.body.length, LENGTH);
    digest_sha256_hex(str_slice((const char *)words, LENGTH), sent);
    digest_sha256_hex(buffer_str(&record.body), received);
    ck_assert_str_eq(sent, received);
    free(words);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_paused_call_reads_no_more_and_counts_no_silence)
{
    struct scene scene;
    struct record record = {.in_body = pause_once};
    struct peer peer;
    struct upstream_request request = post;
    request.silence_timeout_ms = 50;
    start(&scene);
    call_with(&scene, &record, request);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcde");
    run_until(scene.loop, &record.pieces, 1);
    peer_send_text(&peer, "fghij");
    int64_t start_ms = clock_monotonic_ms();
    while (clock_monotonic_ms() - start_ms < 200)
        loop_run_once(scene.loop, 5);
    ck_assert_int_eq(record.ends, 0);
    expect_text(&record.body, "abcde");
    upstream_call_resume(record.call);
    expect_text(&record.body, "abcde"); /* not from inside of resume */
    await_end(&record, UPSTREAM_DONE);
    expect_text(&record.body, "abcdefghij");
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(pause_and_resume_within_one_callback_change_nothing)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    post_to(&scene, &record);
    upstream_call_resume(record.call);
    upstream_call_pause(record.call);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, SHORT_ANSWER);
    run_until(scene.loop, &record.heads, 1); /* heads are not held back */
    run_idle(scene.loop);
    ck_assert_int_eq(record.pieces, 0);
    upstream_call_resume(record.call);
    upstream_call_pause(record.call);
    upstream_call_resume(record.call);
    await_end(&record, UPSTREAM_DONE);
    expect_text(&record.body, "ok");
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static void cancel_self(struct record *record)
{
    upstream_call_cancel(record->call);
}

static void cancel_other(struct record *record)
{
    if (record->other->call != NULL)
        upstream_call_cancel(record->other->call);
    record->other->call = NULL;
}

static const struct {
    void (*in_head)(struct record *record);
    void (*in_body)(struct record *record);
    void (*in_end)(struct record *record);
    int heads, pieces, ends;
} cancels[] = {
    {cancel_self, NULL, NULL, 1, 0, 0},
    {NULL, cancel_self, NULL, 1, 1, 0},
    {NULL, NULL, cancel_self, 1, 1, 1},
};

START_TEST(a_call_may_be_cancelled_in_any_of_its_callbacks)
{
    struct scene scene;
    struct record record = {.in_head = cancels[_i].in_head,
                            .in_body = cancels[_i].in_body,
                            .in_end = cancels[_i].in_end};
    struct peer peer;
    start(&scene);
    post_to(&scene, &record);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, SHORT_ANSWER);
    run_until(scene.loop, &record.heads, 1);
    run_idle(scene.loop);
    if (cancels[_i].ends == 0)
        peer_await_close(&peer);
    ck_assert_int_eq(record.heads, cancels[_i].heads);
    ck_assert_int_eq(record.pieces, cancels[_i].pieces);
    ck_assert_int_eq(record.ends, cancels[_i].ends);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_call_may_be_cancelled_by_another_ones_callbacks)
{
    struct scene scene;
    struct record first = {.in_head = _i == 0 ? cancel_other : NULL,
                           .in_body = _i == 1 ? cancel_other : NULL,
                           .in_end = _i == 2 ? cancel_other : NULL};
    struct record second = {.status = 0};
    struct peer peers[2];
    first.other = &second;
    start(&scene);
    post_to(&scene, &first);
    origin_accept(&scene.origin, &peers[0]);
    post_to(&scene, &second);
    origin_accept(&scene.origin, &peers[1]);
    for (int i = 0; i < 2; i++)
        peer_await(&peers[i], "{\"a\":1}");
    peer_send_text(&peers[0], SHORT_ANSWER);
    if (_i == 2) { /* its answer is there, too, and comes later in the same round or never */
        peer_send_text(&peers[1], "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok");
    }
    await_end(&first, UPSTREAM_DONE);
    peer_await_close(&peers[1]);
    ck_assert_int_eq(second.ends, 0);
    forget(&first);
    forget(&second);
    peer_close(&peers[0]);
    peer_close(&peers[1]);
    stop(&scene);
}
END_TEST

START_TEST(a_call_may_be_cancelled_at_once_or_while_paused)
{
    struct scene scene;
    struct record record = {.in_body = pause_once};
    struct peer peer;
    start(&scene);
    post_to(&scene, &record);
    upstream_call_cancel(record.call);
    run_idle(scene.loop);
    ck_assert_int_eq(record.ends, 0);
    forget(&record);
    while (origin_has_client(&scene.origin)) {
        origin_accept(&scene.origin, &peer);
        peer_close(&peer);
    }
    post_to(&scene, &record);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcde");
    run_until(scene.loop, &record.pieces, 1);
    peer_send_text(&peer, "fgh");
    run_idle(scene.loop);
    upstream_call_resume(record.call); /* noted for the next round, which finds it cancelled */
    upstream_call_cancel(record.call);
    peer_await_close(&peer);
    ck_assert_int_eq(record.ends, 0);
    ck_assert_int_eq(record.pieces, 1);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static void start_other(struct record *record)
{
    record->in_head = record->in_body = record->in_end = NULL;
    post_to(record->scene, record->other);
}

START_TEST(a_call_may_be_started_in_any_callback)
{
    struct scene scene;
    struct record first = {.in_head = _i == 0 ? start_other : NULL,
                           .in_body = _i == 1 ? start_other : NULL,
                           .in_end = _i == 2 ? start_other : NULL};
    struct record second = {.status = 0};
    struct peer peers[2];
    first.other = &second;
    start(&scene);
    post_to(&scene, &first);
    origin_accept(&scene.origin, &peers[0]);
    peer_await(&peers[0], "{\"a\":1}");
    peer_send_text(&peers[0],
                   "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    await_end(&first, UPSTREAM_DONE);
    origin_accept(&scene.origin, &peers[1]);
    peer_await(&peers[1], "{\"a\":1}");
    peer_send_text(&peers[1], SHORT_ANSWER);
    await_end(&second, UPSTREAM_DONE);
    forget(&first);
    forget(&second);
    peer_close(&peers[0]);
    peer_close(&peers[1]);
    stop(&scene);
}
END_TEST

START_TEST(destroy_cancels_what_runs)
{
    struct scene scene;
    struct record records[3] = {{.status = 0}};
    struct peer peer;
    start(&scene);
    post_to(&scene, &records[0]);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcde");
    run_until(scene.loop, &records[0].pieces, 1);
    post_to(&scene, &records[1]);
    call_with(&scene, &records[2],
              (struct upstream_request){.method = "GET", .url = "http://no.such.invalid/"});
    loop_run_once(scene.loop, 0);
    upstream_client_destroy(scene.client);
    scene.client = NULL;
    peer_await_close(&peer);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(records[i].ends, 0);
        forget(&records[i]);
    }
    peer_close(&peer);
    stop(&scene);
}
END_TEST

TCase *control_tests(void)
{
    TCase *tests = tcase_create("control_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, sixty_megabytes_come_through_pauses_unharmed);
    tcase_add_test(tests, a_paused_call_reads_no_more_and_counts_no_silence);
    tcase_add_test(tests, pause_and_resume_within_one_callback_change_nothing);
    tcase_add_loop_test(tests, a_call_may_be_cancelled_in_any_of_its_callbacks, 0, 3);
    tcase_add_loop_test(tests, a_call_may_be_cancelled_by_another_ones_callbacks, 0, 3);
    tcase_add_test(tests, a_call_may_be_cancelled_at_once_or_while_paused);
    tcase_add_loop_test(tests, a_call_may_be_started_in_any_callback, 0, 3);
    tcase_add_test(tests, destroy_cancels_what_runs);
    return tests;
}
