/* The task value, its table of moves, its clocks. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/task/task.h"

#define NOW INT64_C(1700000000000)

static struct task *new_task(enum task_state state)
{
    struct task *task = task_create(state);
    task->created_ms = task->updated_ms = NOW;
    task->ttl_ms = 600000;
    task->decide_by_ms = state == TASK_PENDING ? NOW + 600000 : 0;
    task->execute_by_ms = state == TASK_APPROVED ? NOW + 300000 : 0;
    return task;
}

/* A task that has come to `state` by legal moves. */
static struct task *task_in(enum task_state state)
{
    static const struct {
        enum task_state path[3];
        unsigned length;
    } ways[TASK_STATE_COUNT] = {
        [TASK_PENDING] = {{0}, 0},
        [TASK_APPROVED] = {{TASK_APPROVED}, 1},
        [TASK_EXECUTING] = {{TASK_APPROVED, TASK_EXECUTING}, 2},
        [TASK_COMPLETED] = {{TASK_APPROVED, TASK_EXECUTING, TASK_COMPLETED}, 3},
        [TASK_FAILED] = {{TASK_FAILED}, 1},
        [TASK_CANCELLED] = {{TASK_CANCELLED}, 1},
        [TASK_REJECTED] = {{TASK_REJECTED}, 1},
        [TASK_EXPIRED] = {{TASK_EXPIRED}, 1},
    };
    struct task *task = new_task(TASK_PENDING);
    for (unsigned i = 0; i < ways[state].length; i++) {
        struct task_change change = {.to = ways[state].path[i]};
        if (change.to == TASK_FAILED)
            change.failure = TASK_FAILURE_GATEWAY;
        if (change.to == TASK_COMPLETED) {
            change.outcome = TASK_OUTCOME_RESULT;
            change.outcome_text = STR("{}");
        }
        struct error error = {""};
        ck_assert_msg(task_transition(task, &change, NOW + i, &error), "%s", error.message);
    }
    return task;
}

/* Written by hand from design §5 and the contract's "back to approved"; rows are from,
 * columns to, in the order of the enum. */
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

/* Whoever finds that an approved call must not run may be later than another who began it. */
START_TEST(what_has_begun_is_not_said_never_to_have_run)
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

START_TEST(an_accelerated_task_expires_by_its_own_clock)
{
    struct task *task = new_task(TASK_APPROVED);
    task->accelerated = true;
    task->execute_by_ms = NOW + 1500;
    struct task_change change;
    ck_assert(!task_due(task, NOW + 1499, &change));
    ck_assert(task_due(task, NOW + 1500, &change));
    ck_assert(task_transition(task, &change, NOW + 1500, NULL));
    ck_assert_str_eq(task->status_message, "Approved, but not run within 1500 ms");
    task_unref(task);
}
END_TEST

/* ---- promoted ones ---- */

static struct task *new_promoted(void)
{
    struct task *task = task_create_promoted();
    task->created_ms = task->updated_ms = NOW;
    task->ttl_ms = 300000;
    task->retention_ms = 200000;
    task->expired_retention_ms = 60000;
    return task;
}

START_TEST(a_promoted_task_ends_or_expires_and_is_never_given_back)
{
    enum task_state to = (enum task_state)_i;
    struct task *task = new_promoted();
    struct task_change change = {.to = to};
    struct error error = {""};
    ck_assert_msg(task_check(task, &error), "%s", error.message);
    ck_assert_int_eq(task->state, TASK_EXECUTING);
    change.failure = to == TASK_FAILED ? TASK_FAILURE_UPSTREAM : TASK_FAILURE_NONE;
    change.outcome = to == TASK_COMPLETED ? TASK_OUTCOME_RESULT : TASK_OUTCOME_NONE;
    change.outcome_text = STR("{}");
    bool expected = strchr("cfxe", "paecfxre"[to]) != NULL && to >= TASK_COMPLETED;
    ck_assert_int_eq(task_can_change(task, &change), expected);
    ck_assert_int_eq(task_transition(task, &change, NOW + 1000, &error), expected);
    ck_assert_int_eq(task->state, expected ? to : TASK_EXECUTING);
    ck_assert(task_check(task, NULL));
    task_unref(task);
}
END_TEST

