/* Streamed responses. */
#include <check.h>

#include "scene.h"
#include "suite.h"
#include "taskgate/core/clock.h"

START_TEST(each_write_of_a_stream_reaches_the_client)
{
    struct scene scene = {.act = start_stream};
    struct peer peer;
    open_stream(&scene, &peer, "GET / HTTP/1.1\r\n\r\n");
    http_stream_flush(scene.held);
    peer_await(&peer, "\r\n\r\n");
    peer_expect(&peer, "HTTP/1.1 200 OK\r\n");
    peer_expect(&peer, "transfer-encoding: chunked\r\n");
    peer_clear(&peer);
    ck_assert(http_stream_write(scene.held, STR("one")));
    peer_await(&peer, "3\r\none\r\n");
    ck_assert(http_stream_write(scene.held, STR("four")));
    peer_await(&peer, "4\r\nfour\r\n");
    run_idle(scene.loop);
    ck_assert_uint_eq(http_stream_backlog(scene.held), 0);
    http_stream_end(scene.held);
    peer_await(&peer, "0\r\n\r\n");
    scene.act = answer_hello;
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\nhello");
    ck_assert_int_eq(scene.gone, 0);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static void stream_at_once(struct scene *scene, struct http_exchange *exchange)
{
    const struct http_header type = {STR("content-type"), STR("text/plain")};
    http_stream_start(exchange, 429, &type, 1, -1);
    http_stream_write(exchange, STR("slow "));
    http_stream_write(exchange, STR("down"));
    http_stream_end(exchange);
}

START_TEST(a_stream_of_another_status_is_chunked_and_keeps_the_connection)
{
    struct scene scene = {.act = stream_at_once};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    for (int i = 0; i < 2; i++) {
        peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
        peer_await(&peer, "0\r\n\r\n");
        peer_expect(&peer, "HTTP/1.1 429 Too Many Requests\r\n");
        peer_expect(&peer, "Connection: keep-alive\r\n");
        peer_expect(&peer, "5\r\nslow \r\n4\r\ndown\r\n0\r\n\r\n");
        peer_clear(&peer);
    }
    peer_send_text(&peer, "HEAD / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    peer_await(&peer, "0\r\n\r\n");
    peer_expect(&peer, "text/plain\r\n\r\nHTTP/1.1 429"); /* HEAD's answer had no body */
    peer_clear(&peer);
    peer_send_text(&peer, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    peer_await_close(&peer);
    peer_expect(&peer, "Connection: close\r\n");
    peer_expect(&peer, "\r\n\r\nslow down");
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static void stream_of_known_length(struct scene *scene, struct http_exchange *exchange)
{
    http_stream_start(exchange, 200, NULL, 0, 6);
    http_stream_write(exchange, STR("abc"));
    if (str_equal(http_path(exchange), STR("/whole")))
        http_stream_write(exchange, STR("defGHI"));
    http_stream_end(exchange);
}

START_TEST(a_stream_of_known_length_has_that_length_or_is_cut)
{
    struct scene scene = {.act = stream_of_known_length};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET /whole HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\nabcdef");
    peer_expect(&peer, "Content-Length: 6\r\n");
    peer_clear(&peer);
    peer_send_text(&peer, "GET /short HTTP/1.1\r\n\r\n");
    peer_await_close(&peer);
    ck_assert(!peer_has(&peer, "GHI"));
    ck_assert(!peer_has(&peer, "def"));
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_slow_reader_is_told_of_and_loses_nothing)
{
    struct scene scene = {.act = start_stream};
    struct peer peer;
    size_t written = 0;
    start(&scene);
    peer_connect_narrow(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 1);

    bool takes_more = true;
    for (int i = 0; takes_more && i < 2000; i++) {
        takes_more = http_stream_write(scene.held, block_of('a', (size_t)32 * 1024));
        written += (size_t)32 * 1024;
        if (takes_more)
            loop_run_once(scene.loop, 0);
    }
    ck_assert(!takes_more);
    ck_assert_uint_gt(http_stream_backlog(scene.held), HIGH_WATER);
    ck_assert_uint_le(http_stream_backlog(scene.held), HIGH_WATER + (size_t)32 * 1024);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.drained, 0);
    ck_assert(!http_stream_write(scene.held, STR("z")));

    int64_t give_up_ms = clock_monotonic_ms() + 10000;
    while (scene.drained == 0 && clock_monotonic_ms() < give_up_ms) {
        peer_receive(&peer);
        loop_run_once(scene.loop, 1);
    }
    ck_assert_int_eq(scene.drained, 1);
    ck_assert_uint_le(http_stream_backlog(scene.held), HIGH_WATER / 2);
    http_stream_end(scene.held);
    peer_await(&peer, "0\r\n\r\n");
    size_t letters = 0;
    for (size_t i = 0; i < peer.received.length; i++)
        letters += peer.received.bytes[i] == 'a';
    /* chunk sizes are hexadecimal, and headers have letters: those of the body come on top */
    ck_assert_uint_ge(letters, written);
    peer_expect(&peer, "z\r\n");
    ck_assert_int_eq(scene.gone, 0);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static void abort_stream(struct scene *scene, struct http_exchange *exchange)
{
    start_stream(scene, exchange);
    http_stream_write(exchange, STR("part"));
    if (str_equal(http_path(exchange), STR("/at-once")))
        http_stream_abort(exchange);
}

START_TEST(an_aborted_stream_is_seen_as_incomplete)
{
    struct scene scene = {.act = abort_stream};
    struct peer peer;
    open_stream(&scene, &peer, "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peer, "4\r\npart\r\n");
    http_stream_abort(scene.held);
    peer_await_close(&peer);
    ck_assert(!peer_has(&peer, "0\r\n\r\n"));
    peer_close(&peer);

    /* from inside the handler, with the write still in flight */
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET /at-once HTTP/1.1\r\n\r\n");
    peer_await_close(&peer);
    ck_assert(!peer_has(&peer, "0\r\n\r\n"));
    peer_close(&peer);

    /* HTTP/1.0 has no other sign than a reset */
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET / HTTP/1.0\r\n\r\n");
    peer_await(&peer, "part");
    http_stream_abort(scene.held);
    peer_await_close(&peer);
    ck_assert(peer.is_reset);
    peer_close(&peer);
    ck_assert_int_eq(scene.gone, 0);
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    stop(&scene);
}
END_TEST

static void end_when_drained(void *context)
{
    struct scene *scene = context;
    scene->drained++;
    http_stream_end(scene->held);
}

static void abort_when_drained(void *context)
{
    struct scene *scene = context;
    scene->drained++;
    http_stream_abort(scene->held);
}

static void write_too_much(struct scene *scene, struct http_exchange *exchange)
{
    start_stream(scene, exchange);
    http_on_drained(exchange,
                    str_equal(http_path(exchange), STR("/abort")) ? abort_when_drained
                                                                  : end_when_drained,
                    scene);
    http_stream_write(exchange, block_of('a', (size_t)200 * 1024));
}

START_TEST(a_stream_may_be_ended_or_aborted_by_drained)
{
    struct scene scene = {.act = write_too_much};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET /end HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n0\r\n\r\n");
    peer_clear(&peer);
    peer_send_text(&peer, "GET /abort HTTP/1.1\r\n\r\n");
    peer_await_close(&peer);
    ck_assert(!peer_has(&peer, "\r\n0\r\n\r\n"));
    ck_assert_int_eq(scene.drained, 2);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

TCase *stream_tests(void)
{
    TCase *tests = tcase_create("stream_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, each_write_of_a_stream_reaches_the_client);
    tcase_add_test(tests, a_stream_of_another_status_is_chunked_and_keeps_the_connection);
    tcase_add_test(tests, a_stream_of_known_length_has_that_length_or_is_cut);
    tcase_add_test(tests, a_slow_reader_is_told_of_and_loses_nothing);
    tcase_add_test(tests, an_aborted_stream_is_seen_as_incomplete);
    tcase_add_test(tests, a_stream_may_be_ended_or_aborted_by_drained);
    return tests;
}
