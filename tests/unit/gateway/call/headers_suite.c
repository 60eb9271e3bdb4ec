/* The headers that travel, and the requests that two readers could read differently. */
#include <stdio.h>
#include <string.h>

#include "call/headers.h"
#include "scaling.h"
#include "scene.h"
#include "suites.h"

static struct config_source_header credentials[] = {{"Authorization", "Bearer static"}};
static double measured[2]; /* of few headers and tokens, of four times as many */
static struct config_source source = {.id = "up", .headers = credentials};

static void write_up(struct scene *scene, struct http_exchange *exchange)
{
    struct headers headers;
    headers_init(&headers, scene->requests % 2 == 1); /* owned or borrowed, the same goes up */
    headers_from_request(&headers, exchange, &source);
    for (size_t i = 0; i < headers.count; i++)
        buffer_append_format(&scene->seen, "%.*s=%.*s;", STR_ARGS(headers.items[i].name),
                             STR_ARGS(headers.items[i].value));
    headers_finish(&headers);
    http_respond_text(exchange, 200, "text/plain", STR("done."));
}

static void judge(struct scene *scene, struct http_exchange *exchange)
{
    const char *repeated = http_name_text(http_header_repeated(exchange));
    buffer_append_format(&scene->seen, "%s %s", repeated ? repeated : "-",
                         headers_are_plain_json(exchange) ? "json" : "-");
    http_respond_text(exchange, 200, "text/plain", STR("done."));
}

