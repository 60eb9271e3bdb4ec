/* Promises of our own client alone: strict frames on the wire, and kept connections. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "http1_client.h"
#include "scene.h"
#include "suite.h"
#include "taskgate/core/clock.h"

static void await_post(struct scene *scene, struct record *record, struct peer *peer)
{
    post_to(scene, record);
    origin_accept(&scene->origin, peer);
    peer_await(peer, "{\"a\":1}");
}

/* At once, and not because it has been idle for too long. */
static void expect_closed(struct peer *peer)
{
    run_idle(peer->loop);
    peer_receive(peer);
    ck_assert(peer->is_closed);
}

static const struct {
    const char *answer;
    const char *body; /* the part that may be shown; NULL: not even a head */
} malformed[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", NULL},
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nevil", NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", NULL},
    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nevil", NULL},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nevil\r\n", ""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokevil\r\n", "ok"},
};

START_TEST(a_malformed_response_is_gone_and_shows_nothing_of_it)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    await_post(&scene, &record, &peer);
    peer_send_text(&peer, malformed[_i].answer);
    await_end(&record, UPSTREAM_GONE);
    ck_assert_int_eq(record.heads, malformed[_i].body != NULL);
    expect_text(&record.body, malformed[_i].body != NULL ? malformed[_i].body : "");
    expect_closed(&peer);
    ck_assert(!origin_has_client(&scene.origin));
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static const struct {
    const char *answer;
    bool is_kept;
} endings[] = {
    {SHORT_ANSWER, true},
    {SHORT_ANSWER "H", false},
    {SHORT_ANSWER "\r\n", false},
    {SHORT_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n", true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nevil", false},
    {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", true},
};

START_TEST(only_a_connection_in_order_is_kept)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    await_post(&scene, &record, &peer);
    peer_send_text(&peer, endings[_i].answer);
    await_end(&record, UPSTREAM_DONE);
    expect_text(&record.body, "ok");
    forget(&record);
    if (endings[_i].is_kept) {
        peer_clear(&peer);
        post_to(&scene, &record);
        peer_await(&peer, "{\"a\":1}");
        peer_send_text(&peer, SHORT_ANSWER);
        await_end(&record, UPSTREAM_DONE);
        forget(&record);
    } else {
        expect_closed(&peer);
    }
    ck_assert(!origin_has_client(&scene.origin));
    peer_close(&peer);
    stop(&scene);
}
END_TEST

/* _i: by its end, by bytes without a request. */
START_TEST(an_idle_connection_goes_as_soon_as_the_server_stirs)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    await_post(&scene, &record, &peer);
    peer_send_text(&peer, SHORT_ANSWER);
    await_end(&record, UPSTREAM_DONE);
    forget(&record);
    run_idle(scene.loop);
    peer_receive(&peer);
    ck_assert(!peer.is_closed);
    if (_i == 0)
        shutdown(peer.fd, SHUT_WR);
    else
        peer_send_text(&peer, "HTTP/1.1 408 Request Timeout\r\n\r\n");
    expect_closed(&peer);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

/* The loop had no time to read these bytes: a check before the request goes out finds them. */
START_TEST(a_stale_connection_takes_no_request)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peers[2];
    start(&scene);
    await_post(&scene, &record, &peers[0]);
    peer_send_text(&peers[0], SHORT_ANSWER);
    await_end(&record, UPSTREAM_DONE);
    forget(&record);
    peer_clear(&peers[0]);
    if (_i == 0)
        shutdown(peers[0].fd, SHUT_WR);
    else
        peer_send_text(&peers[0], "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    await_post(&scene, &record, &peers[1]);
    expect_closed(&peers[0]);
    ck_assert_uint_eq(peers[0].received.length, 0);
    peer_send_text(&peers[1], SHORT_ANSWER);
    await_end(&record, UPSTREAM_DONE);
    expect_text(&record.body, "ok");
    forget(&record);
    peer_close(&peers[0]);
    peer_close(&peers[1]);
    stop(&scene);
}
END_TEST

