/* The life of a call that the gateway runs: the table of its moves, and what holds in each state.
 */
#include <signal.h>
#include <string.h>

#include "conversation/invocation.h"
#include "suites.h"
#include "taskgate/core/memory.h"

/* Written down once more, so that a new row of the table is a decision here, too. */
static const struct {
    enum invocation_state from, to;
    const char *name;
    unsigned of;
} allowed[] = {
    {INVOCATION_OFFERED, INVOCATION_CHECKING, "check", INVOCATION_EXECUTION},
    {INVOCATION_OFFERED, INVOCATION_CLAIMING, "claim", INVOCATION_EXECUTION},
    {INVOCATION_OFFERED, INVOCATION_ENDED, "drop", INVOCATION_EXECUTION},
    {INVOCATION_CHECKING, INVOCATION_OFFERED, "wait", INVOCATION_EXECUTION},
    {INVOCATION_CHECKING, INVOCATION_COMMITTING, "commit", INVOCATION_EXECUTION},
    {INVOCATION_CHECKING, INVOCATION_REFUSED, "refuse", INVOCATION_EXECUTION},
    {INVOCATION_CHECKING, INVOCATION_ENDED, "drop", INVOCATION_EXECUTION},
    {INVOCATION_CLAIMING, INVOCATION_OFFERED, "wait", INVOCATION_EXECUTION},
    {INVOCATION_CLAIMING, INVOCATION_RUNNING, "run", INVOCATION_EXECUTION},
    {INVOCATION_CLAIMING, INVOCATION_STORING, "refuse", INVOCATION_EXECUTION},
    {INVOCATION_CLAIMING, INVOCATION_ENDED, "drop", INVOCATION_EXECUTION},
    {INVOCATION_COMMITTING, INVOCATION_OFFERED, "wait", INVOCATION_EXECUTION},
    {INVOCATION_COMMITTING, INVOCATION_RUNNING, "run", INVOCATION_EXECUTION | INVOCATION_DETACHED},
    {INVOCATION_COMMITTING, INVOCATION_ENDED, "drop", INVOCATION_EXECUTION | INVOCATION_DETACHED},
    {INVOCATION_COMMITTING, INVOCATION_STORING, "answer",
     INVOCATION_EXECUTION | INVOCATION_DETACHED},
    {INVOCATION_RUNNING, INVOCATION_COMMITTING, "detach", INVOCATION_DETACHED},
    {INVOCATION_RUNNING, INVOCATION_POLLING, "follow", INVOCATION_EXECUTION},
    {INVOCATION_RUNNING, INVOCATION_STORING, "answer", INVOCATION_EXECUTION | INVOCATION_DETACHED},
    {INVOCATION_RUNNING, INVOCATION_ENDED, "drop", INVOCATION_EXECUTION | INVOCATION_DETACHED},
    {INVOCATION_POLLING, INVOCATION_STORING, "answer", INVOCATION_EXECUTION},
    {INVOCATION_POLLING, INVOCATION_ENDED, "drop", INVOCATION_EXECUTION},
    {INVOCATION_STORING, INVOCATION_ENDED, "store", INVOCATION_EXECUTION | INVOCATION_DETACHED},
    {INVOCATION_REFUSED, INVOCATION_ENDED, "store", INVOCATION_EXECUTION},
};

static const char *allowed_name(unsigned kind, unsigned from, unsigned to)
{
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (allowed[i].from == from && allowed[i].to == to && (allowed[i].of & kind))
            return allowed[i].name;
    }
    return NULL;
}

static void check_pairs(enum invocation_kind kind)
{
    for (unsigned from = 0; from < INVOCATION_STATE_COUNT; from++) {
        for (unsigned to = 0; to < INVOCATION_STATE_COUNT; to++) {
            const char *name = invocation_move_name(kind, from, to);
            const char *wanted = allowed_name(kind, from, to);
            ck_assert_msg(!name == !wanted && (!name || strcmp(name, wanted) == 0),
                          "from %s to %s of kind %d: %s", invocation_state_name(from),
                          invocation_state_name(to), kind, name ? name : "forbidden");
            ck_assert_int_eq(invocation_can_move(kind, from, to), wanted != NULL);
        }
    }
}

