/* The guard of a port: Host and Origin on loopback connections and on others. */
#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "scene.h"
#include "suite.h"
#include "taskgate/http/guard.h"

static char *const names[] = {"gateway.example", "other.example:8443", "[2001:db8::1]"};
static char *const origins[] = {"https://app.example", "null"};
static size_t name_count;

static void guard(struct scene *scene, struct http_exchange *exchange)
{
    bool host = http_guard_allows_host(exchange, names, name_count);
    bool origin = http_guard_allows_origin(exchange, origins, name_count > 0 ? 2 : 0);
    http_respond_text(exchange, 200, "text/plain",
                      host && origin ? STR("both.")
                      : host         ? STR("host.")
                      : origin       ? STR("origin.")
                                     : STR("none."));
}

/* The answer to one request on a connection that is closed behind it. */
static void expect_on(struct scene *scene, struct peer *peer, const char *head, const char *answer)
{
    peer_send_text(peer, "GET / HTTP/1.1\r\n");
    peer_send_text(peer, head);
    peer_send_text(peer, "Connection: close\r\n\r\n");
    peer_await_close(peer);
    ck_assert_msg(peer_has(peer, answer), "%s: %.*s", head, STR_ARGS(buffer_str(&peer->received)));
    peer_close(peer);
}

static void expect(struct scene *scene, const char *head, const char *answer)
{
    struct peer peer;
    peer_connect(&peer, scene->loop, scene->port);
    expect_on(scene, &peer, head, answer);
}

START_TEST(loopback_names_are_those_of_this_machine_alone)
{
    static const char *const good[] = {
        "localhost",       "LOCALHOST", "localhost:80", "127.0.0.1",
        "127.0.0.1:65535", "127.9.8.7", "[::1]",        "[::1]:7467",
    };
    static const char *const bad[] = {
        "",
        ":80",
        "localhost.",
        "localhost.example",
        "localhost:",
        "localhost:http",
        "localhost:65536",
        "localhost:80:80",
        "localhost@evil.example",
        "127.0.0.1.evil.example",
        "127.1",
        "0177.0.0.1",
        "2130706433",
        "128.0.0.1",
        "0.0.0.0",
        "::1",
        "[::1",
        "[::1]x",
        "[::1]:",
        "[::ffff:127.0.0.1]",
        "evil.example",
        " localhost",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(http_guard_is_loopback_name(str_from(good[i])), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!http_guard_is_loopback_name(str_from(bad[i])), "%s", bad[i]);
    ck_assert(!http_guard_is_loopback_name(str_slice("127.0.0.1\0.evil", 15)));
}
END_TEST

START_TEST(on_a_loopback_connection_a_foreign_host_is_refused)
{
    struct scene scene = {.act = guard};
    name_count = 0;
    start(&scene);
    expect(&scene, "Host: localhost\r\n", "both.");
    expect(&scene, "Host: 127.0.0.1:7467\r\n", "both.");
    expect(&scene, "Host: rebound.example\r\n", "origin.");
    expect(&scene, "Host: gateway.example\r\n", "origin.");
    stop(&scene);
}
END_TEST

START_TEST(allowed_hosts_match_with_and_without_their_port)
{
    struct scene scene = {.act = guard};
    name_count = 3;
    start(&scene);
    expect(&scene, "Host: gateway.example\r\n", "both.");
    expect(&scene, "Host: Gateway.Example:7467\r\n", "both.");
    expect(&scene, "Host: other.example:8443\r\n", "both.");
    expect(&scene, "Host: other.example:8444\r\n", "origin.");
    expect(&scene, "Host: other.example\r\n", "origin.");
    expect(&scene, "Host: [2001:db8::1]:80\r\n", "both.");
    expect(&scene, "Host: gateway.example.evil.example\r\n", "origin.");
    expect(&scene, "Host: gateway.example:80:80\r\n", "origin.");
    expect(&scene, "Host: localhost\r\n", "both.");
    stop(&scene);
}
END_TEST

START_TEST(an_origin_is_loopback_or_allowed_as_a_whole)
{
    struct scene scene = {.act = guard};
    name_count = 0;
    start(&scene);
    expect(&scene, "Host: localhost\r\nOrigin: http://localhost:6274\r\n", "both.");
    expect(&scene, "Host: localhost\r\nOrigin: https://127.0.0.1\r\n", "both.");
    expect(&scene, "Host: localhost\r\nOrigin: HTTP://[::1]:80\r\n", "both.");
    expect(&scene, "Host: localhost\r\nOrigin: https://app.example\r\n", "host.");
    expect(&scene, "Host: localhost\r\nOrigin: null\r\n", "host.");
    expect(&scene, "Host: localhost\r\nOrigin:\r\n", "host.");
    expect(&scene, "Host: localhost\r\nOrigin: localhost\r\n", "host.");
    expect(&scene, "Host: localhost\r\nOrigin: file://localhost\r\n", "host.");
    expect(&scene, "Host: localhost\r\nOrigin: http:localhost\r\n", "host.");
    expect(&scene, "Host: localhost\r\nOrigin: http://localhost.evil.example\r\n", "host.");
    expect(&scene, "Host: evil.example\r\nOrigin: http://evil.example\r\n", "none.");
    expect(&scene, "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n",
           "host.");
    name_count = 3;
    expect(&scene, "Host: localhost\r\nOrigin: https://app.example\r\n", "both.");
    expect(&scene, "Host: localhost\r\nOrigin: null\r\n", "both.");
    expect(&scene, "Host: localhost\r\nOrigin: http://app.example\r\n", "host.");
    expect(&scene, "Host: localhost\r\nOrigin: https://app.example:444\r\n", "host.");
    stop(&scene);
}
END_TEST

/* An IPv4 address of this machine outside 127.0.0.0/8; false when it has none. */
static bool find_outer_address(struct sockaddr_in *address)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *at = all; at && !found; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(address, at->ifa_addr, sizeof *address);
        found = ntohl(address->sin_addr.s_addr) >> 24 != 127;
    }
    freeifaddrs(all);
    return found;
}

