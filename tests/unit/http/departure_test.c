/* Requests that are held, and clients that leave meanwhile. */
#include <check.h>
#include <sys/socket.h>

#include "scene.h"
#include "suite.h"

START_TEST(a_held_request_is_answered_later)
{
    struct scene scene = {.act = hold};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
    run_until(scene.loop, &scene.requests, 1);
    run_idle(scene.loop);
    ck_assert(str_equal(http_body(scene.held), STR("abc")));
    http_respond_text(scene.held, 200, "text/plain", STR("at last"));
    peer_await(&peer, "\r\n\r\nat last");
    scene.act = answer_hello; /* and the connection is good for another */
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\nhello");
    peer_close(&peer);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.gone, 0);
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    stop(&scene);
}
END_TEST

/* Its body is forgotten while it is held: the rest of the request stays, and the connection is good
 * for the next one. */
static void forget_body_of(const char *request, bool is_kept)
{
    struct scene scene = {.act = hold};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    for (int i = 1; i <= 2; i++) {
        peer_send_text(&peer, request);
        run_until(scene.loop, &scene.requests, i);
        ck_assert_uint_eq(http_body(scene.held).length, 900);
        http_forget_body(scene.held);
        http_forget_body(scene.held);
        ck_assert_uint_eq(http_body(scene.held).length, is_kept ? 900 : 0);
        ck_assert(str_equal(http_path(scene.held), STR("/here")));
        ck_assert(str_equal(http_header(scene.held, "x-own"), STR("word")));
        ck_assert(str_equal(http_authority(scene.held), STR("h")));
        http_respond_text(scene.held, 200, "text/plain", i == 1 ? STR("first") : STR("second"));
        if (is_kept)
            break;
        peer_await(&peer, i == 1 ? "first" : "second");
    }
    scene.act = answer_hello;
    if (!is_kept)
        peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peer, "\r\n\r\nhello");
    peer_close(&peer);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.gone, 0);
    stop(&scene);
}

static void write_request(struct buffer *request, const char *framing, const char *before)
{
    buffer_append_format(request, "POST /here HTTP/1.1\r\nHost: h\r\nX-Own: word\r\n%s\r\n\r\n%s",
                         framing, before);
    buffer_append(request, block_of('b', 900));
}

START_TEST(the_body_of_a_held_request_may_be_forgotten)
{
    struct buffer plain = {0}, chunked = {0}, followed = {0};
    write_request(&plain, "Content-Length: 900", "");
    write_request(&chunked, "Transfer-Encoding: chunked", "384\r\n");
    write_request(&followed, "Content-Length: 900", "");
    buffer_append_text(&chunked, "\r\n0\r\n\r\n");
    buffer_append_text(&followed, "GET /next HTTP/1.1\r\n\r\n");
    buffer_append_char(&plain, '\0');
    buffer_append_char(&chunked, '\0');
    buffer_append_char(&followed, '\0');
    forget_body_of(plain.bytes, false);
    forget_body_of(chunked.bytes, false);
    forget_body_of(followed.bytes, true); /* the next request stands behind it */
    buffer_finish(&plain);
    buffer_finish(&chunked);
    buffer_finish(&followed);
}
END_TEST

/* A client that leaves then is noticed as ever. */
START_TEST(a_client_whose_body_was_forgotten_leaves)
{
    struct scene scene = {.act = hold};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
    run_until(scene.loop, &scene.requests, 1);
    http_forget_body(scene.held);
    peer_close(&peer);
    run_until(scene.loop, &scene.gone, 1);
    run_idle(scene.loop);
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    stop(&scene);
}
END_TEST

/* Bytes read meanwhile could move the body of the held request. */
START_TEST(the_next_request_waits_while_one_is_held)
{
    struct scene scene = {.act = hold};
    struct peer peer, other;
    struct buffer request; /* so long that the next read needs other memory */
    buffer_init(&request);
    buffer_append_text(&request, "POST /1 HTTP/1.1\r\nContent-Length: 3\r\nx: ");
    buffer_append(&request, block_of('h', 5000));
    buffer_append_text(&request, "\r\n\r\nabc");
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send(&peer, buffer_str(&request));
    run_until(scene.loop, &scene.requests, 1);
    struct http_exchange *first = scene.held;
    for (int i = 0; i < 3; i++) {
        peer_send_text(&peer, "POST /2 HTTP/1.1\r\nContent-Length: 900\r\n\r\n");
        peer_send(&peer, block_of('d', 900));
    }
    run_idle(scene.loop);
    ck_assert_int_eq(scene.requests, 1);
    scene.act = answer_hello;
    peer_connect(&other, scene.loop, scene.port); /* gets the freed memory */
    request.length -= 3;
    buffer_append_text(&request, "xyz");
    peer_send(&other, buffer_str(&request));
    peer_await(&other, "hello");
    ck_assert(str_equal(http_body(first), STR("abc")));
    ck_assert(str_equal(http_path(first), STR("/1")));
    http_respond_text(first, 200, "text/plain", STR("first"));
    run_until(scene.loop, &scene.requests, 5);
    peer_await(&peer, "\r\n\r\nhello");
    ck_assert_int_eq(scene.gone, 0);
    buffer_finish(&request);
    peer_close(&other);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_client_that_sends_too_early_and_leaves_is_gone_once)
{
    struct scene scene = {.act = hold};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "POST /1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
    run_until(scene.loop, &scene.requests, 1);
    peer_send_text(&peer, "GET /2 HTTP/1.1\r\n\r\n");
    run_idle(scene.loop);
    leave(&peer, _i);
    run_until(scene.loop, &scene.gone, 1);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.gone, 1);
    ck_assert_int_eq(scene.requests, 1);
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    if (peer.fd != -1)
        peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_client_that_leaves_while_held_is_gone_once)
{
    struct scene scene = {.act = hold};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
    run_until(scene.loop, &scene.requests, 1);
    leave(&peer, _i);
    run_until(scene.loop, &scene.gone, 1);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.gone, 1);
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    if (peer.fd != -1) {
        peer_await_close(&peer);
        ck_assert_uint_eq(peer.received.length, 0);
        peer_close(&peer);
    }
    stop(&scene);
}
END_TEST

