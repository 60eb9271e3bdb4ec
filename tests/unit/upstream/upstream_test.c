/* Calls to an MCP server, against raw peers that answer, stall, break and vanish. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "origin.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/digest.h"
#include "taskgate/upstream/upstream.h"

struct scene {
    struct loop *loop;
    struct upstream_client *client;
    struct origin origin;
};

/* A call and what came of it. */
struct record {
    struct scene *scene;
    struct upstream_call *call; /* NULL when it is over */
    int status;
    struct buffer headers; /* "name: value\n" each */
    struct buffer body;
    int heads;
    int pieces;
    int ends;
    enum upstream_result result;
    char detail[256];
    void (*in_head)(struct record *record);
    void (*in_body)(struct record *record);
    void (*in_end)(struct record *record);
    struct record *other;
    struct loop_timer timer;
};

static void start(struct scene *scene)
{
    struct error error = {""};
    scene->loop = loop_create(&error);
    ck_assert_msg(scene->loop != NULL, "%s", error.message);
    scene->client = upstream_client_create(scene->loop, 8, &error);
    ck_assert_msg(scene->client != NULL, "%s", error.message);
    origin_listen(&scene->origin, scene->loop);
}

static void stop(struct scene *scene)
{
    upstream_client_destroy(scene->client);
    origin_close(&scene->origin);
    loop_destroy(scene->loop);
}

static void on_head(void *context, int status, const struct http_header *headers, size_t count)
{
    struct record *record = context;
    record->heads++;
    record->status = status;
    for (size_t i = 0; i < count; i++)
        buffer_append_format(&record->headers, "%.*s: %.*s\n", STR_ARGS(headers[i].name),
                             STR_ARGS(headers[i].value));
    if (record->in_head != NULL)
        record->in_head(record);
}

static void on_body(void *context, struct str bytes)
{
    struct record *record = context;
    record->pieces++;
    buffer_append(&record->body, bytes);
    if (record->in_body != NULL)
        record->in_body(record);
}

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct record *record = context;
    record->ends++;
    record->result = result;
    snprintf(record->detail, sizeof(record->detail), "%s", detail);
    if (record->in_end != NULL)
        record->in_end(record);
    record->call = NULL;
}

static const struct upstream_callbacks callbacks = {
    .head = on_head, .body = on_body, .end = on_end};

static void call_with(struct scene *scene, struct record *record, struct upstream_request request)
{
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/mcp?a=b", scene->origin.port);
    if (request.url == NULL)
        request.url = url;
    record->scene = scene;
    record->heads = record->pieces = record->ends = 0;
    buffer_init(&record->headers);
    buffer_init(&record->body);
    record->call = upstream_call_start(scene->client, &request, &callbacks, record);
    ck_assert_int_eq(record->heads + record->pieces + record->ends, 0);
}

static const struct http_header json_headers[] = {
    {STR("Content-Type"), STR("application/json")},
    {STR("accept"), STR("text/event-stream")},
    {STR("X-Empty"), STR_EMPTY},
    {STR("Mcp-Session-Id"), STR("s 1")},
};

static const struct upstream_request post = {
    .method = "POST", .headers = json_headers, .header_count = 4, .body = {"{\"a\":1}", 7}};
static const struct upstream_request get = {.method = "GET"};

static void post_to(struct scene *scene, struct record *record)
{
    call_with(scene, record, post);
}

static void forget(struct record *record)
{
    buffer_finish(&record->headers);
    buffer_finish(&record->body);
}

static void await_end(struct record *record, enum upstream_result result)
{
    run_until(record->scene->loop, &record->ends, 1);
    ck_assert_msg(record->result == result, "result %d: %s", (int)record->result, record->detail);
}

static void expect_text(const struct buffer *buffer, const char *text)
{
    ck_assert_msg(str_equal(buffer_str(buffer), str_from(text)), "got: %.*s",
                  STR_ARGS(buffer_str(buffer)));
}

