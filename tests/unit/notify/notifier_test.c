/* The notifier against a receiver on its own loop: the effect of a day, a failing store and a
 * reload in the middle on a delivery. tests/integration/notify.test.mjs has the normal course. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/http/server.h"
#include "taskgate/notify/notify.h"

#define PATIENCE_MS 20000

static struct scratch scratch;
static struct bench bench;
static struct notifier *notifier;
static struct http_server *server;
/* The receiver: its answer (0: none), and the received requests. */
static int answer_status;
static size_t received;
static struct http_exchange *held;

static void forget_held(void *context)
{
    (void)context;
    held = NULL;
}

static void receive(struct http_exchange *exchange, void *context)
{
    (void)context;
    received++;
    if (answer_status) {
        http_respond(exchange, answer_status, NULL, 0, STR_EMPTY);
        return;
    }
    held = exchange;
    http_on_gone(exchange, forget_held, NULL);
}

static const char *secret(const char *name)
{
    return strcmp(name, "SECRET") == 0 ? "abc" : NULL;
}

/* `count` targets, all of them the receiver. */
static void configure(unsigned count)
{
    struct config_problems problems = {0};
    struct buffer text;
    buffer_init(&text);
    buffer_append_text(&text, "schema: 1\n"
                              "sources: [{id: up, kind: mcp, url: 'http://h/'}]\n"
                              "governance: {defaults: {action: approve}}\n"
                              "notify:\n");
    for (unsigned i = 0; i < count; i++)
        buffer_append_format(&text, " - {url: 'http://127.0.0.1:%d/%u', secret_env: SECRET}\n",
                             http_server_port(server), i);
    struct config *config = config_parse(buffer_str(&text), "t.yaml", secret, &problems);
    ck_assert_ptr_nonnull(config);
    notifier_configure(notifier, config);
    config_unref(config);
    config_problems_finish(&problems);
    buffer_finish(&text);
}

static void set_up(void)
{
    struct error error = {""};
    scratch_init(&scratch);
    bench_open(&bench, &scratch);
    const struct http_server_options options = {.address = STR("127.0.0.1"),
                                                .max_body_bytes = 65536,
                                                .read_timeout_ms = 30000,
                                                .handler = receive};
    server = http_server_create(bench.loop, &options, &error);
    ck_assert_msg(server != NULL, "%s", error.message);
    notifier = notifier_create(bench.loop, bench.store, &error);
    ck_assert_msg(notifier != NULL, "%s", error.message);
    answer_status = 200;
    received = 0;
}

/* As the server does it. */
static void tear_down(void)
{
    notifier_close(notifier);
    store_close(bench.store);
    loop_run_once(bench.loop, 0);
    notifier_destroy(notifier);
    http_server_destroy(server);
    loop_destroy(bench.loop);
    scratch_finish(&scratch);
}

static void wait_received(size_t wanted)
{
    bench_wait_count(bench.loop, &received, wanted);
}

static void wait_until(const char *sql, int64_t wanted)
{
    int64_t give_up_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (scratch_query(&scratch, sql) != wanted) {
        ck_assert_msg(clock_monotonic_ms() < give_up_ms, "%s is not %lld", sql, (long long)wanted);
        loop_run_once(bench.loop, 10);
    }
}

#define WAITING "SELECT count(*) FROM outbox_delivery"
#define NO_DELETE                                                                                  \
    "CREATE TRIGGER no BEFORE DELETE ON outbox_delivery BEGIN SELECT RAISE (ABORT, 'no'); END"

START_TEST(a_delivery_is_given_up_after_a_day)
{
    answer_status = 500;
    configure(1);
    struct task *task = create_task(&bench, new_task("a"));
    wait_until("SELECT sum(attempts) FROM outbox_delivery", 1);
    /* Not yet for as long as the next attempt is still within the day. */
    scratch_execute(&scratch, "UPDATE outbox_notice SET at_ms = at_ms - 86380000");
    wait_until("SELECT sum(attempts) FROM outbox_delivery", 2);
    scratch_execute(&scratch, "UPDATE outbox_notice SET at_ms = at_ms - 20000");
    wait_until(WAITING, 0);
    ck_assert_uint_eq(received, 3);
    struct answer answer = {0};
    audit_of(&bench, task->id, &answer);
    char *expected = memory_format(
        "create >pending client a \nnotification_given_up pending>pending gateway taskgate "
        "http://127.0.0.1:%d answered HTTP 500\n",
        http_server_port(server));
    ck_assert_str_eq(answer.audit_text, expected);
    answer_finish(&answer);
    free(expected);
    task_unref(task);
}
END_TEST