START_TEST(a_promoted_task_expires_when_its_ttl_is_over)
{
    struct task *task = new_promoted();
    struct task_change change;
    ck_assert_int_eq(task_next_deadline_ms(task), NOW + 300000);
    ck_assert(!task_due(task, NOW + 299999, &change));
    ck_assert(task_due(task, NOW + 300000, &change));
    ck_assert(task_transition(task, &change, NOW + 300000, NULL));
    ck_assert_int_eq(task->state, TASK_EXPIRED);
    ck_assert_str_eq(task->status_message, "Not completed within its time to live of 300 s");
    ck_assert_int_eq(task_next_deadline_ms(task), INT64_MAX);
    task_unref(task);
}
END_TEST

START_TEST(a_promoted_task_is_kept_for_times_of_its_own)
{
    struct task *task = new_promoted();
    ck_assert_int_eq(task_purge_ms(task), INT64_MAX);
    ck_assert(task_transition(task, &(struct task_change){.to = TASK_CANCELLED}, NOW + 7, NULL));
    ck_assert_int_eq(task_purge_ms(task), NOW + 7 + 200000);
    task_unref(task);
    task = new_promoted();
    ck_assert(task_transition(task, &(struct task_change){.to = TASK_EXPIRED}, NOW + 7, NULL));
    ck_assert_int_eq(task_purge_ms(task), NOW + 7 + 60000);
    task_unref(task);
}
END_TEST

START_TEST(only_what_has_begun_can_be_promoted)
{
    static const enum task_state states[] = {TASK_PENDING, TASK_APPROVED, TASK_REJECTED};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct error error = {""};
        struct task *task = new_promoted();
        task->state = states[i];
        task->decide_by_ms = task->execute_by_ms = task->decided_ms = NOW;
        task->ended_ms = states[i] == TASK_REJECTED ? NOW : 0;
        task->decided_ms = states[i] == TASK_PENDING ? 0 : NOW;
        ck_assert(!task_check(task, &error));
        ck_assert_ptr_nonnull(strstr(error.message, "a promoted task has begun"));
        task_unref(task);
    }
}
END_TEST

START_TEST(kinds_have_names)
{
    struct task *task = new_promoted();
    ck_assert_str_eq(task_kind_name(task), "promoted");
    task->promoted = false;
    ck_assert_str_eq(task_kind_name(task), "approval");
    task->accelerated = true;
    ck_assert_str_eq(task_kind_name(task), "accelerated");
    task_unref(task);
}
END_TEST

START_TEST(incomplete_changes_are_refused_and_leave_the_task)
{
    static const struct task_change cases[] = {
        {.to = TASK_FAILED},
        {.to = TASK_COMPLETED},
        {.to = TASK_COMPLETED, .outcome = TASK_OUTCOME_ERROR},
        {.to = TASK_CANCELLED, .failure = TASK_FAILURE_GATEWAY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct task *task = task_in(TASK_EXECUTING);
        struct error error = {""};
        ck_assert(!task_transition(task, &cases[i], NOW + 100, &error));
        ck_assert_str_ne(error.message, "");
        ck_assert_int_eq(task->state, TASK_EXECUTING);
        ck_assert_int_eq(task->ended_ms, 0);
        task_unref(task);
    }
}
END_TEST

START_TEST(outcomes_are_kept_byte_for_byte)
{
    struct task *task = task_in(TASK_EXECUTING);
    struct task_change change = {.to = TASK_FAILED,
                                 .failure = TASK_FAILURE_UPSTREAM,
                                 .outcome = TASK_OUTCOME_ERROR,
                                 .outcome_text = STR("{\"a\":\0 1}"),
                                 .upstream_task = "up-1"};
    ck_assert(task_transition(task, &change, NOW + 1, NULL));
    struct task *copy = task_copy(task);
    task_unref(task);
    ck_assert_uint_eq(copy->outcome_length, 9);
    ck_assert_int_eq(memcmp(copy->outcome_text, "{\"a\":\0 1}", 10), 0);
    ck_assert_int_eq(copy->failure, TASK_FAILURE_UPSTREAM);
    ck_assert_str_eq(copy->upstream_task, "up-1");
    task_unref(copy);
}
END_TEST

START_TEST(the_wall_clock_going_back_keeps_the_order)
{
    struct task *task = new_task(TASK_PENDING);
    ck_assert(task_transition(task, &(struct task_change){.to = TASK_CANCELLED}, NOW - 5000, NULL));
    ck_assert_int_eq(task->updated_ms, NOW);
    ck_assert_int_eq(task->ended_ms, NOW);
    task_unref(task);
}
END_TEST

START_TEST(unsound_tasks_are_named)
{
    static const enum task_state states[] = {TASK_PENDING, TASK_APPROVED, TASK_COMPLETED,
                                             TASK_FAILED, TASK_REJECTED};
    struct error error = {""};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct task *task = task_create(states[i]);
        ck_assert(!task_check(task, NULL)); /* nothing is set */
        task->created_ms = task->updated_ms = task->ttl_ms = 1;
        ck_assert(!task_check(task, &error)); /* what its state needs is not set */
        ck_assert_ptr_nonnull(strstr(error.message, task_state_name(states[i])));
        task_unref(task);
    }
}
END_TEST

