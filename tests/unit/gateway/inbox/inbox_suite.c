/* Events for clients that know no tasks, and repeated calls that join. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/request_parts.h"
#include "inbox/inbox.h"
#include "inbox/repeated_calls.h"
#include "suites.h"
#include "taskgate/core/clock.h"
#include "taskgate/json/text.h"
#include "taskgate/loop/loop.h"

#define KEY STR("up/session:a")
#define OTHER STR("up/session:b")
#define UP STR("up")
#define HOUR_MS INT64_C(3600000)

static const char *environment(const char *name)
{
    return NULL;
}

static void install_config(const char *more)
{
    char text[512];
    struct config_problems problems = {0};
    snprintf(text, sizeof text,
             "schema: 1\nsources: [{id: up, kind: mcp, url: \"http://127.0.0.1:1/mcp\"}]\n"
             "governance: {defaults: {action: forward}}\n%s",
             more);
    struct config *config = config_parse(str_from(text), "t.yaml", environment, &problems);
    ck_assert_ptr_nonnull(config);
    snapshot_install(snapshot_create(config, &problems));
    config_problems_finish(&problems);
}

static struct gateway gateway;

static void set_up(void)
{
    install_config("limits: {sessions: 3}\n");
    gateway = (struct gateway){.inbox_table = inbox_table_create()};
    inbox_touch(&gateway, KEY);
}

static void tear_down(void)
{
    inbox_table_destroy(gateway.inbox_table);
    snapshot_install(NULL);
}

static size_t take_events(struct str key, struct buffer *out)
{
    buffer_clear(out);
    return inbox_take_events(&gateway, key, STR_EMPTY, out);
}

START_TEST(events_are_told_once_in_their_order_and_to_their_client_alone)
{
    struct buffer out = {0};
    inbox_touch(&gateway, OTHER);
    inbox_add_event(&gateway, KEY, INBOX_TASK_CREATED, UP, STR("{\"n\":1}"));
    inbox_add_event(&gateway, KEY, INBOX_TASK_FAILED, UP, STR("{\"n\":2}"));
    inbox_add_event(&gateway, STR("up/nobody"), INBOX_TASK_FAILED, UP, STR("{}"));
    ck_assert_uint_eq(take_events(OTHER, &out), 0);
    ck_assert(str_equal(buffer_str(&out), STR("[]")));
    ck_assert_uint_eq(take_events(KEY, &out), 2);
    size_t position = 0;
    struct str event;
    ck_assert(json_check(buffer_str(&out), NULL));
    ck_assert(json_next_element(buffer_str(&out), &position, &event));
    ck_assert(json_string_equals(json_member(event, "type"), STR("task_created")));
    ck_assert(str_equal(json_path(event, "data", "n"), STR("1")));
    ck_assert(json_next_element(buffer_str(&out), &position, &event));
    ck_assert(json_string_equals(json_member(event, "type"), STR("task_failed")));
    ck_assert_uint_eq(take_events(KEY, &out), 0);
    buffer_finish(&out);
}
END_TEST

START_TEST(an_event_of_the_server_reaches_every_client_of_it)
{
    struct buffer out = {0};
    inbox_touch(&gateway, OTHER);
    inbox_touch(&gateway, STR("upper/session:a"));
    inbox_add_source_event(&gateway, INBOX_SERVER_DISCONNECTED, UP, STR("{}"));
    ck_assert_uint_eq(take_events(KEY, &out), 1);
    ck_assert_uint_eq(take_events(OTHER, &out), 1);
    ck_assert_uint_eq(take_events(STR("upper/session:a"), &out), 0);
    buffer_finish(&out);
}
END_TEST

START_TEST(a_server_that_comes_and_goes_is_one_event)
{
    struct buffer out = {0};
    inbox_add_event(&gateway, KEY, INBOX_TASK_COMPLETED, UP, STR("{\"n\":1}"));
    for (int i = 0; i < 600; i++) {
        inbox_add_source_event(&gateway, INBOX_SERVER_DISCONNECTED, UP, STR("{}"));
        inbox_add_source_event(&gateway, INBOX_SERVER_RECONNECTED, UP, STR("{}"));
    }
    inbox_add_event(&gateway, KEY, INBOX_TASK_CREATED, UP, STR("{\"n\":2}"));
    ck_assert_uint_eq(take_events(KEY, &out), 3);
    ck_assert_ptr_nonnull(memmem(out.bytes, out.length, "task_completed", 14));
    ck_assert_ptr_nonnull(memmem(out.bytes, out.length, "server_reconnected", 18));
    ck_assert_ptr_null(memmem(out.bytes, out.length, "server_disconnected", 19));
    /* An event that was told is not replaced any more. */
    inbox_add_source_event(&gateway, INBOX_SERVER_DISCONNECTED, UP, STR("{}"));
    ck_assert_uint_eq(take_events(KEY, &out), 1);
    /* Nor is one that others have pushed out. */
    inbox_add_source_event(&gateway, INBOX_SERVER_DISCONNECTED, UP, STR("{}"));
    for (int i = 0; i < INBOX_MOST_EVENTS; i++)
        inbox_add_event(&gateway, KEY, INBOX_TASK_FAILED, UP, STR("{}"));
    inbox_add_source_event(&gateway, INBOX_SERVER_RECONNECTED, UP, STR("{}"));
    ck_assert_uint_eq(take_events(KEY, &out), INBOX_MOST_EVENTS);
    buffer_finish(&out);
}
END_TEST

