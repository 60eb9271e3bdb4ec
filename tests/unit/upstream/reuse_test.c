/* The connections that take another request: those on which nothing is left unread. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http1_client.h"
#include "scene.h"
#include "suite.h"
#include "taskgate/core/map.h"
#include "taskgate/core/memory.h"

#define ANOTHER_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
#define CHUNKED_ANSWER "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"

static void await_post(struct scene *scene, struct record *record, struct peer *peer)
{
    post_to(scene, record);
    origin_accept(&scene->origin, peer);
    peer_await(peer, "{\"a\":1}");
}

static void expect_ok(struct record *record)
{
    await_end(record, UPSTREAM_DONE);
    expect_text(&record->body, "ok");
    forget(record);
}

/* The next request comes on a new connection, and the first one is closed without it. */
static void expect_not_reused(struct scene *scene, struct peer *first)
{
    struct record record = {.status = 0};
    struct peer second;
    peer_clear(first);
    await_post(scene, &record, &second);
    peer_await_close(first);
    ck_assert_uint_eq(first->received.length, 0);
    peer_send_text(&second, SHORT_ANSWER);
    expect_ok(&record);
    peer_close(&second);
}

static const char *const doubled[] = {
    SHORT_ANSWER ANOTHER_ANSWER,   SHORT_ANSWER "HTTP/1.1 200 O",        SHORT_ANSWER "\r\n",
    CHUNKED_ANSWER ANOTHER_ANSWER, CHUNKED_ANSWER "HTTP/1.1 200 OK\r\n", CHUNKED_ANSWER "0",
};

START_TEST(bytes_that_came_with_an_answer_end_its_connection)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    await_post(&scene, &record, &peer);
    peer_send_text(&peer, doubled[_i]);
    expect_ok(&record);
    expect_not_reused(&scene, &peer);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(bytes_that_came_after_an_answer_end_its_connection)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    await_post(&scene, &record, &peer);
    peer_send_text(&peer, SHORT_ANSWER);
    expect_ok(&record);
    peer_send_text(&peer, ANOTHER_ANSWER);
    expect_not_reused(&scene, &peer);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

static struct peer *talkative;

static void say_more(struct record *record)
{
    peer_send_text(talkative, ANOTHER_ANSWER);
}

static void call_again(struct record *record)
{
    post_to(record->scene, record->other);
}

/* Before the loop has had a chance to see them. */
START_TEST(bytes_that_came_in_the_round_of_the_next_call_end_the_connection)
{
    struct scene scene;
    struct record next = {.status = 0};
    struct record record = {.in_body = say_more, .in_end = call_again, .other = &next};
    struct peer peers[2];
    talkative = &peers[0];
    start(&scene);
    await_post(&scene, &record, &peers[0]);
    peer_clear(&peers[0]);
    peer_send_text(&peers[0], SHORT_ANSWER);
    expect_ok(&record);
    origin_accept(&scene.origin, &peers[1]);
    peer_await(&peers[1], "{\"a\":1}");
    peer_await_close(&peers[0]);
    ck_assert_uint_eq(peers[0].received.length, 0);
    peer_send_text(&peers[1], SHORT_ANSWER);
    expect_ok(&next);
    peer_close(&peers[0]);
    peer_close(&peers[1]);
    stop(&scene);
}
END_TEST

static const char *const clean[] = {SHORT_ANSWER, CHUNKED_ANSWER};

