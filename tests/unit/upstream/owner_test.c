/* The requests that one connection carries. */
#include <check.h>

#include "scene.h"
#include "suite.h"

#define KEPT 8 /* idle connections of the scene's client, at most */
#define MANY_OWNERS 20

static void post_for(struct scene *scene, struct record *record, const char *owner)
{
    struct upstream_request request = post;
    request.owner = str_from(owner);
    call_with(scene, record, request);
}

/* The request is on `peer`: on a new connection, or on the one that it has. */
static void answer(struct record *record, struct peer *peer)
{
    peer_await(peer, "{\"a\":1}");
    peer_clear(peer);
    peer_send_text(peer, SHORT_ANSWER);
    await_end(record, UPSTREAM_DONE);
    expect_text(&record->body, "ok");
    forget(record);
}

static void post_on_new_connection(struct scene *scene, const char *owner, struct peer *peer)
{
    struct record record = {.status = 0};
    post_for(scene, &record, owner);
    origin_accept(&scene->origin, peer);
    answer(&record, peer);
}

START_TEST(a_connection_carries_requests_of_one_owner)
{
    static const char *const owners[] = {"alice", "bob", "", "alic", "alice2"};
    enum { OWNERS = sizeof(owners) / sizeof(*owners), REGULARS = 2 };
    struct scene scene;
    struct record record = {.status = 0};
    struct peer peers[OWNERS];
    start(&scene);
    for (int i = 0; i < REGULARS; i++)
        post_on_new_connection(&scene, owners[i], &peers[i]);
    for (int i = 0; i < 3 * REGULARS; i++) {
        post_for(&scene, &record, owners[i % REGULARS]);
        answer(&record, &peers[i % REGULARS]);
    }
    ck_assert(!origin_has_client(&scene.origin));
    for (int i = REGULARS; i < OWNERS; i++)
        post_on_new_connection(&scene, owners[i], &peers[i]);
    ck_assert_uint_eq(peers[0].received.length, 0);
    ck_assert_uint_eq(peers[1].received.length, 0);
    for (int i = 0; i < OWNERS; i++)
        peer_close(&peers[i]);
    stop(&scene);
}
END_TEST

START_TEST(calls_at_the_same_time_are_kept_apart)
{
    struct scene scene;
    struct record first = {.status = 0}, second = {.status = 0};
    struct peer peers[2];
    start(&scene);
    post_for(&scene, &first, "alice");
    post_for(&scene, &second, "bob");
    origin_accept(&scene.origin, &peers[0]);
    origin_accept(&scene.origin, &peers[1]);
    for (int i = 0; i < 2; i++)
        peer_await(&peers[i], "{\"a\":1}");
    upstream_call_cancel(first.call);
    peer_send_text(&peers[0], SHORT_ANSWER);
    peer_send_text(&peers[1], SHORT_ANSWER);
    await_end(&second, UPSTREAM_DONE);
    ck_assert_int_eq(first.ends, 0);
    forget(&first);
    forget(&second);
    for (int i = 0; i < 2; i++)
        peer_close(&peers[i]);
    stop(&scene);
}
END_TEST

static struct record next_record;

static void call_for_another(struct record *record)
{
    post_for(record->scene, &next_record, "bob");
}

/* From within a callback, while the connection of the first is in use. */
START_TEST(a_callback_may_call_for_another_owner)
{
    struct scene scene;
    struct record record = {.in_body = call_for_another};
    struct peer peers[2];
    start(&scene);
    post_for(&scene, &record, "alice");
    origin_accept(&scene.origin, &peers[0]);
    answer(&record, &peers[0]);
    origin_accept(&scene.origin, &peers[1]);
    answer(&next_record, &peers[1]);
    for (int i = 0; i < 2; i++)
        peer_close(&peers[i]);
    stop(&scene);
}
END_TEST

/* Idle connections of those who came first are closed, not kept for ever. */
START_TEST(many_owners_keep_no_more_connections_than_agreed)
{
    struct scene scene;
    struct peer peers[MANY_OWNERS];
    start(&scene);
    for (int i = 0; i < MANY_OWNERS; i++) {
        const char owner[] = {(char)('a' + i), '\0'};
        post_on_new_connection(&scene, owner, &peers[i]);
    }
    for (int i = 0; i < MANY_OWNERS - KEPT; i++)
        peer_await_close(&peers[i]);
    for (int i = 0; i < MANY_OWNERS; i++)
        peer_close(&peers[i]);
    stop(&scene);
}
END_TEST

TCase *owner_tests(void)
{
    TCase *tests = tcase_create("owner_tests");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_connection_carries_requests_of_one_owner);
    tcase_add_test(tests, calls_at_the_same_time_are_kept_apart);
    tcase_add_test(tests, a_callback_may_call_for_another_owner);
    tcase_add_test(tests, many_owners_keep_no_more_connections_than_agreed);
    return tests;
}
