/* The table of moves, and what each move records. */
#include <check.h>
#include <string.h>

#include "support.h"

/* Written by hand from behaviour 7.1 and 7.10; rows are from, columns to, in the order of the enum.
 */
static const char *const allowed[TASK_STATE_COUNT] = {
    /*            p a e c f x r e */
    /* pending   */ ".a..fxre",
    /* approved  */ "..e.fx.e",
    /* executing */ ".a.cfx.e",
    /* completed */ "........",
    /* failed    */ "........",
    /* cancelled */ "........",
    /* rejected  */ "........",
    /* expired   */ "........",
};

START_TEST(every_pair_of_states_is_as_the_design_says)
{
    enum task_state from = (enum task_state)(_i / TASK_STATE_COUNT);
    enum task_state to = (enum task_state)(_i % TASK_STATE_COUNT);
    bool expected = allowed[from][to] != '.';
    ck_assert_int_eq(task_can_move(from, to), expected);
    ck_assert_int_eq(task_move_name(from, to) != NULL, expected);

    struct task *task = task_in(from);
    ck_assert_int_eq(task->state, from);
    int64_t updated_ms = task->updated_ms;
    bool is_decision = from == TASK_PENDING;
    struct task_change change = {
        .to = to, .by = is_decision ? "alice" : NULL, .status_message = "why"};
    change.failure = to == TASK_FAILED ? TASK_FAILURE_UPSTREAM : TASK_FAILURE_NONE;
    change.outcome = to == TASK_COMPLETED ? TASK_OUTCOME_RESULT : TASK_OUTCOME_NONE;
    change.outcome_text = STR("{}");
    struct error error = {""};
    bool moved = task_transition(task, &change, NOW + 1000, &error);
    bool is_of_promoted = from == TASK_EXECUTING && to == TASK_EXPIRED;
    ck_assert_int_eq(moved, expected && !is_of_promoted);
    if (moved) {
        ck_assert_int_eq(task->state, to);
        ck_assert_int_eq(task->updated_ms, NOW + 1000);
        ck_assert_str_eq(task->status_message, "why");
        ck_assert_int_eq(task->ended_ms, task_state_is_terminal(to) ? NOW + 1000 : 0);
        ck_assert_msg(task_check(task, &error), "%s", error.message);
    } else {
        ck_assert_int_eq(task->state, from);
        ck_assert_int_eq(task->updated_ms, updated_ms);
        ck_assert_ptr_nonnull(strstr(error.message, task_state_name(from)));
        ck_assert_ptr_nonnull(strstr(error.message, task_state_name(to)));
    }
    task_unref(task);
}
END_TEST

START_TEST(a_walk_meets_every_move_once)
{
    bool met[TASK_STATE_COUNT][TASK_STATE_COUNT] = {{false}};
    size_t position = 0, count = 0;
    struct task_move move;
    while (task_next_move(&position, &move)) {
        ck_assert(!met[move.from][move.to]);
        met[move.from][move.to] = true;
        ck_assert_int_ne(allowed[move.from][move.to], '.');
        ck_assert_str_eq(move.name, task_move_name(move.from, move.to));
        count++;
    }
    ck_assert_uint_eq(count, 14);
    ck_assert(!task_next_move(&position, &move));
}
END_TEST

START_TEST(states_outside_the_enum_move_nowhere)
{
    ck_assert(!task_can_move((enum task_state)8, TASK_PENDING));
    ck_assert(!task_can_move(TASK_PENDING, (enum task_state)8));
    ck_assert(!task_state_is_terminal((enum task_state)8));
    ck_assert_str_eq(task_state_name((enum task_state)8), "unknown");
}
END_TEST

START_TEST(terminal_states_are_the_five_ends)
{
    for (unsigned s = 0; s < TASK_STATE_COUNT; s++)
        ck_assert_int_eq(task_state_is_terminal((enum task_state)s), s >= TASK_COMPLETED);
}
END_TEST

START_TEST(names_go_both_ways)
{
    static const char *const names[] = {"pending", "approved",  "executing", "completed",
                                        "failed",  "cancelled", "rejected",  "expired"};
    for (unsigned s = 0; s < TASK_STATE_COUNT; s++) {
        enum task_state parsed;
        ck_assert_str_eq(task_state_name((enum task_state)s), names[s]);
        ck_assert(task_state_parse(str_from(names[s]), &parsed));
        ck_assert_int_eq(parsed, s);
    }
    enum task_state parsed;
    ck_assert(!task_state_parse(STR("Pending"), &parsed));
    ck_assert(!task_state_parse(STR_EMPTY, &parsed));
}
END_TEST