static void expect_from_outside(struct scene *scene, struct sockaddr_in address, const char *head,
                                const char *answer)
{
    struct peer peer = {.loop = scene->loop, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    address.sin_port = htons(scene->port);
    ck_assert_int_eq(connect(peer.fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(fcntl(peer.fd, F_SETFL, O_NONBLOCK), 0);
    buffer_init(&peer.received);
    expect_on(scene, &peer, head, answer);
}

START_TEST(on_other_connections_only_allowed_hosts_are_asked_for)
{
    struct scene scene = {.act = guard};
    struct http_server_options everywhere = usual;
    struct sockaddr_in address;
    if (!find_outer_address(&address)) {
        printf("skipped: this machine has no address but loopback ones\n");
        return;
    }
    everywhere.address = STR("0.0.0.0");
    start_with(&scene, everywhere);
    name_count = 0;
    expect_from_outside(&scene, address, "Host: any.example\r\n", "both.");
    expect_from_outside(&scene, address, "Host: any.example\r\nOrigin: http://any.example\r\n",
                        "host.");
    name_count = 3;
    expect_from_outside(&scene, address, "Host: gateway.example:80\r\n", "both.");
    expect_from_outside(&scene, address, "Host: any.example\r\n", "origin.");
    expect_from_outside(&scene, address, "Host: localhost\r\n", "origin.");
    stop(&scene);
}
END_TEST

TCase *guard_tests(void)
{
    TCase *tests = tcase_create("guard_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, loopback_names_are_those_of_this_machine_alone);
    tcase_add_test(tests, on_a_loopback_connection_a_foreign_host_is_refused);
    tcase_add_test(tests, allowed_hosts_match_with_and_without_their_port);
    tcase_add_test(tests, an_origin_is_loopback_or_allowed_as_a_whole);
    if (!peer_speaks_tls) /* it has a socket of its own */
        tcase_add_test(tests, on_other_connections_only_allowed_hosts_are_asked_for);
    return tests;
}