#define SHORT_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* ---- requests and responses ---- */

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
    peer_send_text(&peer, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Folded: a\r\n"
                          "  b\r\nTransfer-Encoding: chunked\r\n\r\n");
    run_until(scene.loop, &record.heads, 1);
    ck_assert_int_eq(record.status, 200);
    expect_text(&record.headers, "content-type: text/event-stream\nx-folded: a b\n"
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

/* ---- failures ---- */

static const struct {
    const char *url;
    const char *name;
    const char *value;
} never_sent[] = {
    {"http://127.0.0.1:1/", "x", "1"},     /* refused */
    {"http://no.such.invalid/", "x", "1"}, /* no such name */
    {"ftp://127.0.0.1/", "x", "1"},        /* not ours to speak */
    {"http://", "x", "1"},                 /* no URL */
    {NULL, "x", "1\r\nx-evil: 2"},         /* split */
    {NULL, "x", "1\ny"},
    {NULL, "x y", "1"},
    {NULL, "x:", "1"},
    {NULL, "", "1"},
};

START_TEST(what_cannot_be_sent_is_a_failed_connect)
{
    struct scene scene;
    struct record record = {.status = 0};
    start(&scene);
    const struct http_header header = {str_from(never_sent[_i].name),
                                       str_from(never_sent[_i].value)};
    call_with(&scene, &record,
              (struct upstream_request){.method = "POST",
                                        .url = never_sent[_i].url,
                                        .headers = &header,
                                        .header_count = 1,
                                        .body = STR("x")});
    await_end(&record, UPSTREAM_CONNECT_FAILED);
    ck_assert_uint_gt(strlen(record.detail), 0);
    ck_assert_int_eq(record.heads, 0);
    ck_assert(!origin_has_client(&scene.origin));
    forget(&record);
    stop(&scene);
}
END_TEST

START_TEST(a_self_signed_certificate_is_a_failed_connect)
{
    struct scene scene;
    struct record record = {.status = 0};
    char url[64];
    start(&scene);
    struct tls_origin *origin = tls_origin_start();
    snprintf(url, sizeof(url), "https://localhost:%u/", tls_origin_port(origin));
    struct upstream_request request = post;
    request.url = url;
    call_with(&scene, &record, request);
    await_end(&record, UPSTREAM_CONNECT_FAILED);
    ck_assert_ptr_nonnull(strstr(record.detail, "certificate"));
    ck_assert_int_eq(tls_origin_stop(origin), 0);
    forget(&record);
    stop(&scene);
}
END_TEST

static const struct {
    const char *answer; /* sent before the connection breaks */
    bool by_reset;
    int heads;
} breaks[] = {
    {"", false, 0},
    {"", true, 0},
    {"HTTP/1.1 200 OK\r\nContent-", false, 0},
    {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", false, 1},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false, 1},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true, 1},
    {"this is not HTTP\r\n\r\n", false, 0},
};

START_TEST(a_connection_that_breaks_is_gone)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    post_to(&scene, &record);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, breaks[_i].answer);
    run_until(scene.loop, &record.heads, breaks[_i].heads);
    run_idle(scene.loop);
    if (breaks[_i].by_reset)
        peer_reset(&peer);
    else
        peer_close(&peer);
    await_end(&record, UPSTREAM_GONE);
    ck_assert_uint_gt(strlen(record.detail), 0);
    ck_assert_int_eq(record.heads, breaks[_i].heads);
    if (breaks[_i].heads > 0)
        expect_text(&record.body, "abc");
    ck_assert(!origin_has_client(&scene.origin));
    forget(&record);
    stop(&scene);
}
END_TEST

START_TEST(silence_ends_a_call_and_any_byte_is_life)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    struct upstream_request request = post;
    request.silence_timeout_ms = 150;
    start(&scene);
    call_with(&scene, &record, request);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    int64_t start_ms = clock_monotonic_ms();
    int64_t sent_ms = start_ms;
    while (clock_monotonic_ms() - start_ms < 400) { /* longer than the limit, never silent */
        if (clock_monotonic_ms() - sent_ms >= 20) {
            peer_send_text(&peer, "1\r\n:\r\n");
            sent_ms = clock_monotonic_ms();
        }
        loop_run_once(scene.loop, 5);
    }
    ck_assert_int_eq(record.ends, 0);
    await_end(&record, UPSTREAM_SILENT);
    ck_assert_int_ge(clock_monotonic_ms() - sent_ms, 150);
    peer_await_close(&peer);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

/* ---- keep-alive ---- */

