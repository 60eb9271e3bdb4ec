/* The server as a whole: many connections, several servers, drain, destroy. */
#include <check.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "scene.h"
#include "suite.h"
#include "taskgate/core/clock.h"

/* Of held clients none makes room; idle ones do, those first that were never answered. */
START_TEST(above_the_cap_idle_connections_make_room_and_held_ones_do_not)
{
    struct http_server_options options = usual;
    options.max_connections = 3;
    struct scene scene = {.act = answer_hello};
    struct peer peers[6];
    start_with(&scene, options);
    for (int i = 0; i < 3; i++)
        peer_connect(&peers[i], scene.loop, scene.port);
    peer_send_text(&peers[0], "GET / HTTP/1.1\r\n\r\n");
    peer_await(&peers[0], "hello");
    for (int i = 3; i < 5; i++) {
        peer_connect(&peers[i], scene.loop, scene.port);
        peer_send_text(&peers[i], "GET / HTTP/1.1\r\n\r\n");
        peer_await(&peers[i], "hello");
        peer_await_close(&peers[i - 2]);
    }
    ck_assert_int_eq(http_server_connections(scene.server), 3);
    scene.act = hold;
    for (int i = 0; i < 5; i += i == 0 ? 3 : 1)
        peer_send_text(&peers[i], "GET / HTTP/1.1\r\n\r\n");
    run_until(scene.loop, &scene.requests, 6);
    peer_connect(&peers[5], scene.loop, scene.port);
    peer_send_text(&peers[5], "GET / HTTP/1.1\r\n\r\n");
    for (int64_t start_ms = clock_monotonic_ms(); clock_monotonic_ms() - start_ms < 1200;)
        loop_run_once(scene.loop, 50);
    ck_assert_int_eq(scene.requests, 6);
    peer_close(&peers[3]);
    run_until(scene.loop, &scene.requests, 7);
    for (int i = 0; i < 6; i++) {
        if (i != 3)
            peer_close(&peers[i]);
    }
    stop(&scene);
}
END_TEST

START_TEST(above_the_cap_nothing_is_accepted_until_one_closes)
{
    struct http_server_options options = usual;
    options.max_connections = 3;
    struct scene scene = {.act = hold};
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
    for (int i = 2; i < 5; i++)
        peer_close(&peers[i]);
    stop(&scene);
}
END_TEST

START_TEST(without_descriptors_the_listener_waits_and_does_not_spin)
{
    struct scene scene = {.act = answer_hello};
    struct peer peer;
    struct rlimit usual_limit, none_left;
    start(&scene);
    peer_connect(&peer, scene.loop, scene.port);
    peer_send_text(&peer, "GET / HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual_limit), 0);
    int next = dup(peer.fd);
    close(next);
    none_left = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = usual_limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    int rounds = 0;
    for (int64_t start_ms = clock_monotonic_ms(); clock_monotonic_ms() - start_ms < 250; rounds++)
        loop_run_once(scene.loop, 50);
    ck_assert_int_lt(rounds, 25);
    ck_assert_int_eq(scene.requests, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual_limit), 0);
    peer_await(&peer, "hello");
    peer_close(&peer);
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

START_TEST(a_drain_closes_idle_connections_and_lets_the_others_finish)
{
    struct http_server_options patient = usual;
    patient.read_timeout_ms = 60000; /* it must not be that which closes */
    struct scene scene = {.act = answer_hello};
    struct peer idle, held, streaming;
    start_with(&scene, patient);
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
    peer_await(&streaming, "0\r\n\r\n");
    run_idle(scene.loop);
    /* Its response had promised that the connection stays open. */
    scene.act = answer_hello;
    peer_send_text(&streaming, "GET / HTTP/1.1\r\n\r\n");
    peer_await_close(&streaming);
    peer_expect(&streaming, "0\r\n\r\nHTTP/1.1 200 OK\r\n");
    peer_expect(&streaming, "Connection: close\r\n");
    peer_expect(&streaming, "hello");
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
    while (http_stream_write(scene.held, block_of('a', (size_t)256 * 1024)))
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

TCase *server_tests(void)
{
    TCase *tests = tcase_create("server_tests");
    tcase_set_timeout(tests, 60);
    if (!peer_speaks_tls) { /* to send, a peer would have to be accepted */
        tcase_add_test(tests, above_the_cap_idle_connections_make_room_and_held_ones_do_not);
        tcase_add_test(tests, above_the_cap_nothing_is_accepted_until_one_closes);
        tcase_add_test(tests, without_descriptors_the_listener_waits_and_does_not_spin);
    }
    tcase_add_test(tests, hundreds_of_held_clients_leave_together);
    tcase_add_test(tests, two_servers_share_a_loop_and_an_address_in_use_is_named);
    tcase_add_test(tests, a_drain_closes_idle_connections_and_lets_the_others_finish);
    tcase_add_test(tests, a_drain_without_connections_ends_at_once_and_may_destroy);
    tcase_add_test(tests, destroy_cuts_connections_in_every_state);
    return tests;
}
