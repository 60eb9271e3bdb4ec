/* Votes: kept with their task, counted under its terms, and decided in the same transaction. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "taskgate/config/config.h"
#include "taskgate/core/clock.h"

#define TWO "{\"groups\":[],\"people\":[],\"quorum\":2,\"emergency\":[]}"

static struct scratch scratch;
static struct bench bench;

static void set_up(void)
{
    scratch_init(&scratch);
    bench_open(&bench, &scratch);
}

static void tear_down(void)
{
    bench_close(&bench);
    scratch_finish(&scratch);
}

static char id[TASK_ID_BYTES];

/* A task that waits under these terms; `id` names it. */
static void begin(const char *terms)
{
    struct task *task = new_task("sub:ab");
    task_set_text(&task->terms, str_from(terms));
    task_set_text(&task->workflow, STR("ops"));
    snprintf(task->owner_email, sizeof task->owner_email, "digest of an address");
    task = create_task(&bench, task);
    memcpy(id, task->id, sizeof id);
    task_unref(task);
}

/* "STORE_OK pending", or the code of the refusal. */
static const char *vote(const char *person, struct store_vote vote)
{
    static char text[64];
    struct answer answer = {0};
    cast_vote(&bench, id, person, vote, &answer);
    if (answer.status == STORE_OK)
        snprintf(text, sizeof text, "%s", task_state_name(answer.task->state));
    else if (answer.status == STORE_NOT_FOUND)
        snprintf(text, sizeof text, "not_found");
    else
        snprintf(text, sizeof text, "%s", ballot_refusal_code(answer.refusal));
    answer_finish(&answer);
    return text;
}
#define VOTE(...) ((struct store_vote){__VA_ARGS__})
#define REJECT .verb = BALLOT_REJECT
#define WITHDRAW .withdraws = true

static void expect_audit(const char *expected)
{
    struct answer answer = {0};
    audit_of(&bench, id, &answer);
    ck_assert_str_eq(answer.audit_text, expected);
    answer_finish(&answer);
}

START_TEST(the_vote_that_completes_the_quorum_moves_the_task)
{
    begin(TWO);
    ck_assert_str_eq(vote("alice", VOTE(.reason = "looked")), "pending");
    ck_assert_str_eq(vote("alice", VOTE(0)), "already_voted");
    ck_assert_str_eq(vote("alice", VOTE(REJECT)), "already_voted");
    ck_assert_str_eq(vote("bob", VOTE(0)), "approved");
    ck_assert_str_eq(vote("carol", VOTE(REJECT)), "conflict");
    expect_audit("create >pending client sub:ab \n"
                 "vote pending>pending operator alice looked\n"
                 "approve pending>approved operator bob \n");
    struct task *task = get_task(&bench, id);
    ck_assert_str_eq(task->decided_by, "bob");
    struct ballot ballot;
    ballot_read(&ballot, str_from(task->terms), str_from(task->votes));
    ck_assert_uint_eq(ballot.votes.count, 2);
    ck_assert_str_eq(ballot.votes.items[0].person.name, "alice");
    ck_assert_str_eq(ballot.votes.items[0].reason, "looked");
    ck_assert_int_eq(ballot.votes.items[1].at_ms, task->decided_ms);
    ballot_finish(&ballot);
    task_unref(task);
}
END_TEST

START_TEST(votes_and_terms_outlive_the_process)
{
    begin(TWO);
    ck_assert_str_eq(vote("alice", VOTE(0)), "pending");
    bench_close(&bench);
    bench_open(&bench, &scratch);
    ck_assert_str_eq(vote("alice", VOTE(0)), "already_voted");
    ck_assert_str_eq(vote("bob", VOTE(0)), "approved");
}
END_TEST

START_TEST(one_rejection_ends_it)
{
    begin(TWO);
    ck_assert_str_eq(vote("alice", VOTE(0)), "pending");
    ck_assert_str_eq(vote("bob", VOTE(REJECT, .reason = "no")), "rejected");
    struct task *task = get_task(&bench, id);
    ck_assert_str_eq(task->status_message, "Rejected by bob: no");
    task_unref(task);
}
END_TEST

START_TEST(a_vote_that_is_taken_back_does_not_count)
{
    begin(TWO);
    ck_assert_str_eq(vote("alice", VOTE(WITHDRAW)), "no_vote");
    ck_assert_str_eq(vote("alice", VOTE(0)), "pending");
    ck_assert_str_eq(vote("alice", VOTE(WITHDRAW)), "pending");
    ck_assert_str_eq(vote("bob", VOTE(0)), "pending");
    ck_assert_str_eq(vote("alice", VOTE(0)), "approved");
    ck_assert_str_eq(vote("alice", VOTE(WITHDRAW)), "conflict");
    expect_audit("create >pending client sub:ab \n"
                 "vote pending>pending operator alice \n"
                 "withdraw pending>pending operator alice \n"
                 "vote pending>pending operator bob \n"
                 "approve pending>approved operator alice \n");
}
END_TEST

