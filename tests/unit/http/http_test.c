/* The HTTP server side, by raw clients over loopback. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"
#include "taskgate/core/clock.h"
#include "taskgate/http/server.h"

enum { MAX_BODY = 1000, HIGH_WATER = 64 * 1024 };

/* A server whose handler a test scripts, and what it saw. */
struct scene {
    struct loop *loop;
    struct http_server *server;
    uint16_t port;
    void (*act)(struct scene *scene, struct http_exchange *exchange);
    struct http_exchange *held; /* set to NULL when it is over */
    int requests;
    int gone;
    int drained;
    int idle;
    struct buffer seen; /* what the request was, as text */
};

static void on_request(struct http_exchange *exchange, void *context)
{
    struct scene *scene = context;
    scene->requests++;
    scene->act(scene, exchange);
}

static void start_with(struct scene *scene, struct http_server_options options)
{
    struct error error = {""};
    scene->loop = loop_create(&error);
    ck_assert_msg(scene->loop != NULL, "%s", error.message);
    buffer_init(&scene->seen);
    options.handler = on_request;
    options.context = scene;
    scene->server = http_server_create(scene->loop, &options, &error);
    ck_assert_msg(scene->server != NULL, "%s", error.message);
    scene->port = http_server_port(scene->server);
    ck_assert_uint_ne(scene->port, 0);
}

static const struct http_server_options usual = {
    .address = {"127.0.0.1", 9},
    .max_body_bytes = MAX_BODY,
    .read_timeout_ms = 5000,
    .stream_high_water = HIGH_WATER,
};

static void start(struct scene *scene)
{
    start_with(scene, usual);
}

static void stop(struct scene *scene)
{
    http_server_destroy(scene->server);
    loop_destroy(scene->loop);
    buffer_finish(&scene->seen);
}

static void on_gone(void *context)
{
    struct scene *scene = context;
    scene->gone++;
    scene->held = NULL;
}

static void on_drained(void *context)
{
    struct scene *scene = context;
    scene->drained++;
}

static void on_idle(void *context)
{
    struct scene *scene = context;
    scene->idle++;
}

/* ---- what a handler may do ---- */

static void answer_hello(struct scene *scene, struct http_exchange *exchange)
{
    http_respond_text(exchange, 200, "text/plain", STR("hello"));
}

static void answer_length(struct scene *scene, struct http_exchange *exchange)
{
    char text[32];
    snprintf(text, sizeof(text), "length=%zu.", http_body(exchange).length);
    http_respond_text(exchange, 200, "text/plain", str_from(text));
}

static void hold(struct scene *scene, struct http_exchange *exchange)
{
    scene->held = exchange;
    http_on_gone(exchange, on_gone, scene);
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

/* ---- requests ---- */

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
    http_server_set_max_body(scene.server, 2 * MAX_BODY);
    struct peer peer;
    peer_connect(&peer, scene.loop, scene.port);
    send_body(&peer, 2 * MAX_BODY, false);
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

/* ---- responses ---- */

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

/* ---- held requests ---- */

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

static void leave_by_close(struct peer *peer)
{
    peer_close(peer);
}

static void leave_by_half_close(struct peer *peer)
{
    shutdown(peer->fd, SHUT_WR);
}

static const struct {
    void (*leave)(struct peer *peer);
} departures[] = {{leave_by_close}, {leave_by_half_close}, {peer_reset}};

START_TEST(a_client_that_leaves_while_held_is_gone_once)
{
    struct scene scene = {.act = hold};
    struct peer peer;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
    run_until(scene.loop, &scene.requests, 1);
    departures[_i].leave(&peer);
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
    departures[_i].leave(&peer);
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

/* ---- streams ---- */

static void start_stream(struct scene *scene, struct http_exchange *exchange)
{
    const struct http_header type = {STR("content-type"), STR("text/event-stream")};
    hold(scene, exchange);
    http_on_drained(exchange, on_drained, scene);
    http_stream_start(exchange, 200, &type, 1, -1);
}

static void open_stream(struct scene *scene, struct peer *peer, const char *request)
{
    int before = scene->requests;
    start(scene);
    peer_connect(peer, scene->loop, scene->port);
    peer_send_text(peer, request);
    run_until(scene->loop, &scene->requests, before + 1);
    ck_assert_ptr_nonnull(scene->held);
}

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

static struct str block_of(char c, size_t length)
{
    static char bytes[256 * 1024];
    memset(bytes, c, length);
    return str_slice(bytes, length);
}

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
        takes_more = http_stream_write(scene.held, block_of('a', 32 * 1024));
        written += (size_t)32 * 1024;
        if (takes_more)
            loop_run_once(scene.loop, 0);
    }
    ck_assert(!takes_more);
    ck_assert_uint_gt(http_stream_backlog(scene.held), HIGH_WATER);
    ck_assert_uint_le(http_stream_backlog(scene.held), HIGH_WATER + 32 * 1024);
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

START_TEST(a_client_that_leaves_a_stream_is_gone_once)
{
    struct scene scene = {.act = start_stream};
    struct peer peer;
    open_stream(&scene, &peer, "GET / HTTP/1.1\r\n\r\n");
    http_stream_write(scene.held, STR(":\n\n"));
    peer_await(&peer, ":\n\n");
    departures[_i].leave(&peer);
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
    while (http_stream_write(scene.held, block_of('a', 256 * 1024)))
        loop_run_once(scene.loop, 0);
    run_idle(scene.loop);
    departures[_i].leave(&peer);
    run_until(scene.loop, &scene.gone, 1);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.gone, 1);
    ck_assert_int_eq(http_server_connections(scene.server), 0);
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
    http_stream_write(exchange, block_of('a', 200 * 1024));
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

/* ---- many connections ---- */

START_TEST(above_the_cap_nothing_is_accepted_until_one_closes)
{
    struct http_server_options options = usual;
    options.max_connections = 3;
    struct scene scene = {.act = answer_hello};
    struct peer peers[5];
    start_with(&scene, options);
    for (int i = 0; i < 5; i++) {
        peer_connect(&peers[i], scene.loop, scene.port);
        peer_send_text(&peers[i], "GET / HTTP/1.1\r\n\r\n");
    }
    run_until(scene.loop, &scene.requests, 3);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.requests, 3);
    ck_assert_int_eq(http_server_connections(scene.server), 3);
    peer_close(&peers[0]);
    run_until(scene.loop, &scene.requests, 4);
    run_idle(scene.loop);
    ck_assert_int_eq(http_server_connections(scene.server), 3);
    peer_close(&peers[1]);
    run_until(scene.loop, &scene.requests, 5);
    for (int i = 2; i < 5; i++) {
        peer_await(&peers[i], "hello");
        peer_close(&peers[i]);
    }
    stop(&scene);
}
END_TEST