/* After such a read only another one can tell that nothing is left. */
START_TEST(a_connection_whose_last_read_filled_the_memory_is_used_again)
{
    enum { HEAD = 42, BODY = HTTP1_READ_BYTES - HEAD };
    struct scene scene;
    struct record record = {.status = 0}, next = {.status = 0};
    struct peer peer;
    char *answer = memory_alloc(HEAD + BODY + 1);
    ck_assert_int_eq(
        snprintf(answer, HEAD + 1, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BODY), HEAD);
    memset(answer + HEAD, 'b', BODY);
    start(&scene);
    await_post(&scene, &record, &peer);
    peer_send_text(&peer, answer);
    await_end(&record, UPSTREAM_DONE);
    ck_assert_uint_eq(record.body.length, BODY);
    peer_clear(&peer);
    post_to(&scene, &next);
    peer_await(&peer, "{\"a\":1}");
    peer_send_text(&peer, SHORT_ANSWER);
    expect_ok(&next);
    forget(&record);
    free(answer);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

START_TEST(a_connection_with_nothing_unread_is_used_again)
{
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peer;
    start(&scene);
    await_post(&scene, &record, &peer);
    for (int i = 0; i < 3; i++) {
        peer_clear(&peer);
        peer_send_text(&peer, clean[_i]);
        expect_ok(&record);
        post_to(&scene, &record);
        peer_await(&peer, "{\"a\":1}");
    }
    peer_send_text(&peer, clean[_i]);
    expect_ok(&record);
    ck_assert(!origin_has_client(&scene.origin));
    peer_close(&peer);
    stop(&scene);
}
END_TEST

/* ---- many calls of one round ---- */

#define MANY 20 /* more than are looked at in one system call */

struct crowd {
    struct scene scene;
    struct record records[MANY];
    struct peer peers[MANY]; /* the idle connections */
    struct loop_timer timer;
    bool is_ended; /* the spoiled ones have ended; else they have spoken */
    int has_called;
};

static void start_crowd(struct crowd *crowd)
{
    struct error error = {""};
    start(&crowd->scene);
    upstream_client_destroy(crowd->scene.client);
    crowd->scene.client = upstream_client_create(crowd->scene.loop, 2 * MANY, &error);
    for (int i = 0; i < MANY; i++)
        post_to(&crowd->scene, &crowd->records[i]);
    for (int i = 0; i < MANY; i++) {
        origin_accept(&crowd->scene.origin, &crowd->peers[i]);
        peer_await(&crowd->peers[i], "{\"a\":1}");
        peer_send_text(&crowd->peers[i], SHORT_ANSWER);
        peer_clear(&crowd->peers[i]);
    }
    for (int i = 0; i < MANY; i++)
        expect_ok(&crowd->records[i]);
}

static bool is_spoiled(int i)
{
    return i % 5 == 0;
}

/* Behind the sockets of a round: the loop sees too late that some idle connections spoke, or that
 * they ended. */
static void spoil_and_call(void *context)
{
    struct crowd *crowd = context;
    for (int i = 0; i < MANY; i++) {
        if (is_spoiled(i) && crowd->is_ended)
            shutdown(crowd->peers[i].fd, SHUT_WR);
        else if (is_spoiled(i))
            peer_send_text(&crowd->peers[i], ANOTHER_ANSWER);
    }
    for (int i = 0; i < MANY; i++)
        post_to(&crowd->scene, &crowd->records[i]);
    crowd->has_called = 1;
}

static void expect_unused(struct crowd *crowd, int i)
{
    peer_await_close(&crowd->peers[i]);
    ck_assert_uint_eq(crowd->peers[i].received.length, 0);
    peer_close(&crowd->peers[i]);
    origin_accept(&crowd->scene.origin, &crowd->peers[i]);
}

START_TEST(of_many_idle_connections_only_the_quiet_ones_are_used)
{
    struct crowd crowd = {.is_ended = _i == 1};
    if (is_by_libcurl())
        return; /* it looks at each by itself */
    start_crowd(&crowd);
    loop_timer_init(&crowd.timer, crowd.scene.loop, spoil_and_call, &crowd);
    loop_timer_start(&crowd.timer, 0);
    run_until(crowd.scene.loop, &crowd.has_called, 1);
    for (int i = 0; i < MANY; i++) {
        if (is_spoiled(i))
            expect_unused(&crowd, i);
        peer_await(&crowd.peers[i], "{\"a\":1}");
        peer_send_text(&crowd.peers[i], SHORT_ANSWER);
    }
    for (int i = 0; i < MANY; i++)
        expect_ok(&crowd.records[i]);
    ck_assert(!origin_has_client(&crowd.scene.origin));
    for (int i = 0; i < MANY; i++)
        peer_close(&crowd.peers[i]);
    stop(&crowd.scene);
}
END_TEST

/* The owner of one that fails may cancel the next, and start another. */
static void cancel_other_and_call(struct record *record)
{
    upstream_call_cancel(record->other->call);
    record->other->call = NULL;
    post_to(record->scene, record->other);
}

START_TEST(a_call_that_fails_as_it_goes_out_may_cancel_the_next_and_start_one)
{
    struct scene scene;
    struct record kept = {.status = 0}, cancelled = {.status = 0};
    struct record failing = {.in_end = cancel_other_and_call, .other = &cancelled};
    struct upstream_request nowhere = post;
    struct peer peers[2];
    if (is_by_libcurl())
        return;                                /* it connects in an order of its own */
    nowhere.url = "http://255.255.255.255:9/"; /* connect() refuses at once */
    start(&scene);
    call_with(&scene, &failing, nowhere);
    post_to(&scene, &cancelled);
    post_to(&scene, &kept);
    await_end(&failing, UPSTREAM_CONNECT_FAILED);
    for (int i = 0; i < 2; i++) {
        origin_accept(&scene.origin, &peers[i]);
        peer_await(&peers[i], "{\"a\":1}");
        peer_expect(&peers[i], "POST /mcp?a=b HTTP/1.1\r\n");
        peer_send_text(&peers[i], SHORT_ANSWER);
    }
    expect_ok(&cancelled);
    expect_ok(&kept);
    forget(&failing);
    for (int i = 0; i < 2; i++)
        peer_close(&peers[i]);
    stop(&scene);
}
END_TEST

static void note_end(void *context, enum upstream_result result, const char *detail)
{
    (void)detail;
    *(int *)context = result == UPSTREAM_DONE ? 1 : -1;
}

/* Those of replicas that came and went; a host with a call stays. */
START_TEST(hosts_without_a_call_are_not_kept_without_end)
{
    static const struct upstream_callbacks callbacks = {.end = note_end};
    struct scene scene;
    struct peer peer;
    struct http1_url url;
    int ended = 0;
    start(&scene);
    struct http1_client *client = http1_client_create(scene.loop, 8);
    char *text = memory_format("http://127.0.0.1:%u/", scene.origin.port);
    ck_assert(http1_client_read_url(client, &url, text));
    ck_assert_ptr_nonnull(http1_call_start(client, &url, &get, &callbacks, &ended));
    origin_accept(&scene.origin, &peer);
    for (int i = 0; i < 3 * HTTP1_MOST_HOSTS; i++) {
        char name[64];
        snprintf(name, sizeof name, "http://10.0.%d.%d:1/", i / 256, i % 256);
        ck_assert(http1_client_read_url(client, &url, name));
        http1_host_of(client, &url);
        ck_assert_uint_le(map_count(client->hosts), HTTP1_MOST_HOSTS);
    }
    ck_assert(http1_client_read_url(client, &url, text));
    ck_assert_ptr_nonnull(map_get(client->hosts, url.authority));
    peer_await(&peer, "GET / HTTP/1.1\r\n");
    peer_send_text(&peer, SHORT_ANSWER);
    run_until(scene.loop, &ended, 1);
    free(text);
    http1_client_destroy(client);
    peer_close(&peer);
    stop(&scene);
}
END_TEST

TCase *reuse_tests(void)
{
    TCase *tests = tcase_create("reuse_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, bytes_that_came_with_an_answer_end_its_connection, 0, 6);
    tcase_add_test(tests, bytes_that_came_after_an_answer_end_its_connection);
    tcase_add_test(tests, bytes_that_came_in_the_round_of_the_next_call_end_the_connection);
    tcase_add_test(tests, a_connection_whose_last_read_filled_the_memory_is_used_again);
    tcase_add_loop_test(tests, a_connection_with_nothing_unread_is_used_again, 0, 2);
    tcase_add_loop_test(tests, of_many_idle_connections_only_the_quiet_ones_are_used, 0, 2);
    tcase_add_test(tests, a_call_that_fails_as_it_goes_out_may_cancel_the_next_and_start_one);
    tcase_add_test(tests, hosts_without_a_call_are_not_kept_without_end);
    return tests;
}