START_TEST(deadlines_hold_only_before_execution)
{
    for (unsigned s = 0; s < TASK_STATE_COUNT; s++) {
        struct task *task = task_in((enum task_state)s);
        int64_t expected = INT64_MAX;
        if (s == TASK_PENDING)
            expected = NOW + 600000;
        if (s == TASK_APPROVED)
            expected = task->execute_by_ms;
        ck_assert_int_eq(task_next_deadline_ms(task), expected);
        struct task_change change;
        ck_assert_int_eq(task_due(task, NOW + 100000000, &change), s <= TASK_APPROVED);
        if (s <= TASK_APPROVED) {
            ck_assert(!task_due(task, expected - 1, &change));
            ck_assert(task_due(task, expected, &change));
            ck_assert_int_eq(change.to, TASK_EXPIRED);
        }
        task_unref(task);
    }
}
END_TEST

START_TEST(retention_is_the_later_of_ttl_and_an_hour)
{
    struct task *task = new_task(TASK_PENDING);
    ck_assert_int_eq(task_purge_ms(task), INT64_MAX);
    ck_assert(task_transition(task, &(struct task_change){.to = TASK_CANCELLED}, NOW + 7, NULL));
    ck_assert_int_eq(task_purge_ms(task), NOW + 7 + 3600000);
    task->ttl_ms = 86400000;
    ck_assert_int_eq(task_purge_ms(task), NOW + 86400000);
    task->ttl_ms = INT64_MAX;
    ck_assert_int_eq(task_purge_ms(task), INT64_MAX);
    task_unref(task);
}
END_TEST

