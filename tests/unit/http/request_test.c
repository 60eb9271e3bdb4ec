/* Requests as the handler sees them. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "scene.h"
#include "suite.h"

static void answer_length(struct scene *scene, struct http_exchange *exchange)
{
    char text[32];
    snprintf(text, sizeof(text), "length=%zu.", http_body(exchange).length);
    http_respond_text(exchange, 200, "text/plain", str_from(text));
}

static void describe(struct scene *scene, struct http_exchange *exchange)
{
    buffer_append_format(&scene->seen, "%.*s|%.*s|%.*s|%.*s|%.*s|%s|",
                         STR_ARGS(http_method(exchange)), STR_ARGS(http_path(exchange)),
                         STR_ARGS(http_query(exchange)), STR_ARGS(http_authority(exchange)),
                         STR_ARGS(http_body(exchange)),
                         http_is_loopback(exchange) ? "loopback" : "elsewhere");
    for (size_t i = 0; i < http_header_count(exchange); i++) {
        struct http_header header = http_header_at(exchange, i);
        buffer_append_format(&scene->seen, "%.*s=%.*s;", STR_ARGS(header.name),
                             STR_ARGS(header.value));
    }
    http_respond_text(exchange, 200, "text/plain", STR("ok"));
}

static void expect_seen(const struct scene *scene, const char *text)
{
    ck_assert_msg(str_equal(buffer_str(&scene->seen), str_from(text)), "saw: %.*s",
                  STR_ARGS(buffer_str(&scene->seen)));
}

START_TEST(a_request_is_given_as_it_was_sent)
{
    struct scene scene = {.act = describe};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "POST /a%2Fb/../c?x=%20&y HTTP/1.1\r\nHost: example.org:81\r\n"
                          "X-Empty:\r\nAccept: a\r\nAccept: b\r\nContent-Length: 4\r\n\r\nbody");
    peer_await(&peer, "ok");
    expect_seen(&scene, "POST|/a%2Fb/../c|x=%20&y|example.org:81|body|loopback|"
                        "x-empty=;accept=a;accept=b;");
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_request_without_host_query_or_body_has_them_empty)
{
    struct scene scene = {.act = describe};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET / HTTP/1.0\r\n\r\n");
    peer_await_close(&peer);
    peer_expect(&peer, "HTTP/1.1 200 OK\r\n");
    expect_seen(&scene, "GET|/||||loopback|");
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_connection_is_kept_for_the_next_request)
{
    struct scene scene = {.act = answer_hello};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    for (int i = 1; i <= 3; i++) {
        peer_send_text(&peer, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        peer_await(&peer, "\r\n\r\nhello");
        peer_expect(&peer, "HTTP/1.1 200 OK\r\n");
        peer_expect(&peer, "Content-Length: 5\r\n");
        peer_expect(&peer, "content-type: text/plain\r\n");
        ck_assert(!peer_has(&peer, "erver:"));
        ck_assert_int_eq(scene.requests, i);
        peer_clear(&peer);
    }
    ck_assert_int_eq(http_server_connections(scene.server), 1);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(pipelined_requests_are_answered_in_order)
{
    struct scene scene = {.act = describe};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 3);
    expect_seen(&scene, "GET|/1||||loopback|GET|/2||||loopback|GET|/3||||loopback|");
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static void send_body(struct peer *peer, size_t length, bool chunked)
{
    struct buffer request;
    buffer_init(&request);
    if (chunked)
        buffer_append_format(
            &request, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n", length);
    else
        buffer_append_format(&request, "POST / HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", length);
    for (size_t i = 0; i < length; i++)
        buffer_append_char(&request, 'b');
    if (chunked)
        buffer_append_text(&request, "\r\n0\r\n\r\n");
    peer_send(peer, buffer_str(&request));
    buffer_finish(&request);
}

START_TEST(a_body_may_have_exactly_the_limit_and_not_one_byte_more)
{
    struct scene scene = {.act = answer_length};
    start(&scene);
    for (int chunked = 0; chunked <= 1; chunked++) {
        struct peer peer;
        peer_connect(&peer, scene.loop, scene.port);
        send_body(&peer, MAX_BODY, chunked != 0);
        peer_await(&peer, "length=1000.");
        peer_close(&peer);
        peer_connect(&peer, scene.loop, scene.port);
        send_body(&peer, MAX_BODY + 1, chunked != 0);
        peer_await(&peer, "HTTP/1.1 413 ");
        peer_close(&peer);
    }
    ck_assert_int_eq(scene.requests, 2);
    http_server_set_max_body(scene.server, (size_t)2 * MAX_BODY);
    struct peer peer;
    peer_connect(&peer, scene.loop, scene.port);
    send_body(&peer, (size_t)2 * MAX_BODY, false);
    peer_await(&peer, "length=2000.");
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_client_with_far_too_large_a_body_reads_its_413_and_no_reset)
{
    struct scene scene = {.act = answer_length};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    send_body(&peer, (size_t)8 << 20, false);
    peer_await_close(&peer);
    ck_assert(!peer.is_reset);
    peer_expect(&peer, "HTTP/1.1 413 ");
    peer_close(&peer);
    for (int round = 0; http_server_connections(scene.server) > 0 && round < 1000; round++)
        loop_run_once(scene.loop, 5);
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    ck_assert_int_eq(scene.requests, 0);
    stop(&scene);
}
END_TEST

/* The lines behind the padding begin at each place of a block of 16 bytes. */
static void expect_status(struct scene *scene, size_t padding, const char *lines, int status)
{
    struct peer peer;
    struct buffer request;
    char line[32];
    buffer_init(&request);
    buffer_append_format(&request, "POST / HTTP/1.1\r\nX-Padding: %.*s\r\n%s\r\nbody",
                         STR_ARGS(block_of('p', padding)), lines);
    snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
    peer_connect(&peer, scene->loop, scene->port);
    peer_send(&peer, buffer_str(&request));
    peer_await(&peer, line);
    peer_close(&peer);
    buffer_finish(&request);
}