/* As a lost task and as a change, in any order. */
START_TEST(a_task_that_was_lost_with_its_replica_is_told_once)
{
    struct task task = {.id = "tg_lost",
                        .state = TASK_FAILED,
                        .source = (char[]){"up"},
                        .owner = (char[]){"session:a"},
                        .session = (char[]){"a"},
                        .tool = (char[]){"t"},
                        .arguments = (char[]){"{}"},
                        .status_message = (char[]){"upstream connection lost"}};
    struct task other = task;
    char key[CLIENT_KEY_BYTES];
    struct buffer out = {0};
    snprintf(other.id, sizeof other.id, "tg_other");
    inbox_key_of_task(&task, key);
    inbox_note_lost_task(&gateway, &task);
    inbox_note_task(&gateway, &task, false);
    inbox_note_task(&gateway, &other, false);
    inbox_note_lost_task(&gateway, &other);
    ck_assert_uint_eq(take_events(str_from(key), &out), 2);
    ck_assert_ptr_nonnull(memmem(out.bytes, out.length, "tg_lost", 7));
    ck_assert_ptr_nonnull(memmem(out.bytes, out.length, "tg_other", 8));
    buffer_finish(&out);
}
END_TEST

START_TEST(lines_are_bounded_by_count_and_the_oldest_go)
{
    struct buffer out = {0};
    char data[64];
    for (int i = 0; i < INBOX_MOST_EVENTS + 5; i++) {
        snprintf(data, sizeof data, "{\"n\":%d}", i);
        inbox_add_event(&gateway, KEY, INBOX_TASK_FAILED, UP, str_from(data));
        inbox_add_log(&gateway, KEY, UP, str_from(data));
    }
    for (int i = 0; i < INBOX_MOST_NOTIFICATIONS + 5; i++)
        inbox_add_notification(&gateway, KEY, UP, STR("notifications/x"), STR("{}"));
    ck_assert_uint_eq(take_events(KEY, &out), INBOX_MOST_EVENTS);
    ck_assert_ptr_null(memmem(out.bytes, out.length, "{\"n\":5}", 7));
    buffer_clear(&out);
    ck_assert_uint_eq(inbox_take_notifications(&gateway, KEY, &out), INBOX_MOST_NOTIFICATIONS);
    buffer_clear(&out);
    ck_assert_uint_eq(inbox_take_logs(&gateway, KEY, STR_EMPTY, 10000, &out), INBOX_MOST_LOGS);
    buffer_finish(&out);
}
END_TEST