START_TEST(polling_slows_with_the_time_left)
{
    static const int64_t cases[][2] = {{-5, 2000},      {0, 2000},       {60000, 2000},
                                       {60001, 5000},   {300000, 5000},  {300001, 10000},
                                       {900000, 10000}, {900001, 30000}, {INT64_MAX, 30000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_int_eq(task_poll_interval_ms(cases[i][0]), cases[i][1]);
}
END_TEST

START_TEST(ids_are_ours_and_differ)
{
    struct task *a = task_create(TASK_PENDING), *b = task_create(TASK_PENDING);
    ck_assert_uint_eq(strlen(a->id), TASK_ID_BYTES - 1);
    ck_assert(task_id_is_ours(str_from(a->id)));
    ck_assert_str_ne(a->id, b->id);
    ck_assert(!task_id_is_ours(STR("tg-1")));
    ck_assert(!task_id_is_ours(STR("TG_1")));
    ck_assert(!task_id_is_ours(STR("tg")));
    struct task *promoted = task_create_promoted();
    ck_assert(task_id_is_ulid(str_from(promoted->id)));
    ck_assert(!task_id_is_ours(str_from(promoted->id)));
    ck_assert(!task_id_is_ulid(str_from(a->id)));
    ck_assert(task_id_is_ulid(STR("01ARZ3NDEKTSV4RRFFQ69G5FAV")));
    ck_assert(!task_id_is_ulid(STR("01ARZ3NDEKTSV4RRFFQ69G5FA")));
    ck_assert(!task_id_is_ulid(STR("01ARZ3NDEKTSV4RRFFQ69G5FAVX")));
    ck_assert(!task_id_is_ulid(STR("01ARZ3NDEKTSV4RRFFQ69G5FAU")));
    ck_assert(!task_id_is_ulid(STR("01ARZ3NDEKTSV4RRFFQ69G5FA\0")));
    task_unref(promoted);
    task_unref(a);
    task_unref(b);
}
END_TEST

START_TEST(copies_are_deep)
{
    struct task *task = new_task(TASK_PENDING);
    task_set_text(&task->tool, STR("delete_database"));
    task_set_request(task, STR("{\"id\":\0"
                               "1}"));
    struct task *copy = task_copy(task);
    task_set_text(&task->tool, STR("other"));
    task->request[2] = 'X';
    ck_assert_str_eq(copy->tool, "delete_database");
    ck_assert_uint_eq(copy->request_length, 9);
    ck_assert_int_eq(memcmp(copy->request,
                            "{\"id\":\0"
                            "1}",
                            9),
                     0);
    ck_assert_ptr_null(copy->outcome_text);
    task_unref(task);
    task_unref(copy);
    task_unref(NULL);
}
END_TEST

static void *share(void *context)
{
    for (unsigned i = 0; i < 20000; i++) {
        struct task *task = task_ref(context);
        ck_assert_int_eq(task->state, TASK_PENDING);
        task_unref(task);
    }
    task_unref(context);
    return NULL;
}

START_TEST(references_are_counted_across_threads)
{
    struct task *task = new_task(TASK_PENDING);
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, share, task_ref(task)), 0);
    task_unref(task);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("task");
    TCase *table = tcase_create("transitions");
    tcase_add_loop_test(table, every_pair_of_states_is_as_the_design_says, 0,
                        TASK_STATE_COUNT * TASK_STATE_COUNT);
    tcase_add_test(table, a_walk_meets_every_move_once);
    tcase_add_test(table, states_outside_the_enum_move_nowhere);
    tcase_add_test(table, terminal_states_are_the_five_ends);
    tcase_add_test(table, names_go_both_ways);
    tcase_add_test(table, approval_records_who_and_starts_the_second_clock);
    tcase_add_test(table, giving_back_leaves_decision_and_clock);
    tcase_add_test(table, refused_credentials_begin_nothing_and_three_refusals_are_the_end);
    tcase_add_test(table, approving_what_runs_does_not_run_it_again);
    tcase_add_test(table, what_has_begun_is_not_said_never_to_have_run);
    tcase_add_test(table, ends_explain_themselves);
    tcase_add_test(table, a_decision_stays_with_who_made_it);
    tcase_add_test(table, an_accelerated_task_expires_by_its_own_clock);
    tcase_add_test(table, incomplete_changes_are_refused_and_leave_the_task);
    tcase_add_test(table, outcomes_are_kept_byte_for_byte);
    tcase_add_test(table, the_wall_clock_going_back_keeps_the_order);
    tcase_add_test(table, unsound_tasks_are_named);
    tcase_add_loop_test(table, a_promoted_task_ends_or_expires_and_is_never_given_back, 0,
                        TASK_STATE_COUNT);
    tcase_add_test(table, only_what_has_begun_can_be_promoted);
    tcase_add_test(table, kinds_have_names);
    suite_add_tcase(suite, table);
    TCase *clocks = tcase_create("clocks");
    tcase_add_test(clocks, deadlines_hold_only_before_execution);
    tcase_add_test(clocks, retention_is_the_later_of_ttl_and_an_hour);
    tcase_add_test(clocks, a_promoted_task_expires_when_its_ttl_is_over);
    tcase_add_test(clocks, a_promoted_task_is_kept_for_times_of_its_own);
    tcase_add_test(clocks, polling_slows_with_the_time_left);
    suite_add_tcase(suite, clocks);
    TCase *value = tcase_create("value");
    tcase_add_test(value, ids_are_ours_and_differ);
    tcase_add_test(value, copies_are_deep);
    tcase_add_test(value, references_are_counted_across_threads);
    suite_add_tcase(suite, value);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