START_TEST(a_head_that_can_be_read_in_two_ways_is_refused)
{
    struct scene scene = {.act = answer_length};
    start(&scene);
    for (size_t padding = 0; padding < 17; padding++) {
        expect_status(&scene, padding, "Content-Length: 4\r\n", 200);
        expect_status(&scene, padding, "Content-Length: 4\r\nCookie: c\r\n", 200);
        expect_status(&scene, padding, "Content-Length: 4\r\nCONTENT-LENGTH:  4 \r\n", 200);
        expect_status(&scene, padding, "Content-Length: 4\r\nCONTENT-LENGTH: 5\r\n", 400);
        expect_status(&scene, padding, "content-length: 4\r\nX: 1\r\ncontent-length:\r\n", 400);
        expect_status(&scene, padding, "Content-Length: 4\r\nX: 1\r\n 2\r\n", 400);
        expect_status(&scene, padding, "Content-Length: 4\r\nX: 1\r\n\t2\r\n", 400);
    }
    stop(&scene);
}
END_TEST

START_TEST(a_chunked_body_arrives_decoded)
{
    struct scene scene = {.act = describe};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    run_idle(scene.loop);
    ck_assert_int_eq(scene.requests, 0);
    peer_send_text(&peer, "2;x=y\r\nde\r\n0\r\n\r\n");
    peer_await(&peer, "ok");
    expect_seen(&scene, "POST|/|||abcde|loopback|");
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(expect_100_continue_is_answered_before_the_body)
{
    struct scene scene = {.act = answer_length};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    peer_await(&peer, "HTTP/1.1 100 Continue\r\n\r\n");
    ck_assert_int_eq(scene.requests, 0);
    peer_send_text(&peer, "abc");
    peer_await(&peer, "length=3.");
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_request_that_does_not_come_to_its_end_is_closed)
{
    struct http_server_options options = usual;
    options.read_timeout_ms = 50;
    struct scene scene = {.act = answer_hello};
    struct peer peer;
    start_with(&scene, options);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab");
    peer_await_close(&peer);
    ck_assert_int_eq(scene.requests, 0);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

/* Nothing of the request or of its response lies there. */
static void fill_spare(struct scene *scene, struct http_exchange *exchange)
{
    size_t small = 100, large = 1000000, none = 16;
    char *first = http_take_spare(exchange, &small);
    char *second = http_take_spare(exchange, &large);
    ck_assert_uint_eq(small, 96); /* whole units */
    ck_assert(large > 1500 && large < 4096);
    ck_assert(second >= first + small || first >= second + large);
    memset(first, 'f', small);
    memset(second, 's', large);
    ck_assert_ptr_null(http_take_spare(exchange, &none));
    ck_assert_uint_eq(none, 0);
    describe(scene, exchange);
    ck_assert(first[0] == 'f' && first[small - 1] == 'f');
    ck_assert(second[0] == 's' && second[large - 1] == 's');
}

START_TEST(spare_memory_is_nobody_elses)
{
    struct scene scene = {.act = fill_spare};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "POST /a?b HTTP/1.1\r\nHost: h\r\nX-Own: word\r\nContent-Length: 4\r\n"
                          "\r\nbody");
    peer_await(&peer, "\r\n\r\nok");
    expect_seen(&scene, "POST|/a|b|h|body|loopback|x-own=word;");
    scene.act = answer_hello;
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\nhello");
    peer_close(&peer);
    stop(&scene);
}
END_TEST

TCase *request_tests(void)
{
    TCase *tests = tcase_create("request_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_request_is_given_as_it_was_sent);
    tcase_add_test(tests, a_request_without_host_query_or_body_has_them_empty);
    tcase_add_test(tests, a_connection_is_kept_for_the_next_request);
    tcase_add_test(tests, pipelined_requests_are_answered_in_order);
    tcase_add_test(tests, a_body_may_have_exactly_the_limit_and_not_one_byte_more);
    tcase_add_test(tests, a_client_with_far_too_large_a_body_reads_its_413_and_no_reset);
    tcase_add_test(tests, a_head_that_can_be_read_in_two_ways_is_refused);
    tcase_add_test(tests, a_chunked_body_arrives_decoded);
    tcase_add_test(tests, expect_100_continue_is_answered_before_the_body);
    tcase_add_test(tests, a_request_that_does_not_come_to_its_end_is_closed);
    tcase_add_test(tests, spare_memory_is_nobody_elses);
    return tests;
}