START_TEST(every_pair_of_states_is_as_listed)
{
    check_pairs(INVOCATION_EXECUTION);
    check_pairs(INVOCATION_DETACHED);
}
END_TEST

/* All states that moves lead to, as a set of bits. */
static unsigned reach(enum invocation_kind kind, enum invocation_state from)
{
    unsigned reached = 0, before;
    for (unsigned to = 0; to < INVOCATION_STATE_COUNT; to++)
        reached |= invocation_can_move(kind, from, to) ? 1U << to : 0;
    do {
        before = reached;
        for (unsigned via = 0; via < INVOCATION_STATE_COUNT; via++) {
            for (unsigned to = 0; to < INVOCATION_STATE_COUNT; to++)
                reached |=
                    (reached & 1U << via) && invocation_can_move(kind, via, to) ? 1U << to : 0;
        }
    } while (reached != before);
    return reached;
}

START_TEST(no_move_leads_from_sent_to_unsent)
{
    const unsigned unsent = 1U << INVOCATION_OFFERED | 1U << INVOCATION_CHECKING |
                            1U << INVOCATION_CLAIMING | 1U << INVOCATION_COMMITTING |
                            1U << INVOCATION_REFUSED;
    const enum invocation_state sent[] = {INVOCATION_RUNNING, INVOCATION_POLLING,
                                          INVOCATION_STORING, INVOCATION_ENDED};
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
        unsigned reached = reach(INVOCATION_EXECUTION, sent[i]);
        ck_assert_uint_eq(reached & (unsent | 1U << INVOCATION_RUNNING), 0);
    }
    ck_assert_uint_eq(reach(INVOCATION_EXECUTION, INVOCATION_REFUSED), 1U << INVOCATION_ENDED);
}
END_TEST

/* A detached call has been sent before it is one. */
START_TEST(a_detached_call_is_never_offered_nor_checked)
{
    const unsigned before = 1U << INVOCATION_OFFERED | 1U << INVOCATION_CHECKING |
                            1U << INVOCATION_REFUSED | 1U << INVOCATION_POLLING;
    ck_assert_uint_eq(reach(INVOCATION_DETACHED, INVOCATION_RUNNING) & before, 0);
    ck_assert_uint_eq(reach(INVOCATION_DETACHED, INVOCATION_STORING), 1U << INVOCATION_ENDED);
}
END_TEST

START_TEST(every_life_ends_and_nothing_follows)
{
    for (unsigned state = 0; state < INVOCATION_ENDED; state++)
        ck_assert_uint_ne(reach(INVOCATION_EXECUTION, state) & 1U << INVOCATION_ENDED, 0);
    const unsigned detached[] = {INVOCATION_RUNNING, INVOCATION_COMMITTING, INVOCATION_STORING};
    for (size_t i = 0; i < sizeof detached / sizeof *detached; i++)
        ck_assert_uint_ne(reach(INVOCATION_DETACHED, detached[i]) & 1U << INVOCATION_ENDED, 0);
    ck_assert_uint_eq(reach(INVOCATION_EXECUTION, INVOCATION_ENDED), 0);
    ck_assert_uint_eq(reach(INVOCATION_DETACHED, INVOCATION_ENDED), 0);
}
END_TEST

START_TEST(each_state_has_a_name_of_its_own)
{
    ck_assert_str_eq(invocation_state_name(INVOCATION_OFFERED), "offered");
    ck_assert_str_eq(invocation_state_name(INVOCATION_ENDED), "ended");
    ck_assert_str_eq(invocation_state_name((enum invocation_state)INVOCATION_STATE_COUNT),
                     "unknown");
    for (unsigned a = 0; a < INVOCATION_STATE_COUNT; a++) {
        for (unsigned b = 0; b < a; b++)
            ck_assert_str_ne(invocation_state_name(a), invocation_state_name(b));
    }
}
END_TEST