START_TEST(no_more_connections_are_kept_than_agreed_and_none_for_long)
{
    enum { CALLS = 10, KEPT = 8 };
    struct scene scene;
    struct record records[CALLS] = {{.status = 0}};
    struct peer peers[CALLS];
    int closed = 0;
    start(&scene);
    for (int i = 0; i < CALLS; i++)
        await_post(&scene, &records[i], &peers[i]);
    for (int i = 0; i < CALLS; i++) {
        peer_send_text(&peers[i], SHORT_ANSWER);
        await_end(&records[i], UPSTREAM_DONE);
        forget(&records[i]);
        peer_clear(&peers[i]);
    }
    run_idle(scene.loop);
    for (int i = 0; i < CALLS; i++) {
        peer_receive(&peers[i]);
        closed += peers[i].is_closed;
    }
    ck_assert_int_eq(closed, CALLS - KEPT);
    ck_assert(peers[0].is_closed && peers[1].is_closed); /* idle for longest */

    post_to(&scene, &records[0]); /* on the one used last */
    peer_await(&peers[CALLS - 1], "{\"a\":1}");
    for (int i = CALLS - KEPT; i < CALLS - 1; i++)
        peer_await_close(&peers[i]);
    ck_assert(!peers[CALLS - 1].is_closed);
    peer_send_text(&peers[CALLS - 1], SHORT_ANSWER);
    await_end(&records[0], UPSTREAM_DONE);
    forget(&records[0]);
    for (int i = 0; i < CALLS; i++)
        peer_close(&peers[i]);
    stop(&scene);
}
END_TEST

START_TEST(connections_of_other_hosts_are_not_used)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peers[2];
    char url[64];
    start(&scene);
    await_post(&scene, &record, &peers[0]);
    peer_send_text(&peers[0], SHORT_ANSWER);
    await_end(&record, UPSTREAM_DONE);
    forget(&record);
    peer_clear(&peers[0]);
    struct upstream_request request = post;
    snprintf(url, sizeof(url), "http://127.0.0.2:%u/", scene.origin.port);
    request.url = url;
    call_with(&scene, &record, request);
    await_end(&record, UPSTREAM_CONNECT_FAILED); /* nobody listens there */
    forget(&record);
    peer_receive(&peers[0]);
    ck_assert_uint_eq(peers[0].received.length, 0);
    peer_close(&peers[0]);
    stop(&scene);
}
END_TEST

static void await_bytes_taken(struct scene *scene, const struct record *record, size_t length)
{
    int64_t give_up_ms = clock_monotonic_ms() + 10000;
    while (record->body.length < length && clock_monotonic_ms() < give_up_ms)
        loop_run_once(scene->loop, 5);
    ck_assert_uint_eq(record->body.length, length);
}

START_TEST(a_response_may_come_byte_by_byte)
{
    static const char answer[] =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-A: b\r\n"
        "Transfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n3\r\n!!!\r\n0\r\nA: b\r\n\r\n";
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    await_post(&scene, &record, &peer);
    for (size_t i = 0; i < sizeof(answer) - 1; i++) {
        ck_assert_int_eq(record.ends, 0);
        peer_send(&peer, str_slice(&answer[i], 1));
        loop_run_once(scene.loop, 1);
    }
    await_end(&record, UPSTREAM_DONE);
    expect_text(&record.headers, "x-a: b\ntransfer-encoding: chunked\n");
    expect_text(&record.body, "ok!!!");
    forget(&record);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_body_may_end_with_the_connection)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    await_post(&scene, &record, &peer);
    peer_send_text(&peer, "HTTP/1.1 200 OK\r\n\r\nabc");
    await_bytes_taken(&scene, &record, 3);
    ck_assert_int_eq(record.ends, 0);
    if (_i == 0)
        peer_close(&peer);
    else
        peer_reset(&peer);
    await_end(&record, _i == 0 ? UPSTREAM_DONE : UPSTREAM_GONE);
    expect_text(&record.body, "abc");
    forget(&record);
    stop(&scene);
}
END_TEST

/* ---- below the door: addresses are set by hand ---- */

static void on_end(void *context, enum upstream_result result, const char *detail)
{
    struct record *record = context;
    record->ends++;
    record->result = result;
    snprintf(record->detail, sizeof(record->detail), "%s", detail);
}

static const struct upstream_callbacks only_end = {.end = on_end};

static struct http1_address loopback(uint16_t port)
{
    struct http1_address address;
    ck_assert(http1_address_read(&address, STR("127.0.0.1"), port));
    return address;
}