START_TEST(approval_records_who_and_starts_the_second_clock)
{
    struct task *task = new_task(TASK_PENDING);
    struct task_change change = {.to = TASK_APPROVED, .by = "alice", .reason = "fine"};
    task_set_text(&task->status_message, STR("Awaiting approval"));
    ck_assert(task_transition(task, &change, NOW + 5, NULL));
    ck_assert_str_eq(task->decided_by, "alice");
    ck_assert_str_eq(task->reason, "fine");
    ck_assert_str_eq(task->status_message, "");
    ck_assert_int_eq(task->decided_ms, NOW + 5);
    ck_assert_int_eq(task->execute_by_ms, NOW + 5 + 300000);
    task_unref(task);

    task = new_task(TASK_PENDING);
    change.execute_by_ms = NOW + 42;
    ck_assert(task_transition(task, &change, NOW + 5, NULL));
    ck_assert_int_eq(task->execute_by_ms, NOW + 42);
    task_unref(task);
}
END_TEST

START_TEST(giving_back_leaves_decision_and_clock)
{
    struct task *task = task_in(TASK_EXECUTING);
    int64_t execute_by_ms = task->execute_by_ms, decided_ms = task->decided_ms;
    ck_assert(task_transition(task, &(struct task_change){.to = TASK_APPROVED}, NOW + 9000, NULL));
    ck_assert_int_eq(task->execute_by_ms, execute_by_ms);
    ck_assert_int_eq(task->decided_ms, decided_ms);
    ck_assert_str_eq(task->decided_by, "");
    task_unref(task);
}
END_TEST

START_TEST(a_change_for_another_request_is_refused)
{
    struct task *task = task_in(TASK_APPROVED);
    memset(task->request_digest, 'a', sizeof task->request_digest - 1);
    struct task_change change = {.to = TASK_EXECUTING, .request_digest = task->request_digest};
    ck_assert(task_can_change(task, &change));
    char other[sizeof task->request_digest];
    memset(other, 'b', sizeof other - 1);
    other[sizeof other - 1] = '\0';
    change.request_digest = other;
    ck_assert(!task_can_change(task, &change));
    task_unref(task);
}
END_TEST

START_TEST(refused_credentials_begin_nothing_and_three_refusals_are_the_end)
{
    struct task *task = new_task(TASK_APPROVED);
    const char *const tries[] = {"aa", "bb"};
    struct error error;
    for (size_t i = 0; i < 2; i++) {
        struct task_change begin = {.to = TASK_EXECUTING, .credentials = tries[i]};
        struct task_change back = {.to = TASK_APPROVED, .credentials = tries[i]};
        ck_assert_uint_eq(task_refusal_count(task), i);
        ck_assert(task_transition(task, &begin, task->updated_ms, &error));
        ck_assert(task_transition(task, &back, task->updated_ms, &error));
        ck_assert(task_has_refused(task, "aa") && !task_has_refused(task, "cc"));
        ck_assert(!task_can_change(task, &begin));
    }
    struct task_change last = {.to = TASK_EXECUTING, .credentials = "cc"};
    struct task_change back = {.to = TASK_APPROVED, .credentials = "cc"};
    ck_assert(task_transition(task, &last, task->updated_ms, &error));
    ck_assert(!task_can_change(task, &back));
    task_unref(task);
}
END_TEST

START_TEST(approving_what_runs_does_not_run_it_again)
{
    struct task *task = task_in(TASK_EXECUTING);
    struct task_change change = {.to = TASK_APPROVED, .by = "bob"};
    struct error error = {""};
    ck_assert(!task_can_change(task, &change));
    ck_assert(!task_transition(task, &change, NOW + 5, &error));
    ck_assert_int_eq(task->state, TASK_EXECUTING);
    ck_assert_str_ne(error.message, "");
    task_unref(task);
}
END_TEST

/* A replica that finds that an approved call must not run may be later than another that began
 * it. */
