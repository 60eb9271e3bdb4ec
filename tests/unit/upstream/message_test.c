/* Requests and responses. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"
#include "suite.h"

START_TEST(a_request_goes_out_as_it_was_given_and_nothing_is_added)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    char expected[512];
    start(&scene);
    post_to(&scene, &record);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    snprintf(expected, sizeof(expected),
             "POST /mcp?a=b HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Type: application/json\r\n"
             "accept: text/event-stream\r\nX-Empty:\r\nMcp-Session-Id: s 1\r\n"
             "Content-Length: 7\r\n\r\n{\"a\":1}",
             scene.origin.port);
    expect_text(&peer.received, expected);
    peer_send_text(&peer,
                   "HTTP/1.1 404 Not Found\r\nContent-Type:  text/x \r\nSet-Cookie: a\r\n"
                   "SET-COOKIE: b\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd");
    await_end(&record, UPSTREAM_DONE);
    ck_assert_int_eq(record.status, 404);
    expect_text(&record.headers, "content-type: text/x\nset-cookie: a\nset-cookie: b\n"
                                 "content-encoding: gzip\ncontent-length: 4\n");
    expect_text(&record.body, "abcd");
    ck_assert_int_eq(record.heads, 1);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static const struct {
    const char *method;
    const char *expected; /* after the request line and Host */
} bare[] = {
    {"GET", "\r\n"},
    {"DELETE", "\r\n"},
    {"POST", "Content-Length: 0\r\n\r\n"},
};

START_TEST(a_bare_request_has_no_more_than_host)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    char expected[256];
    static const struct http_header dropped[] = {
        {STR("Connection"), STR("close")},          {STR("transfer-encoding"), STR("chunked")},
        {STR("Accept-Encoding"), STR("gzip")},      {STR("Content-Length"), STR("99")},
        {STR("Expect"), STR("100-continue")},       {STR("Host"), STR("elsewhere")},
        {STR("Proxy-Authorization"), STR("Basic")}, {STR("TE"), STR("trailers")},
    };
    start(&scene);
    call_with(&scene, &record,
              (struct upstream_request){
                  .method = bare[_i].method, .headers = dropped, .header_count = 8});
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "\r\n\r\n");
    snprintf(expected, sizeof(expected), "%s /mcp?a=b HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s",
             bare[_i].method, scene.origin.port, bare[_i].expected);
    expect_text(&peer.received, expected);
    peer_send_text(&peer, "HTTP/1.1 204 No Content\r\n\r\n");
    await_end(&record, UPSTREAM_DONE);
    ck_assert_int_eq(record.status, 204);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_large_request_body_goes_out_whole_and_without_expect)
{
    enum { LENGTH = 3 << 20 };
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    char *bytes = malloc(LENGTH);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < LENGTH; i++)
        bytes[i] = (char)('a' + i % 23);
    struct upstream_request request = post;
    request.body = str_slice(bytes, LENGTH);
    call_with(&scene, &record, request);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "\r\n\r\n");
    ck_assert(!peer_has(&peer, "xpect"));
    size_t head =
        (size_t)((char *)memmem(peer.received.bytes, peer.received.length, "\r\n\r\n", 4) + 4 -
                 peer.received.bytes);
    peer_await_bytes(&peer, head + LENGTH);
    ck_assert_int_eq(memcmp(peer.received.bytes + head, bytes, LENGTH), 0);
    peer_send_text(&peer, SHORT_ANSWER);
    await_end(&record, UPSTREAM_DONE);
    free(bytes);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_stream_comes_piece_by_piece_without_interim_responses_and_trailers)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    post_to(&scene, &record);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n");
    run_idle(scene.loop);
    ck_assert_int_eq(record.heads, 0);
    peer_send_text(&peer, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                          "Transfer-Encoding: chunked\r\n\r\n");
    run_until(scene.loop, &record.heads, 1);
    ck_assert_int_eq(record.status, 200);
    expect_text(&record.headers, "content-type: text/event-stream\n"
                                 "transfer-encoding: chunked\n");
    ck_assert_int_eq(record.pieces, 0);
    peer_send_text(&peer, "5\r\nfirst\r\n");
    run_until(scene.loop, &record.pieces, 1);
    expect_text(&record.body, "first");
    peer_send_text(&peer, "6\r\nsecond\r\n");
    run_until(scene.loop, &record.pieces, 2);
    expect_text(&record.body, "firstsecond");
    ck_assert_int_eq(record.ends, 0);
    peer_send_text(&peer, "0\r\nX-Trailer: 1\r\n\r\n");
    await_end(&record, UPSTREAM_DONE);
    ck_assert_int_eq(record.heads, 1);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_folded_header_is_refused)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    post_to(&scene, &record);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, "HTTP/1.1 200 OK\r\nX-Folded: a\r\n  b\r\nContent-Length: 2\r\n\r\nok");
    await_end(&record, UPSTREAM_GONE);
    ck_assert_int_eq(record.heads, 0);
    expect_text(&record.body, "");
    ck_assert_ptr_nonnull(strstr(record.detail, "the response has a folded header"));
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_host_is_found_by_name)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    char url[64];
    struct upstream_request request = post;
    start(&scene);
    snprintf(url, sizeof(url), "http://localhost:%u", scene.origin.port);
    request.url = url;
    for (int i = 0; i < 2; i++) { /* the second finds the address known */
        call_with(&scene, &record, request);
        origin_accept(&scene.origin, &peer);
        peer_await(&peer, "{\"a\":1}");
        peer_expect(&peer, "POST / HTTP/1.1\r\nHost: localhost:");
        peer_send_text(&peer,
                       "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        await_end(&record, UPSTREAM_DONE);
        forget(&record);
        peer_close(&peer);
    }
    stop(&scene);
}
END_TEST

TCase *message_tests(void)
{
    TCase *tests = tcase_create("message_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_request_goes_out_as_it_was_given_and_nothing_is_added);
    tcase_add_loop_test(tests, a_bare_request_has_no_more_than_host, 0, 3);
    tcase_add_test(tests, a_large_request_body_goes_out_whole_and_without_expect);
    tcase_add_test(tests, a_stream_comes_piece_by_piece_without_interim_responses_and_trailers);
    tcase_add_test(tests, a_folded_header_is_refused);
    tcase_add_test(tests, a_host_is_found_by_name);
    return tests;
}