/* A host with a first address that refuses or hangs, and perhaps a second one that answers. */
static void call_somewhere(struct http1_client *client, struct record *record, uint16_t first,
                           uint16_t second)
{
    struct http1_url url;
    struct upstream_request request = post;
    request.url = "http://somewhere.invalid:1234/mcp";
    request.connect_timeout_ms = 1000;
    ck_assert(http1_url_read(&url, request.url));
    struct http1_host *host = http1_host_of(client, &url);
    host->addresses.items[0] = loopback(first);
    host->addresses.items[1] = loopback(second);
    host->addresses.count = second != 0 ? 2 : 1;
    host->known_since_ms = clock_monotonic_ms();
    record->scene = NULL;
    record->ends = 0;
    http1_call_start(client, &url, &request, &only_end, record);
}

/* _i: the first address refuses, hangs. */
START_TEST(each_address_of_a_host_is_tried)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct origin full;
    struct peer peer, fillers[8];
    start(&scene);
    origin_listen(&full, scene.loop);
    ck_assert_int_eq(listen(full.fd, 0), 0);
    for (int i = 0; i < 8; i++)
        origin_fill(&full, &fillers[i]);
    struct http1_client *client = http1_client_create(scene.loop, 8);
    call_somewhere(client, &record, _i == 0 ? 1 : full.port, scene.origin.port);
    origin_accept(&scene.origin, &peer);
    peer_await(&peer, "{\"a\":1}");
    peer_expect(&peer, "Host: somewhere.invalid:1234\r\n");
    peer_send_text(&peer, SHORT_ANSWER);
    run_until(scene.loop, &record.ends, 1);
    ck_assert_int_eq(record.result, UPSTREAM_DONE);
    http1_client_destroy(client);
    for (int i = 0; i < 8; i++)
        peer_close(&fillers[i]);
    origin_close(&full);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(addresses_that_answer_no_more_are_looked_up_anew)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct http1_url url;
    start(&scene);
    struct http1_client *client = http1_client_create(scene.loop, 8);
    call_somewhere(client, &record, 1, 0);
    run_until(scene.loop, &record.ends, 1);
    ck_assert_int_eq(record.result, UPSTREAM_CONNECT_FAILED);
    ck_assert_ptr_nonnull(strstr(record.detail, "refused"));

    ck_assert(http1_url_read(&url, "http://somewhere.invalid:1234/"));
    ck_assert(!http1_host_is_known(http1_host_of(client, &url)));
    http1_call_start(client, &url, &get, &only_end, &record);
    run_until(scene.loop, &record.ends, 2);
    ck_assert_int_eq(record.result, UPSTREAM_CONNECT_FAILED);
    ck_assert_ptr_null(strstr(record.detail, "refused"));
    http1_client_destroy(client);
    stop(&scene);
}
END_TEST

static const struct {
    const char *text;
    const char *authority, *host, *host_line, *target; /* NULL: not for us */
    unsigned port;
} urls[] = {
    {"http://a/", "a", "a", "a", "/", 80},
    {"http://a", "a", "a", "a", "", 80},
    {"http://a.b-c_d:80/x", "a.b-c_d:80", "a.b-c_d", "a.b-c_d", "/x", 80},
    {"http://127.0.0.1:65535/mcp?a=b&c=%20/..", "127.0.0.1:65535", "127.0.0.1", "127.0.0.1:65535",
     "/mcp?a=b&c=%20/..", 65535},
    {"http://[::1]:8080/", "[::1]:8080", "::1", "[::1]:8080", "/", 8080},
    {"http://[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]", "::ffff:1.2.3.4", "[::ffff:1.2.3.4]", "", 80},
    {"https://a/", NULL, NULL, NULL, NULL, 0},
    {"HTTP://a/", NULL, NULL, NULL, NULL, 0},
    {"http://", NULL, NULL, NULL, NULL, 0},
    {"http:///", NULL, NULL, NULL, NULL, 0},
    {"http://:80/", NULL, NULL, NULL, NULL, 0},
    {"http://u@a/", NULL, NULL, NULL, NULL, 0},
    {"http://u:p@a/", NULL, NULL, NULL, NULL, 0},
    {"http://a?b", NULL, NULL, NULL, NULL, 0},
    {"http://a/#b", NULL, NULL, NULL, NULL, 0},
    {"http://a/ b", NULL, NULL, NULL, NULL, 0},
    {"http://a/\r\nX: y", NULL, NULL, NULL, NULL, 0},
    {"http://a/\x7f", NULL, NULL, NULL, NULL, 0},
    {"http://a/\xc3\xa9", NULL, NULL, NULL, NULL, 0},
    {"http://%61/", NULL, NULL, NULL, NULL, 0},
    {"http://a:/", NULL, NULL, NULL, NULL, 0},
    {"http://a:0/", NULL, NULL, NULL, NULL, 0},
    {"http://a:080/", NULL, NULL, NULL, NULL, 0},
    {"http://a:65536/", NULL, NULL, NULL, NULL, 0},
    {"http://a:123456/", NULL, NULL, NULL, NULL, 0},
    {"http://a:1x/", NULL, NULL, NULL, NULL, 0},
    {"http://[::1/", NULL, NULL, NULL, NULL, 0},
    {"http://[]/", NULL, NULL, NULL, NULL, 0},
    {"http://[fe80::1%25eth0]/", NULL, NULL, NULL, NULL, 0},
    {"http://a]/", NULL, NULL, NULL, NULL, 0},
    {"", NULL, NULL, NULL, NULL, 0},
};