START_TEST(a_state_that_there_is_not_has_no_moves)
{
    const enum invocation_state unknown = (enum invocation_state)INVOCATION_STATE_COUNT;
    ck_assert(!invocation_can_move(INVOCATION_EXECUTION, unknown, INVOCATION_ENDED));
    ck_assert(!invocation_can_move(INVOCATION_EXECUTION, INVOCATION_OFFERED, unknown));
}
END_TEST

/* ---- what holds ---- */

static void destroy(struct invocation *invocation)
{
}

static const struct invocation_class execution_class = {.kind = INVOCATION_EXECUTION,
                                                        .destroy = destroy};
static const struct invocation_class detached_class = {.kind = INVOCATION_DETACHED,
                                                       .destroy = destroy};
static const struct config_source source;
static struct gateway_worker worker; /* without a loop: no timer is started */
static struct invocation invocation;
/* Never looked into: it is there, or not. */
static struct exchange *const some_exchange = (struct exchange *)&source;
static struct snapshot *const some_snapshot = (struct snapshot *)&source;

static void begin_detached(void)
{
    memset(&invocation, 0, sizeof invocation);
    invocation_init(&invocation, &detached_class, INVOCATION_RUNNING, &worker);
    invocation.source = &source;
    invocation.exchange = some_exchange;
}

static void set_promoted(void)
{
    struct task *task = task_create_promoted();
    invocation_set_task(&invocation, task);
    task_unref(task);
}

static void begin(enum task_state state)
{
    memset(&invocation, 0, sizeof invocation);
    invocation_init(&invocation, &execution_class, INVOCATION_OFFERED, &worker);
    invocation.source = &source;
    invocation.snapshot = some_snapshot;
    struct task *task = task_create(state);
    invocation_set_task(&invocation, task);
    task_unref(task);
}

static void end(void)
{
    invocation.snapshot = NULL;
    invocation.exchange = NULL;
    invocation_unref(&invocation);
}

static void expect_broken(enum invocation_state state, const char *rule)
{
    struct error error = {""};
    ck_assert(!invocation_check(&invocation, state, &error));
    ck_assert_ptr_nonnull(strstr(error.message, rule));
    ck_assert_ptr_nonnull(strstr(error.message, invocation_state_name(state)));
}

static void expect_holds(enum invocation_state state)
{
    struct error error = {""};
    ck_assert_msg(invocation_check(&invocation, state, &error), "%s", error.message);
}

START_TEST(only_what_was_never_sent_is_checked_and_committed)
{
    const enum invocation_state before[] = {INVOCATION_OFFERED, INVOCATION_CHECKING,
                                            INVOCATION_COMMITTING, INVOCATION_REFUSED};
    begin(TASK_APPROVED);
    invocation.outcome.change = (struct task_change){.to = TASK_FAILED, .unless_begun = true};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        expect_holds(before[i]);
        invocation.exchange = some_exchange;
        expect_broken(before[i], "nothing of it has been sent");
        invocation.exchange = NULL;
        buffer_append_text(&invocation.request_id, "\"tg:1\"");
        expect_broken(before[i], "nothing of it has been sent");
        buffer_clear(&invocation.request_id);
    }
    end();
}
END_TEST

START_TEST(only_an_approved_task_is_checked_and_committed)
{
    begin(TASK_EXECUTING);
    expect_broken(INVOCATION_CHECKING, "approved");
    expect_broken(INVOCATION_COMMITTING, "approved");
    end();
    begin(TASK_PENDING);
    expect_broken(INVOCATION_CHECKING, "approved");
    end();
}
END_TEST