START_TEST(lines_are_bounded_by_bytes_and_long_texts_are_left_out)
{
    struct buffer out = {0}, data = {0};
    buffer_append_char(&data, '"');
    for (int i = 0; i < 60000; i++)
        buffer_append_char(&data, 'x');
    buffer_append_char(&data, '"');
    for (int i = 0; i < 100; i++)
        inbox_add_event(&gateway, KEY, INBOX_TASK_FAILED, UP, buffer_str(&data));
    size_t kept = take_events(KEY, &out);
    ck_assert_uint_gt(kept, 4);
    ck_assert_uint_lt(out.length, 600000);
    for (int i = 0; i < 10000; i++)
        buffer_append_char(&data, ' ');
    inbox_add_event(&gateway, KEY, INBOX_TASK_FAILED, UP, buffer_str(&data));
    ck_assert_uint_eq(take_events(KEY, &out), 1);
    ck_assert_uint_lt(out.length, 300);
    buffer_finish(&data);
    buffer_finish(&out);
}
END_TEST

START_TEST(past_the_limit_the_client_idle_for_longest_goes_unless_something_is_kept_for_it)
{
    struct buffer out = {0};
    struct str c = STR("up/session:c"), d = STR("up/session:d");
    inbox_touch(&gateway, OTHER);
    inbox_add_event(&gateway, OTHER, INBOX_TASK_FAILED, UP, STR("{}"));
    inbox_touch(&gateway, c);
    inbox_touch(&gateway, KEY);
    inbox_touch(&gateway, d); /* for c */
    ck_assert_uint_eq(inbox_table_count(gateway.inbox_table), 3);
    inbox_add_event(&gateway, KEY, INBOX_TASK_FAILED, UP, STR("{}"));
    inbox_add_event(&gateway, d, INBOX_TASK_FAILED, UP, STR("{}"));
    inbox_touch(&gateway, c); /* there is no room */
    inbox_add_event(&gateway, c, INBOX_TASK_FAILED, UP, STR("{}"));
    ck_assert_uint_eq(take_events(c, &out), 0);
    ck_assert_uint_eq(take_events(OTHER, &out), 1);
    ck_assert_uint_eq(take_events(KEY, &out), 1);
    ck_assert_uint_eq(take_events(d, &out), 1);
    buffer_finish(&out);
}
END_TEST

/* Two tokens in one session. */
START_TEST(the_owners_of_a_session_have_inboxes_of_their_own)
{
    struct buffer out = {0};
    struct str a = STR("up/session:a#auth:1"), b = STR("up/session:a#auth:2"),
               other = STR("up/session:ab#auth:1");
    install_config("limits: {sessions: 9}\n");
    inbox_touch(&gateway, a);
    inbox_touch(&gateway, b);
    inbox_touch(&gateway, other);
    inbox_add_event(&gateway, a, INBOX_TASK_FAILED, UP, STR("{}"));
    ck_assert_uint_eq(take_events(b, &out), 0);
    ck_assert_uint_eq(take_events(a, &out), 1);
    inbox_add_session_event(&gateway, STR("up/session:a"), INBOX_ELICITATION_REQUEST, UP,
                            STR("{}"));
    ck_assert_uint_eq(take_events(a, &out), 1);
    ck_assert_uint_eq(take_events(b, &out), 1);
    ck_assert_uint_eq(take_events(other, &out), 0);
    size_t before = inbox_table_count(gateway.inbox_table);
    inbox_end_session(&gateway, STR("up/session:a"));
    inbox_add_event(&gateway, other, INBOX_TASK_FAILED, UP, STR("{}"));
    ck_assert_uint_eq(take_events(other, &out), 1);
    ck_assert_uint_eq(inbox_table_count(gateway.inbox_table), before - 3); /* KEY, too */
    buffer_finish(&out);
}
END_TEST