START_TEST(nobody_votes_on_a_call_of_their_own)
{
    char *known[] = {"token:x", "sub:ab"};
    const struct ballot_names keys = {known, 2};
    begin(TWO);
    ck_assert_str_eq(vote("alice", VOTE(.voter.keys = keys)), "own_call");
    ck_assert_str_eq(vote("alice", VOTE(REJECT, .voter.keys = keys)), "own_call");
    char *addresses[] = {"another", "digest of an address"};
    struct ballot_names emails = {addresses, 2};
    ck_assert_str_eq(vote("alice", VOTE(.voter.emails = emails)), "own_call");
    emails.count = 1;
    ck_assert_str_eq(vote("alice", VOTE(.voter.emails = emails)), "pending");
}
END_TEST

/* The electorate's knowledge of the people: mallory has gone, and an approval holds for a
 * minute. */
static void renew(void *context, struct ballot_vote *vote)
{
    ++*(int *)context;
    vote->stands = strcmp(vote->person.name, "mallory") != 0;
}

static int64_t hold_a_minute(void *context, const char *workflow)
{
    ck_assert_str_eq(workflow, "ops");
    return 60000;
}

static void release(void *context)
{
    *(int *)context += 1000;
}

START_TEST(the_electorate_tells_which_votes_stand_and_how_long_an_approval_holds)
{
    int asked = 0;
    const struct store_electorate electorate = {
        .renew = renew, .valid_for_ms = hold_a_minute, .release = release, .context = &asked};
    begin(TWO);
    ck_assert_str_eq(vote("mallory", VOTE(0)), "pending");
    ck_assert_str_eq(vote("alice", VOTE(.electorate = electorate)), "pending");
    ck_assert_int_eq(asked, 1001);
    ck_assert_str_eq(vote("bob", VOTE(.electorate = electorate)), "approved");
    ck_assert_int_eq(asked, 2003);
    struct task *task = get_task(&bench, id);
    ck_assert_int_eq(task->execute_by_ms - task->decided_ms, 60000);
    task_unref(task);
}
END_TEST

START_TEST(an_emergency_is_decided_alone)
{
    struct ballot_names oncall = {NULL, 0};
    ballot_names_add(&oncall, "oncall");
    begin("{\"groups\":[\"dba\"],\"people\":[],\"quorum\":2,\"emergency\":[\"oncall\"]}");
    const struct store_vote alone = {.voter.groups = oncall, .is_emergency = true};
    ck_assert_str_eq(vote("olga", alone), "reason_required");
    ck_assert_str_eq(vote("alice", VOTE(.is_emergency = true, .reason = "r")), "not_an_approver");
    ck_assert_str_eq(
        vote("olga", VOTE(.voter.groups = oncall, .is_emergency = true, .reason = "fire")),
        "approved");
    ballot_names_finish(&oncall);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM audit WHERE event = 'approve'"
                                             " AND votes LIKE '%\"emergency\":true%'"),
                     1);
}
END_TEST

/* Also those that want to hear of other events alone; nobody twice. */
START_TEST(everybody_is_told_of_an_emergency)
{
    const struct store_outbox_target targets[] = {{"aa", NOTIFY_ALL, false},
                                                  {"bb", NOTIFY_EXPIRED, false}};
    struct ballot_names oncall = {NULL, 0};
    struct answer answer = {0};
    ballot_names_add(&oncall, "oncall");
    store_outbox_configure(bench.store, targets, 2, bench_call(bench.loop, &answer));
    bench_wait(bench.loop, &answer);
    answer_finish(&answer);
    begin("{\"groups\":[],\"people\":[],\"quorum\":2,\"emergency\":[\"oncall\"]}");
    vote("olga", VOTE(.voter.groups = oncall, .is_emergency = true, .reason = "fire"));
    ballot_names_finish(&oncall);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT count(*) FROM outbox_delivery"), 3);
    ck_assert_int_eq(scratch_query(&scratch, "SELECT event FROM outbox_delivery WHERE target='bb'"),
                     NOTIFY_DECIDED);
    ck_assert_int_eq(
        scratch_query(&scratch,
                      "SELECT count(*) FROM outbox_delivery WHERE target='aa' AND event=2"),
        1);
}
END_TEST