static void expect_part(struct str part, const char *text)
{
    ck_assert_msg(str_equal(part, str_from(text)), "\"%.*s\" for \"%s\"", STR_ARGS(part), text);
}

START_TEST(an_ordinary_url_is_read_and_any_other_left)
{
    struct http1_url url;
    ck_assert_int_eq(http1_url_read(&url, urls[_i].text), urls[_i].host != NULL);
    if (urls[_i].host == NULL)
        return;
    expect_part(url.authority, urls[_i].authority);
    expect_part(url.host, urls[_i].host);
    expect_part(url.host_line, urls[_i].host_line);
    expect_part(url.target, urls[_i].target);
    ck_assert_uint_eq(url.port, urls[_i].port);
}
END_TEST

/* Whether libcurl is in this process. */
static bool has_libcurl(void)
{
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        found |= strstr(line, "/libcurl") != NULL;
    fclose(maps);
    return found;
}

START_TEST(libcurl_is_loaded_for_those_who_need_it)
{
    struct scene scene = {0};
    struct record record = {0};
    struct peer peer;
    struct error error = {""};
    start(&scene);
    ck_assert(upstream_prepare("http://127.0.0.1:1/mcp", &error));
    await_post(&scene, &record, &peer);
    peer_send_text(&peer, SHORT_ANSWER);
    await_end(&record, UPSTREAM_DONE);
    ck_assert(!has_libcurl());
    ck_assert_msg(upstream_prepare("https://127.0.0.1:1/mcp", &error), "%s", error.message);
    ck_assert(has_libcurl());
    peer_close(&peer);
    forget(&record);
    stop(&scene);
}
END_TEST

TCase *pool_tests(void)
{
    TCase *tests = tcase_create("pool_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, libcurl_is_loaded_for_those_who_need_it);
    tcase_add_loop_test(tests, a_malformed_response_is_gone_and_shows_nothing_of_it, 0, 6);
    tcase_add_loop_test(tests, only_a_connection_in_order_is_kept, 0, 10);
    tcase_add_loop_test(tests, an_idle_connection_goes_as_soon_as_the_server_stirs, 0, 2);
    tcase_add_loop_test(tests, a_stale_connection_takes_no_request, 0, 2);
    tcase_add_test(tests, no_more_connections_are_kept_than_agreed_and_none_for_long);
    tcase_add_test(tests, connections_of_other_hosts_are_not_used);
    tcase_add_test(tests, a_response_may_come_byte_by_byte);
    tcase_add_loop_test(tests, a_body_may_end_with_the_connection, 0, 2);
    tcase_add_loop_test(tests, each_address_of_a_host_is_tried, 0, 2);
    tcase_add_test(tests, addresses_that_answer_no_more_are_looked_up_anew);
    tcase_add_loop_test(tests, an_ordinary_url_is_read_and_any_other_left, 0,
                        (int)(sizeof(urls) / sizeof(urls[0])));
    return tests;
}
