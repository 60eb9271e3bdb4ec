/* Messages that endpoints keep of tasks, and what was seen of them. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/config/config.h"
#include "taskgate/core/memory.h"

static struct scratch scratch;
static struct bench bench;

static const struct store_outbox_target targets[] = {{"aa", NOTIFY_ALL, false},
                                                     {"bb", NOTIFY_ALL, false}};

/* Of the last answer: "target task reference seen" for each message, and the first delivery. */
static bool has_arrived;
static char *told;
static int64_t sequence;

static void keep(void *context, const struct store_reply *reply)
{
    (void)context;
    ck_assert_int_eq(reply->status, STORE_OK);
    free(told);
    told = memory_copy_text("");
    for (size_t i = 0; i < reply->message_count; i++) {
        const struct store_message *message = &reply->messages[i];
        char *longer = memory_format("%s%s %s [%s] [%s]\n", told, message->target, message->task_id,
                                     message->reference, message->seen);
        free(told);
        told = longer;
    }
    if (reply->delivery_count > 0)
        sequence = reply->deliveries[0].sequence;
    has_arrived = true;
}

static struct store_call asked(void)
{
    has_arrived = false;
    return (struct store_call){bench.loop, keep, NULL};
}

static void wait(void)
{
    while (!has_arrived)
        loop_run_once(bench.loop, 100);
}

static void set_up(void)
{
    scratch_init(&scratch);
    bench_open(&bench, &scratch);
    store_outbox_configure(bench.store, targets, 2, asked());
    wait();
}

static void tear_down(void)
{
    free(told);
    told = NULL;
    bench_close(&bench);
    scratch_finish(&scratch);
}

/* The next delivery of the endpoint was posted, and stands there as `reference`. */
static void post(const char *target, const char *reference)
{
    store_outbox_due(bench.store, str_from(target), 1, asked());
    wait();
    store_outbox_posted(bench.store, sequence, reference, asked());
    wait();
}

static void see(const char *target, const char *task_id, const char *seen)
{
    store_outbox_see(bench.store, str_from(target), str_from(task_id), str_from(seen), asked());
    wait();
}

static void expect_messages(const char *target, const char *expected)
{
    store_outbox_messages(bench.store, str_from(target), 10, asked());
    wait();
    ck_assert_str_eq(told, expected);
}

START_TEST(an_endpoint_has_those_of_undecided_tasks)
{
    struct task *first = create_task(&bench, new_task("a"));
    struct task *second = create_task(&bench, new_task("a"));
    post("aa", "C 1");
    post("aa", "C 2");
    post("bb", "D 3");
    see("aa", first->id, "+U1 -U2");
    char *both = memory_format("aa %s [C 2] []\naa %s [C 1] [+U1 -U2]\n", second->id, first->id);
    char *of_first = memory_format("aa %s [C 1] [+U1 -U2]\nbb %s [D 3] []\n", first->id, first->id);
    char *left = memory_format("aa %s [C 1] [+U1 -U2]\n", first->id);
    expect_messages("aa", both);
    store_outbox_messages(bench.store, STR("aa"), 1, asked());
    wait();
    ck_assert_str_ne(told, both);
    store_outbox_messages_of(bench.store, str_from(first->id), asked());
    wait();
    ck_assert_str_eq(told, of_first);
    task_unref(move_task(&bench, second->id, &(struct task_change){.to = TASK_CANCELLED}));
    bench_close(&bench);
    bench_open(&bench, &scratch);
    expect_messages("aa", left);
    expect_messages("cc", "");
    free(both);
    free(of_first);
    free(left);
    task_unref(first);
    task_unref(second);
}
END_TEST

START_TEST(seen_reactions_are_of_one_message)
{
    struct task *task = create_task(&bench, new_task("a"));
    post("aa", "C 1 A");
    see("aa", task->id, "+U1");
    /* A second notice of the task, while it still waits. */
    scratch_execute(&scratch, "UPDATE task SET state = 0");
    scratch_execute(&scratch,
                    "INSERT INTO outbox_notice SELECT NULL, at_ms, task_id, state, source, tool,"
                    " workflow, principal, arguments_digest, decided_by, reason, status_message,"
                    " arguments, created_ms, decide_by_ms, decided_ms FROM outbox_notice LIMIT 1");
    for (int i = 0; i < 2; i++)
        scratch_execute(&scratch,
                        "INSERT INTO outbox_delivery (id, notice, target, task_id, event, attempts,"
                        " due_ms) SELECT 'x', sequence, 'aa', task_id, 1, 0, 0 FROM outbox_notice"
                        " ORDER BY sequence DESC LIMIT 1");
    char *same = memory_format("aa %s [C 1 A] [+U1]\n", task->id);
    char *other = memory_format("aa %s [C 1.5] []\n", task->id);
    post("aa", "C 1"); /* the answer to a change says less */
    expect_messages("aa", same);
    post("aa", "C 1.5");
    expect_messages("aa", other);
    free(same);
    free(other);
    task_unref(task);
}
END_TEST

START_TEST(a_reaction_withdraws_its_own_vote_alone)
{
    struct answer answer = {0};
    struct task *task = new_task("a");
    task_set_text(&task->terms, STR("{\"groups\":[],\"people\":[],\"quorum\":3,\"emergency\":[]}"));
    task = create_task(&bench, task);
    static const struct {
        const char *person, *reaction;
        bool withdraws;
        enum ballot_refusal refusal;
    } steps[] = {
        {"alice", "aa", false, BALLOT_ACCEPTED}, {"bob", NULL, false, BALLOT_ACCEPTED},
        {"alice", "bb", true, BALLOT_NO_VOTE},   {"bob", "aa", true, BALLOT_NO_VOTE},
        {"carol", "aa", true, BALLOT_NO_VOTE},   {"alice", "aa", true, BALLOT_ACCEPTED},
        {"alice", "aa", true, BALLOT_NO_VOTE},   {"alice", "aa", false, BALLOT_ACCEPTED},
        {"alice", NULL, true, BALLOT_ACCEPTED},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const struct store_vote vote = {.reaction = steps[i].reaction,
                                        .withdraws = steps[i].withdraws};
        cast_vote(&bench, task->id, steps[i].person, vote, &answer);
        ck_assert_msg(answer.refusal == steps[i].refusal, "step %zu: %d", i, answer.refusal);
        answer_finish(&answer);
    }
    task_unref(task);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store outbox messages");
    TCase *tests = tcase_create("messages");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, an_endpoint_has_those_of_undecided_tasks);
    tcase_add_test(tests, seen_reactions_are_of_one_message);
    tcase_add_test(tests, a_reaction_withdraws_its_own_vote_alone);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