static void fill(struct str key, struct str data)
{
    inbox_touch(&gateway, key);
    for (int i = 0; i < 20; i++)
        inbox_add_event(&gateway, key, INBOX_TASK_FAILED, UP, data);
}

/* 600 others fill all that may be kept. */
START_TEST(other_inboxes_take_nothing_out_of_an_inbox)
{
    struct buffer out = {0}, data = {0};
    char name[32];
    buffer_append_format(&data, "\"%040000d\"", 0);
    install_config("limits: {sessions: 1000}\n");
    fill(KEY, STR("{}"));
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof name, "up/session:x%d", i);
        fill(str_from(name), buffer_str(&data));
    }
    inbox_add_event(&gateway, KEY, INBOX_TASK_FAILED, UP, STR("{}"));
    ck_assert_uint_eq(take_events(KEY, &out), 21);
    ck_assert_uint_ge(take_events(str_from(name), &out), 1);
    buffer_finish(&data);
    buffer_finish(&out);
}
END_TEST

START_TEST(idle_clients_are_swept)
{
    inbox_table_sweep(gateway.inbox_table, clock_monotonic_ms());
    ck_assert_uint_eq(inbox_table_count(gateway.inbox_table), 1);
    inbox_table_sweep(gateway.inbox_table, clock_monotonic_ms() + HOUR_MS);
    ck_assert_uint_eq(inbox_table_count(gateway.inbox_table), 0);
    inbox_touch(&gateway, STR_EMPTY);
    ck_assert_uint_eq(inbox_table_count(gateway.inbox_table), 0);
}
END_TEST

/* ---- waiting ---- */

static void count_one(void *context)
{
    ++*(int *)context;
}

START_TEST(every_waiter_is_woken_once_and_tells_by_what)
{
    struct loop *loop = loop_create(NULL);
    struct inbox_waiter *first, *second, *third;
    struct buffer out = {0};
    int woken = 0;
    ck_assert_int_eq(inbox_waiter_begin(&gateway, KEY, loop, count_one, &woken, &first),
                     INBOX_WAIT_BEGUN);
    ck_assert_int_eq(inbox_waiter_begin(&gateway, KEY, loop, count_one, &woken, &second),
                     INBOX_WAIT_BEGUN);
    ck_assert_int_eq(inbox_waiter_begin(&gateway, KEY, loop, count_one, &woken, &third),
                     INBOX_WAIT_BEGUN);
    inbox_add_event(&gateway, KEY, INBOX_TASK_CREATED, UP, STR("{}"));
    loop_run_once(loop, 0);
    ck_assert_int_eq(woken, 0);
    inbox_add_event(&gateway, KEY, INBOX_TASK_COMPLETED, UP, STR("{}"));
    inbox_add_event(&gateway, KEY, INBOX_SERVER_DISCONNECTED, UP, STR("{}"));
    inbox_waiter_end(third); /* its client has left meanwhile */
    loop_run_once(loop, 0);
    ck_assert_int_eq(woken, 2);
    ck_assert_uint_eq(inbox_waiter_write_triggers(first, UP, &out), 2);
    ck_assert(
        str_equal(buffer_str(&out),
                  STR("[{\"type\":\"event\",\"server\":\"up\",\"eventType\":\"task_completed\"},"
                      "{\"type\":\"server_disconnected\",\"server\":\"up\"}]")));
    ck_assert(!inbox_waiter_client_ended(second));
    inbox_waiter_end(first);
    inbox_waiter_end(second);
    ck_assert_int_eq(inbox_waiter_begin(&gateway, KEY, loop, count_one, &woken, &first),
                     INBOX_WAIT_IMMEDIATE);
    take_events(KEY, &out);
    ck_assert_int_eq(inbox_waiter_begin(&gateway, KEY, loop, count_one, &woken, &first),
                     INBOX_WAIT_BEGUN);
    inbox_end(&gateway, KEY);
    loop_run_once(loop, 0);
    ck_assert_int_eq(woken, 3);
    ck_assert(inbox_waiter_client_ended(first));
    inbox_waiter_end(first);
    ck_assert_int_eq(inbox_waiter_begin(&gateway, KEY, loop, count_one, &woken, &first),
                     INBOX_WAIT_NO_CLIENT);
    buffer_finish(&out);
    loop_destroy(loop);
}
END_TEST