START_TEST(hundreds_of_held_clients_leave_together)
{
    enum { COUNT = 300 };
    struct scene scene = {.act = hold};
    struct peer peers[COUNT];
    start(&scene);
    for (int i = 0; i < COUNT; i++) {
        peer_connect(&peers[i], scene.loop, scene.port);
        peer_send_text(&peers[i], "GET / HTTP/1.1\r\n\r\n");
    }
    run_until(scene.loop, &scene.requests, COUNT);
    for (int i = 0; i < COUNT; i++)
        peer_close(&peers[i]);
    run_until(scene.loop, &scene.gone, COUNT);
    run_idle(scene.loop);
    ck_assert_int_eq(http_server_connections(scene.server), 0);
    stop(&scene);
}
END_TEST

START_TEST(two_servers_share_a_loop_and_an_address_in_use_is_named)
{
    struct scene scene = {.act = answer_hello};
    struct error error = {""};
    struct peer peer;
    start(&scene);
    struct http_server_options options = usual;
    options.handler = on_request;
    options.context = &scene;
    options.port = scene.port;
    ck_assert_ptr_null(http_server_create(scene.loop, &options, &error));
    ck_assert_ptr_nonnull(strstr(error.message, "127.0.0.1"));
    ck_assert_ptr_nonnull(strstr(error.message, "in use"));
    options.port = 0;
    options.address = STR("no address");
    ck_assert_ptr_null(http_server_create(scene.loop, &options, &error));
    options.address = STR("::1");
    struct http_server *second = http_server_create(scene.loop, &options, &error);
    if (second != NULL) { /* a container may have no IPv6 */
        ck_assert_uint_ne(http_server_port(second), scene.port);
        http_server_destroy(second);
    }
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peer, "hello");
    peer_close(&peer);
    stop(&scene);
}
END_TEST

/* ---- the end ---- */

