/* Pausing, cancelling and starting calls, from anywhere. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

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

/* In chunks that fit into nothing evenly. */
static void send_chunked(struct peer *peer, struct str bytes)
{
    enum { CHUNK = 7919 };
    struct buffer chunk;
    buffer_init(&chunk);
    while (bytes.length > 0) {
        size_t count = bytes.length < CHUNK ? bytes.length : CHUNK;
        buffer_clear(&chunk);
        buffer_append_format(&chunk, "%zx\r\n", count);
        buffer_append(&chunk, str_slice(bytes.bytes, count));
        buffer_append_text(&chunk, "\r\n");
        peer_send(peer, buffer_str(&chunk));
        bytes = str_slice(bytes.bytes + count, bytes.length - count);
    }
    peer_send_text(peer, "0\r\n\r\n");
    buffer_finish(&chunk);
}

/* _i: sized, chunked. */
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
    if (_i == 0) {
        snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LENGTH);
        peer_send_text(&peer, head);
        peer_send(&peer, str_slice((const char *)words, LENGTH));
    } else {
        peer_send_text(&peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        send_chunked(&peer, str_slice((const char *)words, LENGTH));
    }
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
    request.silence_timeout_ms = 1000;
    start(&scene);
    call_with(&scene, &record, request);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabcde");
    run_until(scene.loop, &record.pieces, 1);
    peer_send_text(&peer, "fghij");
    int64_t start_ms = clock_monotonic_ms();
    while (clock_monotonic_ms() - start_ms < 1200)
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

/* Sends until the connection has taken nothing for a while; returns how much it took. */
static size_t send_what_is_taken(struct peer *peer, size_t most)
{
    static const char bytes[65536];
    size_t sent = 0;
    for (int refusals = 0; refusals < 20 && sent < most;) {
        ssize_t count = send(peer->fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
        ck_assert(count > 0 || errno == EAGAIN);
        refusals = count > 0 ? 0 : refusals + 1;
        sent += count > 0 ? (size_t)count : 0;
        loop_run_once(peer->loop, 1);
    }
    return sent;
}

/* _i: paused in the body, in the head, and before anything has come. */
START_TEST(a_paused_call_takes_no_more_than_one_read)
{
    enum { LENGTH = 64 << 20 };
    struct scene scene;
    struct record record = {.in_head = _i == 1 ? pause_once : NULL,
                            .in_body = _i == 0 ? pause_once : NULL};
    struct peer peer;
    char head[64];
    start(&scene);
    post_to(&scene, &record);
    if (_i == 2)
        upstream_call_pause(record.call);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LENGTH);
    peer_send_text(&peer, head);
    size_t taken = send_what_is_taken(&peer, LENGTH);
    ck_assert_int_eq(record.heads, 1);
    ck_assert_uint_lt(taken, 32 << 20); /* the content of the two sockets */
    ck_assert_uint_le(record.body.length, 65536);
    ck_assert_int_eq(record.pieces, _i == 0);
    upstream_call_resume(record.call);
    char *rest = calloc(1, LENGTH);
    ck_assert_ptr_nonnull(rest);
    peer_send(&peer, str_slice(rest, LENGTH - taken));
    free(rest);
    await_end(&record, UPSTREAM_DONE);
    ck_assert_uint_eq(record.body.length, LENGTH);
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

START_TEST(a_call_may_be_cancelled_while_its_host_is_looked_up)
{
    const struct upstream_request request = {.method = "GET", .url = "http://no.such.invalid/"};
    struct scene scene;
    struct record records[3] = {{.status = 0}};
    start(&scene);
    for (int i = 0; i < 3; i++)
        call_with(&scene, &records[i], request);
    loop_run_once(scene.loop, 0);
    int ends = records[1].ends; /* the look-up of a busy machine may be over by now */
    if (ends == 0)
        upstream_call_cancel(records[1].call);
    await_end(&records[0], UPSTREAM_CONNECT_FAILED);
    await_end(&records[2], UPSTREAM_CONNECT_FAILED);
    ck_assert_int_eq(records[1].ends, ends);
    for (int i = 0; i < 3; i++)
        forget(&records[i]);
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
    const int looked_up = records[2].ends; /* the name may be known to lead nowhere by now */
    upstream_client_destroy(scene.client);
    scene.client = NULL;
    peer_await_close(&peer);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(records[i].ends, i == 2 ? looked_up : 0);
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
    tcase_add_loop_test(tests, sixty_megabytes_come_through_pauses_unharmed, 0, 2);
    tcase_add_test(tests, a_paused_call_reads_no_more_and_counts_no_silence);
    tcase_add_loop_test(tests, a_paused_call_takes_no_more_than_one_read, 0, 3);
    tcase_add_test(tests, pause_and_resume_within_one_callback_change_nothing);
    tcase_add_loop_test(tests, a_call_may_be_cancelled_in_any_of_its_callbacks, 0, 3);
    tcase_add_loop_test(tests, a_call_may_be_cancelled_by_another_ones_callbacks, 0, 3);
    tcase_add_test(tests, a_call_may_be_cancelled_at_once_or_while_paused);
    tcase_add_test(tests, a_call_may_be_cancelled_while_its_host_is_looked_up);
    tcase_add_loop_test(tests, a_call_may_be_started_in_any_callback, 0, 3);
    tcase_add_test(tests, destroy_cancels_what_runs);
    return tests;
}