static void expect(struct scene *scene, const char *head, const char *seen)
{
    struct peer peer;
    buffer_clear(&scene->seen);
    peer_connect(&peer, scene->loop, scene->port);
    peer_send_text(&peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n");
    peer_send_text(&peer, head);
    peer_send_text(&peer, "\r\n");
    peer_await(&peer, "done.");
    ck_assert_msg(str_equal(buffer_str(&scene->seen), str_from(seen)), "%s: %.*s", head,
                  STR_ARGS(buffer_str(&scene->seen)));
    peer_close(&peer);
}

START_TEST(request_headers_are_end_to_end)
{
    struct scene scene = {.act = write_up};
    start(&scene);
    source.header_count = 0;
    for (int i = 0; i < 2; i++) {
        expect(&scene, "Accept: a\r\nX-Empty:\r\nX: 1\r\nx: 2\r\n", "accept=a;x-empty=;x=1;x=2;");
        expect(&scene,
               "Connection: close, X-Hop , \r\nX-Hop: 1\r\nX-Hopper: 2\r\nKeep-Alive: 5\r\n"
               "TE: trailers\r\nTrailer: x\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
               "Proxy-Authorization: p\r\nProxy-Connection: p\r\nAccept-Encoding: gzip\r\n",
               "x-hopper=2;");
        expect(
            &scene,
            "Connection: close, keep-alive, upgrade, aaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbb,\tX-HOP,"
            ", cccccccccccccccccc, Content-Type\r\nX-Hop: 1\r\nX-Hopper: 2\r\n"
            "Content-Type: a/b\r\n",
            "x-hopper=2;content-type=a/b;");
        expect(&scene,
               "Connection: authorization, Mcp-Session-Id, content-type, mcp-protocol-version\r\n"
               "Authorization: a\r\nMcp-Session-Id: s\r\nContent-Type: t\r\n"
               "MCP-Protocol-Version: v\r\n",
               "authorization=a;mcp-session-id=s;content-type=t;mcp-protocol-version=v;");
    }
    stop(&scene);
}
END_TEST

/* Reads the headers of one request many times, so that the clock sees it. */
static void read_often(void *exchange)
{
    for (int i = 0; i < 20; i++) {
        struct headers headers;
        headers_init(&headers, false);
        headers_from_request(&headers, exchange, &source);
        headers_finish(&headers);
    }
}

static void measure(struct scene *scene, struct http_exchange *exchange)
{
    measured[scene->requests > 1] = scaling_cost(read_often, exchange);
    http_respond_text(exchange, 200, "text/plain", STR("done."));
}

/* Four times the headers and four times the tokens, none of which names one of them. */
static void send_long_list(struct scene *scene, int headers, int tokens)
{
    struct peer peer;
    struct buffer head;
    buffer_init(&head);
    buffer_append_text(&head, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n");
    for (int i = 0; i < headers; i++)
        buffer_append_format(&head, "X-Header-%d: 1\r\n", i);
    buffer_append_text(&head, "Connection: close");
    for (int i = 0; i < tokens; i++)
        buffer_append_format(&head, ",x-token-%d", i);
    buffer_append_text(&head, "\r\n\r\n");
    buffer_append_char(&head, '\0');
    peer_connect(&peer, scene->loop, scene->port);
    peer_send_text(&peer, buffer_str(&head).bytes);
    peer_await(&peer, "done.");
    peer_close(&peer);
    buffer_finish(&head);
}

START_TEST(the_cost_of_a_long_connection_header_is_linear)
{
    struct scene scene = {.act = measure};
    start(&scene);
    source.header_count = 0;
    send_long_list(&scene, 20, 500);
    send_long_list(&scene, 80, 2000);
    stop(&scene);
    ck_assert_msg(measured[1] <= measured[0] * 8, "%.0f ns became %.0f ns", measured[0],
                  measured[1]);
}
END_TEST

START_TEST(static_credentials_replace_the_clients)
{
    struct scene scene = {.act = write_up};
    start(&scene);
    source.header_count = 1;
    for (int i = 0; i < 2; i++)
        expect(&scene, "authorization: Bearer client\r\nX: 1\r\nAUTHORIZATION: b\r\n",
               "x=1;Authorization=Bearer static;");
    stop(&scene);
}
END_TEST

START_TEST(response_headers_are_end_to_end)
{
    const struct http_header items[] = {
        {STR("content-type"), STR("text/plain")},
        {STR("connection"), STR("x-hop")},
        {STR("x-hop"), STR("1")},
        {STR("content-length"), STR("5")},
        {STR("transfer-encoding"), STR("chunked")},
        {STR("set-cookie"), STR("a=1")},
        {STR("set-cookie"), STR("b=2")},
        {STR("www-authenticate"), STR("Bearer")},
    };
    struct headers headers;
    headers_init(&headers, true);
    headers_from_response(&headers, items, sizeof items / sizeof *items);
    ck_assert_uint_eq(headers.count, 4);
    ck_assert(str_equal(headers_find(&headers, "Content-Type"), STR("text/plain")));
    ck_assert(str_equal(headers_find(&headers, "set-cookie"), STR("a=1")));
    ck_assert(str_equal(headers.items[2].value, STR("b=2")));
    ck_assert(str_equal(headers_find(&headers, "www-authenticate"), STR("Bearer")));
    headers_set(&headers, STR("Set-Cookie"), STR("c=3"));
    ck_assert_uint_eq(headers.count, 3);
    ck_assert(str_equal(headers_find(&headers, "set-cookie"), STR("c=3")));
    headers_finish(&headers);
}
END_TEST

START_TEST(only_json_that_everybody_reads_alike_is_json)
{
    static const char *const good[] = {
        "application/json",
        "Application/JSON",
        "application/json;",
        "application/json; charset=utf-8",
        "application/json ;charset=\"UTF-8\"; a=b",
        "application/json; charset=utf8",
    };
    static const char *const bad[] = {
        "",
        "text/plain",
        "application/json-rpc",
        "application/jsonx",
        "text/plain; application/json",
        "application/json; charset=utf-7",
        "application/json; charset=utf-16",
        "application/json; charset",
        "application/json; charset=",
        "application/json; charset=\"utf-8",
        "application/json; charset*=utf-8",
        "application/json; charset*=utf-8''x",
        "application/json; a=\"; charset=utf-8; b=\"",
        "application/json; CHARSET =latin1",
        "application/json; charset=utf-8; charset=utf-7",
        "application/json; a=\"; charset=utf-8\"",
        "application/json\r\nContent-Encoding: gzip",
    };
    struct scene scene = {.act = judge};
    char head[256];
    start(&scene);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(head, sizeof head, "Content-Type: %s\r\n", good[i]);
        expect(&scene, head, "- json");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(head, sizeof head, "Content-Type: %s\r\n", bad[i]);
        expect(&scene, head, "- -");
    }
    expect(&scene, "", "- -");
    expect(&scene, "Content-Type: application/json\r\nContent-Encoding: identity\r\n", "- json");
    stop(&scene);
}
END_TEST

START_TEST(an_identifying_header_stands_there_once)
{
    struct scene scene = {.act = judge};
    start(&scene);
    expect(&scene, "Authorization: a\r\nX: 1\r\nX: 1\r\nAccept: a\r\nAccept: a\r\n", "- -");
    expect(&scene, "Authorization: a\r\nauthorization: a\r\n", "authorization -");
    expect(&scene, "Mcp-Session-Id: a\r\nX: 1\r\nMCP-SESSION-ID: b\r\n", "mcp-session-id -");
    expect(&scene, "Content-Type: application/json\r\nContent-Type: application/json\r\n",
           "content-type json");
    stop(&scene);
}
END_TEST

TCase *headers_tests(void)
{
    TCase *tests = tcase_create("headers");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, request_headers_are_end_to_end);
    tcase_add_test(tests, the_cost_of_a_long_connection_header_is_linear);
    tcase_add_test(tests, static_credentials_replace_the_clients);
    tcase_add_test(tests, response_headers_are_end_to_end);
    tcase_add_test(tests, only_json_that_everybody_reads_alike_is_json);
    tcase_add_test(tests, an_identifying_header_stands_there_once);
    return tests;
}