START_TEST(a_waiting_client_is_neither_swept_nor_pushed_out)
{
    struct loop *loop = loop_create(NULL);
    struct inbox_waiter *waiter;
    int woken = 0;
    char key[32];
    inbox_waiter_begin(&gateway, KEY, loop, count_one, &woken, &waiter);
    for (int i = 0; i < 10; i++) {
        snprintf(key, sizeof key, "up/session:%d", i);
        inbox_touch(&gateway, str_from(key));
    }
    inbox_table_sweep(gateway.inbox_table, clock_monotonic_ms() + HOUR_MS);
    ck_assert_uint_eq(inbox_table_count(gateway.inbox_table), 1);
    inbox_add_event(&gateway, KEY, INBOX_NOTIFICATION, UP, STR("{}"));
    loop_run_once(loop, 0);
    ck_assert_int_eq(woken, 1);
    inbox_waiter_end(waiter);
    loop_destroy(loop);
}
END_TEST

/* ---- joining ---- */

static void join_digest(const char *tool, const char *definition, const char *rest,
                        char digest[DIGEST_HEX_BYTES])
{
    struct envelope envelope;
    struct error error = {""};
    struct buffer body = {0};
    char of_request[DIGEST_HEX_BYTES];
    buffer_append_format(&body,
                         "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                         "\"params\":{\"name\":\"%s\",%s}}",
                         tool, rest);
    ck_assert_int_eq(envelope_read(&envelope, buffer_str(&body), &error), ENVELOPE_OK);
    request_parts_digest(&envelope, of_request);
    repeated_call_digest(definition, of_request, digest);
    envelope_finish(&envelope);
    buffer_finish(&body);
}

START_TEST(the_same_call_has_the_same_digest)
{
    char a[DIGEST_HEX_BYTES], b[DIGEST_HEX_BYTES];
    static const char plain[] = "\"arguments\":{\"x\":1,\"y\":2}";
    static const char *const others[] = {
        "\"arguments\":{\"x\":1.0,\"y\":2}",
        "\"arguments\":{\"x\":1,\"y\":2},\"_meta\":{\"tenant\":\"a\"}",
        "\"arguments\":{\"x\":1,\"y\":2},\"more\":1",
    };
    join_digest("t", "d", plain, a);
    join_digest("t", "d", "\"arguments\": { \"y\":2, \"x\":1 }", b);
    ck_assert_str_eq(a, b);
    join_digest("t", "d", "\"_meta\":{\"progressToken\":7},\"arguments\":{\"y\":2,\"x\":1}", b);
    ck_assert_str_eq(a, b);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        join_digest("t", "d", others[i], b);
        ck_assert_str_ne(a, b);
    }
    join_digest("u", "d", plain, b);
    ck_assert_str_ne(a, b);
    join_digest("t", "e", plain, b);
    ck_assert_str_ne(a, b);
}
END_TEST