START_TEST(a_begun_call_is_not_said_never_to_have_run)
{
    struct task_change change = {
        .to = TASK_FAILED, .failure = TASK_FAILURE_GATEWAY, .unless_begun = true};
    struct error error = {""};
    struct task *running = task_in(TASK_EXECUTING), *approved = task_in(TASK_APPROVED);
    ck_assert(!task_transition(running, &change, NOW + 5, &error));
    ck_assert_int_eq(running->state, TASK_EXECUTING);
    ck_assert(task_transition(approved, &change, NOW + 5, &error));
    change.unless_begun = false;
    ck_assert(task_transition(running, &change, NOW + 5, &error));
    task_unref(running);
    task_unref(approved);
}
END_TEST

START_TEST(ends_explain_themselves)
{
    static const struct {
        enum task_state from;
        struct task_change change;
        const char *message;
    } cases[] = {
        {TASK_PENDING,
         {.to = TASK_REJECTED, .by = "alice", .reason = "too risky"},
         "Rejected by alice: too risky"},
        {TASK_PENDING, {.to = TASK_REJECTED, .by = "alice"}, "Rejected by alice"},
        {TASK_PENDING, {.to = TASK_REJECTED}, "Rejected by an operator"},
        {TASK_PENDING, {.to = TASK_CANCELLED}, "Cancelled"},
        {TASK_PENDING, {.to = TASK_CANCELLED, .reason = "not now"}, "Cancelled: not now"},
        {TASK_PENDING, {.to = TASK_EXPIRED}, "Approval timed out after 600 s"},
        {TASK_APPROVED, {.to = TASK_EXPIRED}, "Approved, but not run within 300 s"},
        {TASK_PENDING, {.to = TASK_REJECTED, .status_message = "as told"}, "as told"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct task *task = task_in(cases[i].from);
        ck_assert(task_transition(task, &cases[i].change, NOW + 100, NULL));
        ck_assert_str_eq(task->status_message, cases[i].message);
        task_unref(task);
    }
}
END_TEST

START_TEST(a_decision_stays_with_who_made_it)
{
    struct task *task = new_task(TASK_PENDING);
    struct task_change approve = {.to = TASK_APPROVED, .by = "alice", .reason = "fine"};
    struct task_change cancel = {.to = TASK_CANCELLED, .by = "bob", .reason = "the wrong one"};
    ck_assert(task_transition(task, &approve, NOW + 5, NULL));
    ck_assert(task_transition(task, &cancel, NOW + 9, NULL));
    ck_assert_str_eq(task->decided_by, "alice");
    ck_assert_str_eq(task->reason, "fine");
    ck_assert_int_eq(task->decided_ms, NOW + 5);
    ck_assert_str_eq(task->status_message, "Cancelled: the wrong one");
    task_unref(task);

    task = new_task(TASK_APPROVED); /* accelerated: nobody has decided */
    task->accelerated = true;
    ck_assert(task_transition(task, &cancel, NOW + 9, NULL));
    ck_assert_str_eq(task->decided_by, "");
    ck_assert_str_eq(task->reason, "the wrong one");
    task_unref(task);
}
END_TEST

TCase *transitions_case(void)
{
    TCase *tests = tcase_create("transitions");
    tcase_add_loop_test(tests, every_pair_of_states_is_as_the_design_says, 0,
                        TASK_STATE_COUNT * TASK_STATE_COUNT);
    tcase_add_test(tests, a_walk_meets_every_move_once);
    tcase_add_test(tests, states_outside_the_enum_move_nowhere);
    tcase_add_test(tests, terminal_states_are_the_five_ends);
    tcase_add_test(tests, names_go_both_ways);
    tcase_add_test(tests, approval_records_who_and_starts_the_second_clock);
    tcase_add_test(tests, giving_back_leaves_decision_and_clock);
    tcase_add_test(tests, a_change_for_another_request_is_refused);
    tcase_add_test(tests, refused_credentials_begin_nothing_and_three_refusals_are_the_end);
    tcase_add_test(tests, approving_what_runs_does_not_run_it_again);
    tcase_add_test(tests, a_begun_call_is_not_said_never_to_have_run);
    tcase_add_test(tests, ends_explain_themselves);
    tcase_add_test(tests, a_decision_stays_with_who_made_it);
    return tests;
}