START_TEST(a_claim_behind_a_vote_that_does_not_decide_is_refused)
{
    begin(TWO);
    struct answer answer = {0};
    const struct store_claim claim = {.change = {.to = TASK_EXECUTING},
                                      .actor = {"gateway", "taskgate"},
                                      .call = bench_call(bench.loop, &answer)};
    ck_assert_str_eq(vote("alice", VOTE(.claim = &claim)), "pending");
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_CONFLICT);
    ck_assert_int_eq(answer.task->state, TASK_PENDING);
    answer_finish(&answer);
    answer = (struct answer){0};
    ck_assert_str_eq(vote("bob", VOTE(.claim = &claim)), "approved");
    bench_wait(bench.loop, &answer);
    ck_assert_int_eq(answer.status, STORE_OK);
    answer_finish(&answer);
    expect_audit("create >pending client sub:ab \n"
                 "vote pending>pending operator alice \n"
                 "approve pending>approved operator bob \n"
                 "execute approved>executing gateway taskgate \n");
}
END_TEST

START_TEST(a_task_due_or_unknown_or_without_votes_takes_none)
{
    begin(TWO);
    scratch_execute(&scratch, "UPDATE task SET decide_by_ms = 1, deadline_ms = 1, created_ms = 1");
    ck_assert_str_eq(vote("alice", VOTE(0)), "conflict");
    snprintf(id, sizeof id, "tg_unknown");
    ck_assert_str_eq(vote("alice", VOTE(0)), "not_found");
    struct task *task = create_task(&bench, new_accelerated("a"));
    memcpy(id, task->id, sizeof id);
    ck_assert_str_eq(vote("alice", VOTE(0)), "conflict");
    task_unref(task);
}
END_TEST

START_TEST(damaged_terms_or_votes_let_nobody_decide)
{
    begin(TWO);
    scratch_execute(&scratch, "UPDATE task SET terms = '{}'");
    ck_assert_str_eq(vote("alice", VOTE(0)), "not_an_approver");
    scratch_execute(&scratch, "UPDATE task SET terms = '', votes = '[{}]'");
    ck_assert_str_eq(vote("alice", VOTE(0)), "not_an_approver");
    scratch_execute(&scratch, "UPDATE task SET votes = ''");
    ck_assert_str_eq(vote("alice", VOTE(0)), "approved");
}
END_TEST

START_TEST(observers_hear_of_each_vote)
{
    struct heard heard = {0};
    store_observe(bench.store, bench.loop, hear, &heard);
    begin(TWO);
    vote("alice", VOTE(0));
    vote("bob", VOTE(0));
    bench_wait_count(bench.loop, &heard.count, 3);
    ck_assert_int_eq(heard.tasks[1]->state, TASK_PENDING);
    ck_assert_ptr_nonnull(strstr(heard.tasks[1]->votes, "alice"));
    ck_assert_int_eq(heard.tasks[2]->state, TASK_APPROVED);
    heard_finish(&heard);
}
END_TEST

/* A pending task of the version before has no terms: one person decides it. */
START_TEST(a_task_of_before_is_decided_by_one)
{
    begin("");
    bench_close(&bench);
    scratch_execute(&scratch, SCRATCH_WITHOUT_REPLICAS SCRATCH_BACK_TO_18
                    "ALTER TABLE task DROP COLUMN terms;"
                    "ALTER TABLE task DROP COLUMN maker;"
                    "ALTER TABLE task DROP COLUMN started_ms;"
                    "ALTER TABLE task DROP COLUMN brief;"
                    "ALTER TABLE task DROP COLUMN promised;"
                    "ALTER TABLE task DROP COLUMN votes; PRAGMA user_version = 17");
    bench_open(&bench, &scratch);
    ck_assert_str_eq(vote("alice", VOTE(0)), "approved");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store votes");
    TCase *tests = tcase_create("votes");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_vote_that_completes_the_quorum_moves_the_task);
    tcase_add_test(tests, votes_and_terms_outlive_the_process);
    tcase_add_test(tests, one_rejection_ends_it);
    tcase_add_test(tests, a_vote_that_is_taken_back_does_not_count);
    tcase_add_test(tests, nobody_votes_on_a_call_of_their_own);
    tcase_add_test(tests, the_electorate_tells_which_votes_stand_and_how_long_an_approval_holds);
    tcase_add_test(tests, an_emergency_is_decided_alone);
    tcase_add_test(tests, everybody_is_told_of_an_emergency);
    tcase_add_test(tests, a_claim_behind_a_vote_that_does_not_decide_is_refused);
    tcase_add_test(tests, a_task_due_or_unknown_or_without_votes_takes_none);
    tcase_add_test(tests, damaged_terms_or_votes_let_nobody_decide);
    tcase_add_test(tests, observers_hear_of_each_vote);
    tcase_add_test(tests, a_task_of_before_is_decided_by_one);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