START_TEST(a_claim_is_of_a_task_that_waits_for_a_decision)
{
    begin(TASK_APPROVED);
    expect_broken(INVOCATION_CLAIMING, "waits for a decision");
    end();
    begin(TASK_PENDING);
    expect_holds(INVOCATION_CLAIMING);
    ck_assert(invocation_move(&invocation, INVOCATION_CLAIMING));
    ck_assert(invocation_is_under_way(&invocation) && !invocation_has_begun(&invocation));
    expect_broken(INVOCATION_RUNNING, "executing");
    end();
}
END_TEST

START_TEST(nothing_runs_before_the_store_has_it_as_executing)
{
    begin(TASK_APPROVED);
    expect_broken(INVOCATION_RUNNING, "executing");
    end();
    begin(TASK_EXECUTING);
    expect_holds(INVOCATION_RUNNING);
    invocation.source = NULL;
    expect_broken(INVOCATION_RUNNING, "executing");
    end();
}
END_TEST

START_TEST(a_task_of_the_server_is_followed_once_the_call_was_sent)
{
    begin(TASK_EXECUTING);
    expect_broken(INVOCATION_POLLING, "sent");
    buffer_append_text(&invocation.request_id, "\"tg:1\"");
    expect_broken(INVOCATION_POLLING, "task");
    invocation.server_task = memory_copy_text("theirs");
    expect_holds(INVOCATION_POLLING);
    end();
}
END_TEST

START_TEST(a_stored_outcome_is_known)
{
    begin(TASK_EXECUTING);
    expect_broken(INVOCATION_STORING, "outcome");
    invocation.outcome.change.to = TASK_FAILED;
    expect_holds(INVOCATION_STORING);
    expect_broken(INVOCATION_REFUSED, "yields");
    invocation.exchange = some_exchange;
    expect_broken(INVOCATION_STORING, "under way");
    expect_broken(INVOCATION_ENDED, "under way");
    end();
}
END_TEST

START_TEST(a_detached_call_is_committed_with_a_promoted_task_and_runs_at_the_server)
{
    begin_detached();
    expect_broken(INVOCATION_COMMITTING, "promoted");
    expect_holds(INVOCATION_RUNNING); /* with no task, while its client waits */
    set_promoted();
    expect_holds(INVOCATION_COMMITTING);
    invocation.exchange = NULL;
    expect_broken(INVOCATION_RUNNING, "the server works");
    expect_broken(INVOCATION_STORING, "outcome");
    end();
}
END_TEST

START_TEST(an_answer_may_come_before_the_task_of_a_detached_call_is_stored)
{
    begin_detached();
    set_promoted();
    ck_assert(invocation_move(&invocation, INVOCATION_COMMITTING));
    ck_assert(invocation_is_under_way(&invocation));
    invocation.exchange = NULL;
    invocation.outcome.change.to = TASK_COMPLETED;
    ck_assert(invocation_move(&invocation, INVOCATION_STORING));
    ck_assert(invocation_move(&invocation, INVOCATION_ENDED));
    end();
}
END_TEST

START_TEST(a_detached_call_whose_task_is_not_taken_stays_what_it_was)
{
    begin_detached();
    set_promoted();
    ck_assert_str_eq(invocation.id, invocation.task->id);
    ck_assert(invocation_move(&invocation, INVOCATION_COMMITTING));
    invocation_set_task(&invocation, NULL);
    ck_assert_str_eq(invocation.id, "");
    ck_assert(invocation_move(&invocation, INVOCATION_RUNNING));
    set_promoted(); /* the next try */
    ck_assert(invocation_move(&invocation, INVOCATION_COMMITTING));
    end();
}
END_TEST

START_TEST(a_whole_life_is_told_state_by_state)
{
    begin(TASK_APPROVED);
    ck_assert(!invocation_is_under_way(&invocation) && !invocation_has_begun(&invocation));
    ck_assert(invocation_move(&invocation, INVOCATION_CHECKING));
    ck_assert(invocation_move(&invocation, INVOCATION_COMMITTING));
    ck_assert(invocation_is_under_way(&invocation) && !invocation_has_begun(&invocation));
    invocation.task->state = TASK_EXECUTING;
    ck_assert(invocation_move(&invocation, INVOCATION_RUNNING));
    ck_assert_int_eq(invocation_where(&invocation), INVOCATION_RUNNING);
    ck_assert(invocation_is_under_way(&invocation) && invocation_has_begun(&invocation));
    invocation.outcome.change.to = TASK_COMPLETED;
    ck_assert(invocation_move(&invocation, INVOCATION_STORING));
    ck_assert(invocation_move(&invocation, INVOCATION_ENDED));
    ck_assert(!invocation_is_under_way(&invocation) && !invocation_has_begun(&invocation));
    end();
}
END_TEST