START_TEST(an_unnoted_delivery_is_not_sent_again)
{
    configure(1);
    scratch_execute(&scratch, NO_DELETE);
    task_unref(create_task(&bench, new_task("a")));
    wait_received(1);
    /* Each change makes the notifier look; the delivery is due all the while. */
    for (unsigned i = 0; i < 20; i++) {
        struct task *task = create_task(&bench, new_task("b"));
        task_unref(move_task(&bench, task->id, &(struct task_change){.to = TASK_CANCELLED}));
        task_unref(task);
    }
    wait_received(4);                               /* as many as may be under way */
    int64_t until_ms = clock_monotonic_ms() + 1500; /* the store has been asked again by then */
    while (clock_monotonic_ms() < until_ms)
        loop_run_once(bench.loop, 10);
    ck_assert_uint_eq(received, 4);
    scratch_execute(&scratch, "DROP TRIGGER no");
    wait_until(WAITING, 0);
    ck_assert_uint_eq(received, 41); /* each once */
}
END_TEST

START_TEST(a_store_that_fails_is_configured_later)
{
    scratch_execute(&scratch, "CREATE TRIGGER no BEFORE INSERT ON outbox_target BEGIN"
                              " SELECT RAISE (ABORT, 'no'); END");
    configure(1);
    task_unref(create_task(&bench, new_task("a"))); /* answered after the refusal */
    scratch_execute(&scratch, "DROP TRIGGER no");
    wait_until("SELECT count(*) FROM outbox_target", 1);
    task_unref(create_task(&bench, new_task("a")));
    wait_received(1);
}
END_TEST

START_TEST(a_target_may_go_while_it_is_being_told)
{
    answer_status = 0;
    configure(2);
    task_unref(create_task(&bench, new_task("a")));
    wait_received(2);
    configure(0);
    wait_until(WAITING, 0);
    int64_t give_up_ms = clock_monotonic_ms() + PATIENCE_MS;
    while (held && clock_monotonic_ms() < give_up_ms) /* the connections are dropped */
        loop_run_once(bench.loop, 10);
    ck_assert_ptr_null(held);
}
END_TEST

START_TEST(a_target_may_go_while_the_store_notes_what_it_was_told)
{
    scratch_execute(&scratch, NO_DELETE);
    configure(1);
    task_unref(create_task(&bench, new_task("a")));
    wait_received(1);
    configure(0); /* refused by the store as well, for now */
    configure(1);
    configure(0);
    scratch_execute(&scratch, "DROP TRIGGER no");
    wait_until("SELECT count(*) FROM outbox_target", 0);
    wait_until(WAITING, 0); /* a part at a time */
    ck_assert_uint_eq(received, 1);
    configure(1);
    wait_until("SELECT count(*) FROM outbox_target", 1);
    task_unref(create_task(&bench, new_task("a")));
    wait_received(2);
}
END_TEST

START_TEST(a_notifier_may_end_at_any_moment)
{
    answer_status = _i % 2 ? 200 : 0;
    configure(3);
    for (int i = 0; i < 6; i++)
        task_unref(create_task(&bench, new_task("a")));
    for (int i = 0; i < _i; i++)
        loop_run_once(bench.loop, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("notifier");
    TCase *tests = tcase_create("notifier");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_delivery_is_given_up_after_a_day);
    tcase_add_test(tests, an_unnoted_delivery_is_not_sent_again);
    tcase_add_test(tests, a_store_that_fails_is_configured_later);
    tcase_add_test(tests, a_target_may_go_while_it_is_being_told);
    tcase_add_test(tests, a_target_may_go_while_the_store_notes_what_it_was_told);
    tcase_add_loop_test(tests, a_notifier_may_end_at_any_moment, 0, 12);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