static void answer_first(struct scene *scene, struct record *record, struct peer *peer)
{
    post_to(scene, record);
    origin_accept(&scene->origin, peer);
    peer_await(peer, "{\"a\":1}");
    peer_send_text(peer, SHORT_ANSWER);
    await_end(record, UPSTREAM_DONE);
    forget(record);
    peer_clear(peer);
}

START_TEST(a_connection_is_used_again)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    answer_first(&scene, &record, &peer);
    for (int i = 0; i < 3; i++) {
        call_with(&scene, &record, i == 1 ? get : post);
        peer_await(&peer, i == 1 ? "GET " : "{\"a\":1}");
        peer_send_text(&peer, SHORT_ANSWER);
        await_end(&record, UPSTREAM_DONE);
        expect_text(&record.body, "ok");
        forget(&record);
        peer_clear(&peer);
        ck_assert(!origin_has_client(&scene.origin));
    }
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_connection_that_was_closed_while_idle_is_replaced)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    answer_first(&scene, &record, &peer);
    peer_close(&peer);
    answer_first(&scene, &record, &peer);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_post_that_was_sent_is_never_sent_again)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    answer_first(&scene, &record, &peer);
    post_to(&scene, &record);
    peer_await(&peer, "{\"a\":1}"); /* on the connection kept from before */
    if (_i == 0)
        peer_close(&peer);
    else
        peer_reset(&peer);
    await_end(&record, UPSTREAM_GONE);
    run_idle(scene.loop);
    if (origin_has_client(&scene.origin)) { /* a connection may have been made, in vain */
        origin_accept(&scene.origin, &peer);
        run_idle(scene.loop);
        peer_receive(&peer);
        ck_assert_uint_eq(peer.received.length, 0);
        peer_close(&peer);
    }
    forget(&record);
    stop(&scene);
}
END_TEST

START_TEST(a_get_is_sent_again_when_a_kept_connection_breaks_under_it)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    answer_first(&scene, &record, &peer);
    call_with(&scene, &record, get);
    peer_await(&peer, "GET ");
    peer_close(&peer);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "GET ");
    peer_send_text(&peer, SHORT_ANSWER);
    await_end(&record, UPSTREAM_DONE);
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

/* ---- back-pressure ---- */

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

static void pause_once(struct record *record)
{
    upstream_call_pause(record->call);
    record->in_body = NULL;
}

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

/* ---- cancelling and starting from anywhere ---- */

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

int main(void)
{
    Suite *suite = suite_create("upstream");
    TCase *tests = tcase_create("upstream");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_request_goes_out_as_it_was_given_and_nothing_is_added);
    tcase_add_loop_test(tests, a_bare_request_has_no_more_than_host, 0, 3);
    tcase_add_test(tests, a_large_request_body_goes_out_whole_and_without_expect);
    tcase_add_test(tests, a_stream_comes_piece_by_piece_without_interim_responses_and_trailers);
    tcase_add_loop_test(tests, what_cannot_be_sent_is_a_failed_connect, 0, 9);
    tcase_add_test(tests, a_self_signed_certificate_is_a_failed_connect);
    tcase_add_loop_test(tests, a_connection_that_breaks_is_gone, 0, 7);
    tcase_add_test(tests, silence_ends_a_call_and_any_byte_is_life);
    tcase_add_test(tests, a_connection_is_used_again);
    tcase_add_test(tests, a_connection_that_was_closed_while_idle_is_replaced);
    tcase_add_loop_test(tests, a_post_that_was_sent_is_never_sent_again, 0, 2);
    tcase_add_test(tests, a_get_is_sent_again_when_a_kept_connection_breaks_under_it);
    tcase_add_test(tests, sixty_megabytes_come_through_pauses_unharmed);
    tcase_add_test(tests, a_paused_call_reads_no_more_and_counts_no_silence);
    tcase_add_test(tests, pause_and_resume_within_one_callback_change_nothing);
    tcase_add_loop_test(tests, a_call_may_be_cancelled_in_any_of_its_callbacks, 0, 3);
    tcase_add_loop_test(tests, a_call_may_be_cancelled_by_another_ones_callbacks, 0, 3);
    tcase_add_test(tests, a_call_may_be_cancelled_at_once_or_while_paused);
    tcase_add_loop_test(tests, a_call_may_be_started_in_any_callback, 0, 3);
    tcase_add_test(tests, destroy_cancels_what_runs);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