START_TEST(a_notice_of_a_cancel_names_the_servers_request)
{
    struct buffer body;
    begin(TASK_EXECUTING);
    buffer_init(&body);
    buffer_append_text(&invocation.request_id, "\"tg:1\"");
    invocation_write_cancelled(&invocation, "expired", &body);
    ck_assert(
        str_equal(buffer_str(&body),
                  STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                      "\"requestId\":\"tg:1\",\"reason\":\"expired\"}}")));
    buffer_finish(&body);
    end();
}
END_TEST

/* ---- forbidden moves: a debug build aborts, any other refuses them ---- */

START_TEST(a_move_that_is_not_in_the_table_is_not_made)
{
    begin(TASK_EXECUTING);
    invocation.state = INVOCATION_RUNNING;
    ck_assert(!invocation_move(&invocation, INVOCATION_CHECKING));
    ck_assert_int_eq(invocation_where(&invocation), INVOCATION_RUNNING);
    end();
}
END_TEST

START_TEST(a_move_to_where_the_rules_do_not_hold_is_not_made)
{
    begin(TASK_APPROVED);
    invocation.state = INVOCATION_COMMITTING;
    ck_assert(!invocation_move(&invocation, INVOCATION_RUNNING));
    ck_assert_int_eq(invocation_where(&invocation), INVOCATION_COMMITTING);
    end();
}
END_TEST

#ifdef TASKGATE_DEBUG
#define ADD_FORBIDDEN(tests, test) tcase_add_test_raise_signal(tests, test, SIGABRT)
#else
#define ADD_FORBIDDEN(tests, test) tcase_add_test(tests, test)
#endif

TCase *invocation_tests(void)
{
    TCase *tests = tcase_create("invocation");
    tcase_add_test(tests, every_pair_of_states_is_as_listed);
    tcase_add_test(tests, no_move_leads_from_sent_to_unsent);
    tcase_add_test(tests, a_detached_call_is_never_offered_nor_checked);
    tcase_add_test(tests, every_life_ends_and_nothing_follows);
    tcase_add_test(tests, each_state_has_a_name_of_its_own);
    tcase_add_test(tests, a_state_that_there_is_not_has_no_moves);
    tcase_add_test(tests, only_what_was_never_sent_is_checked_and_committed);
    tcase_add_test(tests, only_an_approved_task_is_checked_and_committed);
    tcase_add_test(tests, a_claim_is_of_a_task_that_waits_for_a_decision);
    tcase_add_test(tests, nothing_runs_before_the_store_has_it_as_executing);
    tcase_add_test(tests, a_task_of_the_server_is_followed_once_the_call_was_sent);
    tcase_add_test(tests, a_stored_outcome_is_known);
    tcase_add_test(tests, a_detached_call_is_committed_with_a_promoted_task_and_runs_at_the_server);
    tcase_add_test(tests, an_answer_may_come_before_the_task_of_a_detached_call_is_stored);
    tcase_add_test(tests, a_detached_call_whose_task_is_not_taken_stays_what_it_was);
    tcase_add_test(tests, a_whole_life_is_told_state_by_state);
    tcase_add_test(tests, a_notice_of_a_cancel_names_the_servers_request);
    ADD_FORBIDDEN(tests, a_move_that_is_not_in_the_table_is_not_made);
    ADD_FORBIDDEN(tests, a_move_to_where_the_rules_do_not_hold_is_not_made);
    return tests;
}
