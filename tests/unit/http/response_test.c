/* Whole responses. */
#include <check.h>

#include "scene.h"
#include "suite.h"

static void answer_by_path(struct scene *scene, struct http_exchange *exchange)
{
    struct str path = http_path(exchange);
    if (str_equal(path, STR("/204")))
        http_respond(exchange, 204, NULL, 0, STR_EMPTY);
    else if (str_equal(path, STR("/202")))
        http_respond(exchange, 202, NULL, 0, STR_EMPTY);
    else
        http_respond_text(exchange, 404, "text/plain", STR("nothing here"));
}

START_TEST(responses_are_framed_for_every_status_and_for_head)
{
    struct scene scene = {.act = answer_by_path};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET /202 HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\n");
    peer_expect(&peer, "HTTP/1.1 202 Accepted\r\n");
    peer_expect(&peer, "Content-Length: 0\r\n");
    peer_clear(&peer);
    peer_send_text(&peer, "GET /204 HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\n");
    peer_expect(&peer, "HTTP/1.1 204 No Content\r\n");
    ck_assert(!peer_has(&peer, "ontent-"));
    peer_clear(&peer);
    peer_send_text(&peer, "HEAD /x HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\n");
    peer_expect(&peer, "HTTP/1.1 404 Not Found\r\n");
    peer_expect(&peer, "Content-Length: 12\r\n");
    peer_clear(&peer);
    peer_send_text(&peer, "GET /x HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\nnothing here");
    ck_assert_int_eq(peer.received.bytes[0], 'H'); /* HEAD's answer had no body */
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static void answer_with_odd_headers(struct scene *scene, struct http_exchange *exchange)
{
    const struct http_header headers[] = {
        {STR("X-One"), STR("1")},
        {STR("Content-Length"), STR("999")},
        {STR("transfer-encoding"), STR("chunked")},
        {STR("Connection"), STR("close")},
        {STR("x-split"), STR("a\r\nx-evil: 1")},
        {STR("x-nul"), STR("a\0b")},
        {STR("x-two"), STR("2")},
        {STR("x-two"), STR_EMPTY},
    };
    http_respond(exchange, 200, headers, sizeof(headers) / sizeof(headers[0]), STR("!"));
}

START_TEST(headers_that_frame_or_split_a_response_are_left_out)
{
    struct scene scene = {.act = answer_with_odd_headers};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\n!");
    peer_expect(&peer, "\r\nX-One: 1\r\nx-two: 2\r\nx-two: \r\n\r\n!");
    peer_expect(&peer, "Connection: keep-alive\r\n");
    ck_assert(!peer_has(&peer, "999"));
    ck_assert(!peer_has(&peer, "chunked"));
    ck_assert(!peer_has(&peer, "evil"));
    ck_assert(!peer_has(&peer, "x-nul"));
    peer_close(&peer);
    stop(&scene);
}
END_TEST

/* ---- prepared ones ---- */

static void prepare(struct http_exchange *exchange)
{
    const struct http_header header = {.name = STR("x-prepared"), .value = STR("yes")};
    http_prepare(exchange, 201, &header, 1);
}

static void answer_prepared(struct scene *scene, struct http_exchange *exchange)
{
    struct buffer body;
    buffer_init(&body);
    buffer_append(&body, STR("whole"));
    prepare(exchange);
    if (str_equal(http_path(exchange), STR("/whole"))) {
        http_respond_prepared(exchange, &body);
    } else if (str_equal(http_path(exchange), STR("/stream"))) {
        http_stream_start_prepared(exchange, -1);
        http_stream_write(exchange, STR("piece"));
        http_stream_end(exchange);
    } else {
        http_respond_text(exchange, 502, "text/plain", STR("another"));
    }
    ck_assert_uint_eq(body.length, str_equal(http_path(exchange), STR("/whole")) ? 0 : 5);
    buffer_finish(&body);
}

/* Twice each: the first head of a server is written by other means. */
START_TEST(a_prepared_response_goes_on_in_any_way_and_leaves_nothing_behind_in_another)
{
    struct scene scene = {.act = answer_prepared};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    for (int i = 0; i < 2; i++) {
        peer_send_text(&peer, "GET /whole HTTP/1.1\r\n\r\n");
        peer_await(&peer, "\r\n\r\nwhole");
        peer_expect(&peer, "HTTP/1.1 201 Created\r\n");
        peer_expect(&peer, "Content-Length: 5\r\nx-prepared: yes\r\n\r\nwhole");
        peer_clear(&peer);
        peer_send_text(&peer, "GET /stream HTTP/1.1\r\n\r\n");
        peer_await(&peer, "\r\n\r\n5\r\npiece\r\n0\r\n\r\n");
        peer_expect(&peer, "HTTP/1.1 201 Created\r\n");
        peer_expect(&peer, "\r\nx-prepared: yes\r\n");
        peer_clear(&peer);
        peer_send_text(&peer, "GET /other HTTP/1.1\r\n\r\n");
        peer_await(&peer, "\r\n\r\nanother");
        peer_expect(&peer, "HTTP/1.1 502 Bad Gateway\r\n");
        ck_assert(!peer_has(&peer, "x-prepared"));
        peer_clear(&peer);
    }
    peer_send_text(&peer, "HEAD /whole HTTP/1.1\r\n\r\n");
    peer_await(&peer, "Content-Length: 5\r\n");
    peer_await(&peer, "\r\n\r\n");
    peer_send_text(&peer, "GET /whole HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\nHTTP/1.1 201 Created\r\n"); /* HEAD's answer had no body */
    peer_await(&peer, "whole");
    peer_close(&peer);
    stop(&scene);
}
END_TEST

TCase *response_tests(void)
{
    TCase *tests = tcase_create("response_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, responses_are_framed_for_every_status_and_for_head);
    tcase_add_test(tests, headers_that_frame_or_split_a_response_are_left_out);
    tcase_add_test(tests,
                   a_prepared_response_goes_on_in_any_way_and_leaves_nothing_behind_in_another);
    return tests;
}