START_TEST(a_client_that_leaves_before_its_request_is_read_is_gone_once)
{
    struct scene scene = {.act = hold};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    loop_run_once(scene.loop, 100);
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    leave(&peer, _i);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.gone, scene.requests); /* after a reset there may be no request */
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_client_that_half_closed_is_still_answered_at_once)
{
    struct scene scene = {.act = answer_hello};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    shutdown(peer.fd, SHUT_WR);
    peer_await(&peer, "\r\n\r\nhello");
    peer_await_close(&peer);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

struct pair {
    struct scene *scene;
    struct http_exchange *exchange;
    struct http_exchange **other;
};

static void abort_other(void *context)
{
    struct pair *pair = context;
    pair->scene->gone++;
    pair->exchange = NULL;
    if (*pair->other != NULL) {
        struct http_exchange *other = *pair->other;
        *pair->other = NULL;
        http_stream_abort(other);
    }
}

START_TEST(one_departure_may_end_another_exchange_of_the_same_batch)
{
    struct scene scene = {.act = hold};
    struct peer peers[2];
    struct pair pairs[2];
    start(&scene);
    for (int i = 0; i < 2; i++) {
        peer_connect(&peers[i], scene.loop, scene.port);
        peer_send_text(&peers[i], "GET / HTTP/1.1\r\n\r\n");
        run_until(scene.loop, &scene.requests, i + 1);
        pairs[i] = (struct pair){&scene, scene.held, &pairs[1 - i].exchange};
        http_on_gone(scene.held, abort_other, &pairs[i]);
    }
    peer_close(&peers[0]);
    peer_close(&peers[1]);
    run_until(scene.loop, &scene.gone, 1);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.gone, 1); /* the other was ended by its owner */
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    stop(&scene);
}
END_TEST

START_TEST(a_client_that_leaves_a_stream_is_gone_once)
{
    struct scene scene = {.act = start_stream};
    struct peer peer;
    open_stream(&scene, &peer, "GET / HTTP/1.1\r\n\r\n");
    http_stream_write(scene.held, STR(":\n\n"));
    peer_await(&peer, ":\n\n");
    leave(&peer, _i);
    run_until(scene.loop, &scene.gone, 1);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.gone, 1);
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_client_that_leaves_while_it_is_written_to_is_gone_once)
{
    struct scene scene = {.act = start_stream};
    struct peer peer;
    start(&scene);
    peer_connect_narrow(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 1);
    while (http_stream_write(scene.held, block_of('a', (size_t)256 * 1024)))
        loop_run_once(scene.loop, 0);
    run_idle(scene.loop);
    leave(&peer, _i);
    run_until(scene.loop, &scene.gone, 1);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.gone, 1);
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

TCase *departure_tests(void)
{
    TCase *tests = tcase_create("departure_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_held_request_is_answered_later);
    tcase_add_test(tests, the_body_of_a_held_request_may_be_forgotten);
    tcase_add_test(tests, a_client_whose_body_was_forgotten_leaves);
    tcase_add_test(tests, the_next_request_waits_while_one_is_held);
    tcase_add_loop_test(tests, a_client_that_sends_too_early_and_leaves_is_gone_once, 0,
                        DEPARTURES);
    tcase_add_loop_test(tests, a_client_that_leaves_while_held_is_gone_once, 0, DEPARTURES);
    tcase_add_loop_test(tests, a_client_that_leaves_before_its_request_is_read_is_gone_once, 0,
                        DEPARTURES);
    tcase_add_test(tests, a_client_that_half_closed_is_still_answered_at_once);
    tcase_add_test(tests, one_departure_may_end_another_exchange_of_the_same_batch);
    tcase_add_loop_test(tests, a_client_that_leaves_a_stream_is_gone_once, 0, DEPARTURES);
    tcase_add_loop_test(tests, a_client_that_leaves_while_it_is_written_to_is_gone_once, 0,
                        DEPARTURES);
    return tests;
}
