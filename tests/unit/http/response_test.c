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

TCase *response_tests(void)
{
    TCase *tests = tcase_create("response_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, responses_are_framed_for_every_status_and_for_head);
    tcase_add_test(tests, headers_that_frame_or_split_a_response_are_left_out);
    return tests;
}