START_TEST(one_claims_a_call_and_one_takes_its_outcome)
{
    struct repeated_call first = {KEY, "digest", "tg_1"}, second = {KEY, "digest", "tg_2"};
    char id[TASK_ID_BYTES];
    char digest[DIGEST_HEX_BYTES];
    int committed = 0;
    bool is_undelivered = true, was_shared;
    ck_assert(!repeated_call_find(&gateway, KEY, "digest", id, &is_undelivered));
    ck_assert(repeated_call_claim(&gateway, &first, count_one, &committed, id));
    ck_assert(!repeated_call_claim(&gateway, &second, count_one, &committed, id));
    ck_assert_str_eq(id, "tg_1");
    ck_assert_int_eq(committed, 1);
    ck_assert(repeated_call_find(&gateway, KEY, "digest", id, &is_undelivered));
    ck_assert(!is_undelivered);
    ck_assert(!repeated_call_find(&gateway, OTHER, "digest", id, &is_undelivered));
    ck_assert(!repeated_call_take(&gateway, &first, &was_shared));
    repeated_call_set_undelivered(&gateway, &second); /* not the call's task */
    ck_assert(!repeated_call_take(&gateway, &first, &was_shared));
    ck_assert(repeated_call_set_undelivered(&gateway, &first));
    ck_assert(!repeated_call_set_undelivered(&gateway, &first)); /* others know */
    ck_assert(repeated_call_take(&gateway, &first, &was_shared) && was_shared);
    ck_assert(!repeated_call_take(&gateway, &first, &was_shared));
    ck_assert(repeated_call_claim(&gateway, &second, NULL, NULL, id));
    repeated_call_forget(&gateway, &first);
    ck_assert(repeated_call_find(&gateway, KEY, "digest", id, &is_undelivered));
    ck_assert(!repeated_call_forget_task(&gateway, KEY, "tg_2", digest));
    ck_assert(!repeated_call_find(&gateway, KEY, "digest", id, &is_undelivered));
}
END_TEST

START_TEST(an_outcome_of_another_replica_is_given_out_once)
{
    const struct repeated_call there = {KEY, "digest", "tg_1"}, other = {KEY, "digest", "tg_2"};
    char id[TASK_ID_BYTES], digest[DIGEST_HEX_BYTES];
    bool was_shared;
    repeated_call_learn(&gateway, &there, REPEATED_CALL_DOUBT_MS, false);
    repeated_call_learn(&gateway, &other, 0, false); /* the first stays */
    ck_assert(!repeated_call_take(&gateway, &other, &was_shared));
    ck_assert(repeated_call_take(&gateway, &there, &was_shared) && was_shared);
    ck_assert(!repeated_call_take(&gateway, &there, &was_shared));
    repeated_call_learn(&gateway, &there, 0, false);
    ck_assert(repeated_call_forget_task(&gateway, KEY, "tg_1", digest));
    ck_assert_str_eq(digest, "digest");
    ck_assert(repeated_call_claim(&gateway, &other, NULL, NULL, id));
    repeated_call_learn(&gateway, &there, 0, false); /* nor does it take the place of an own one */
    ck_assert(!repeated_call_forget(&gateway, &there));
}
END_TEST

/* ---- arguments ---- */

TCase *inbox_tests(void)
{
    TCase *tests = tcase_create("inbox");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, events_are_told_once_in_their_order_and_to_their_client_alone);
    tcase_add_test(tests, an_event_of_the_server_reaches_every_client_of_it);
    tcase_add_test(tests, a_server_that_comes_and_goes_is_one_event);
    tcase_add_test(tests, a_task_that_was_lost_with_its_replica_is_told_once);
    tcase_add_test(tests, lines_are_bounded_by_count_and_the_oldest_go);
    tcase_add_test(tests, lines_are_bounded_by_bytes_and_long_texts_are_left_out);
    tcase_add_test(tests,
                   past_the_limit_the_client_idle_for_longest_goes_unless_something_is_kept_for_it);
    tcase_add_test(tests, the_owners_of_a_session_have_inboxes_of_their_own);
    tcase_add_test(tests, other_inboxes_take_nothing_out_of_an_inbox);
    tcase_add_test(tests, idle_clients_are_swept);
    tcase_add_test(tests, every_waiter_is_woken_once_and_tells_by_what);
    tcase_add_test(tests, a_waiting_client_is_neither_swept_nor_pushed_out);
    tcase_add_test(tests, the_same_call_has_the_same_digest);
    tcase_add_test(tests, one_claims_a_call_and_one_takes_its_outcome);
    tcase_add_test(tests, an_outcome_of_another_replica_is_given_out_once);
    return tests;
}