START_TEST(a_drain_closes_idle_connections_and_lets_the_others_finish)
{
    struct scene scene = {.act = answer_hello};
    struct peer idle, held, streaming;
    start(&scene);
    peer_connect(&idle, scene.loop, scene.port);
    peer_send_text(&idle, "GET / HTTP/1.1\r\n\r\n");
    peer_await(&idle, "hello");
    scene.act = hold;
    peer_connect(&held, scene.loop, scene.port);
    peer_send_text(&held, "GET / HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 2);
    struct http_exchange *held_exchange = scene.held;
    scene.act = start_stream;
    peer_connect(&streaming, scene.loop, scene.port);
    peer_send_text(&streaming, "GET / HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 3);
    http_stream_write(scene.held, STR("data"));
    peer_await(&streaming, "data");

    http_server_drain(scene.server, on_idle, &scene);
    peer_await_close(&idle);
    ck_assert_int_eq(scene.idle, 0);
    http_respond_text(held_exchange, 200, "text/plain", STR("bye"));
    peer_await_close(&held);
    peer_expect(&held, "Connection: close\r\n");
    peer_expect(&held, "\r\n\r\nbye");
    ck_assert_int_eq(scene.idle, 0);
    http_stream_end(scene.held);
    peer_await_close(&streaming);
    peer_expect(&streaming, "0\r\n\r\n");
    run_until(scene.loop, &scene.idle, 1);
    run_idle(scene.loop);
    ck_assert_int_eq(scene.idle, 1);
    ck_assert_int_eq(scene.gone, 0);
    peer_close(&idle);
    peer_close(&held);
    peer_close(&streaming);
    stop(&scene);
}
END_TEST

static void destroy_when_idle(void *context)
{
    struct scene *scene = context;
    scene->idle++;
    http_server_destroy(scene->server);
    scene->server = NULL;
}

START_TEST(a_drain_without_connections_ends_at_once_and_may_destroy)
{
    struct scene scene = {.act = answer_hello};
    start(&scene);
    http_server_drain(scene.server, destroy_when_idle, &scene);
    run_until(scene.loop, &scene.idle, 1);
    stop(&scene);
}
END_TEST

START_TEST(destroy_cuts_connections_in_every_state)
{
    struct scene scene = {.act = answer_hello};
    struct peer peers[6];
    start(&scene);
    for (int i = 0; i < 6; i++)
        peer_connect(&peers[i], scene.loop, scene.port);
    peer_send_text(&peers[0], "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peers[0], "hello"); /* idle */
    peer_send_text(&peers[1], "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");
    run_idle(scene.loop); /* reading a body */
    scene.act = hold;
    peer_send_text(&peers[2], "GET / HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 2); /* held */
    scene.act = start_stream;
    peer_send_text(&peers[3], "GET / HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 3);
    while (http_stream_write(scene.held, block_of('a', 256 * 1024)))
        loop_run_once(scene.loop, 0); /* being written to */
    peer_send_text(&peers[4], "POST / HTTP/1.1\r\nContent-Length: 9999\r\n\r\nab");
    peer_await(&peers[4], "HTTP/1.1 413 "); /* lingering; the last has sent nothing */
    ck_assert_int_eq(scene.gone, 0);
    http_server_destroy(scene.server);
    scene.server = NULL;
    ck_assert_int_eq(scene.gone, 2);
    for (int i = 0; i < 6; i++) {
        peer_await_close(&peers[i]);
        peer_close(&peers[i]);
    }
    stop(&scene);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("http");
    TCase *tests = tcase_create("http");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_request_is_given_as_it_was_sent);
    tcase_add_test(tests, a_request_without_host_query_or_body_has_them_empty);
    tcase_add_test(tests, a_connection_is_kept_for_the_next_request);
    tcase_add_test(tests, pipelined_requests_are_answered_in_order);
    tcase_add_test(tests, a_body_may_have_exactly_the_limit_and_not_one_byte_more);
    tcase_add_test(tests, a_client_with_far_too_large_a_body_reads_its_413_and_no_reset);
    tcase_add_test(tests, a_chunked_body_arrives_decoded);
    tcase_add_test(tests, expect_100_continue_is_answered_before_the_body);
    tcase_add_test(tests, a_request_that_does_not_come_to_its_end_is_closed);
    tcase_add_test(tests, responses_are_framed_for_every_status_and_for_head);
    tcase_add_test(tests, headers_that_frame_or_split_a_response_are_left_out);
    tcase_add_test(tests, a_held_request_is_answered_later);
    tcase_add_loop_test(tests, a_client_that_leaves_while_held_is_gone_once, 0, 3);
    tcase_add_loop_test(tests, a_client_that_leaves_before_its_request_is_read_is_gone_once, 0, 3);
    tcase_add_test(tests, a_client_that_half_closed_is_still_answered_at_once);
    tcase_add_test(tests, one_departure_may_end_another_exchange_of_the_same_batch);
    tcase_add_test(tests, each_write_of_a_stream_reaches_the_client);
    tcase_add_test(tests, a_stream_of_another_status_is_chunked_and_keeps_the_connection);
    tcase_add_test(tests, a_stream_of_known_length_has_that_length_or_is_cut);
    tcase_add_test(tests, a_slow_reader_is_told_of_and_loses_nothing);
    tcase_add_loop_test(tests, a_client_that_leaves_a_stream_is_gone_once, 0, 3);
    tcase_add_loop_test(tests, a_client_that_leaves_while_it_is_written_to_is_gone_once, 0, 3);
    tcase_add_test(tests, an_aborted_stream_is_seen_as_incomplete);
    tcase_add_test(tests, a_stream_may_be_ended_or_aborted_by_drained);
    tcase_add_test(tests, above_the_cap_nothing_is_accepted_until_one_closes);
    tcase_add_test(tests, hundreds_of_held_clients_leave_together);
    tcase_add_test(tests, two_servers_share_a_loop_and_an_address_in_use_is_named);
    tcase_add_test(tests, a_drain_closes_idle_connections_and_lets_the_others_finish);
    tcase_add_test(tests, a_drain_without_connections_ends_at_once_and_may_destroy);
    tcase_add_test(tests, destroy_cuts_connections_in_every_state);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
