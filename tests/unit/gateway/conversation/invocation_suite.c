/* The life of a call that the gateway runs: the table of its moves, and what holds in each state.
 */
#include <signal.h>
#include <string.h>

#include "conversation/invocation.h"
#include "suites.h"
#include "taskgate/core/memory.h"

/* Written down once more, so that a new row of the table is a decision here, too. */
static const struct {
    enum conversation_state from, to;
    const char *name;
    unsigned of;
} allowed[] = {
    {CONVERSATION_OFFERED, CONVERSATION_CHECKING, "check", CONVERSATION_APPROVED},
    {CONVERSATION_OFFERED, CONVERSATION_CLAIMING, "claim", CONVERSATION_APPROVED},
    {CONVERSATION_OFFERED, CONVERSATION_ENDED, "drop", CONVERSATION_APPROVED},
    {CONVERSATION_CHECKING, CONVERSATION_OFFERED, "wait", CONVERSATION_APPROVED},
    {CONVERSATION_CHECKING, CONVERSATION_COMMITTING, "commit", CONVERSATION_APPROVED},
    {CONVERSATION_CHECKING, CONVERSATION_REFUSED, "refuse", CONVERSATION_APPROVED},
    {CONVERSATION_CHECKING, CONVERSATION_ENDED, "drop", CONVERSATION_APPROVED},
    {CONVERSATION_CLAIMING, CONVERSATION_OFFERED, "wait", CONVERSATION_APPROVED},
    {CONVERSATION_CLAIMING, CONVERSATION_OPENING, "open", CONVERSATION_APPROVED},
    {CONVERSATION_CLAIMING, CONVERSATION_ENDED, "drop", CONVERSATION_APPROVED},
    {CONVERSATION_COMMITTING, CONVERSATION_OFFERED, "wait", CONVERSATION_APPROVED},
    {CONVERSATION_COMMITTING, CONVERSATION_OPENING, "open", CONVERSATION_APPROVED},
    {CONVERSATION_COMMITTING, CONVERSATION_ENDED, "drop", CONVERSATION_APPROVED},
    {CONVERSATION_OPENING, CONVERSATION_RUNNING, "run", CONVERSATION_APPROVED},
    {CONVERSATION_OPENING, CONVERSATION_STORING, "fail", CONVERSATION_APPROVED},
    {CONVERSATION_OPENING, CONVERSATION_ENDED, "drop", CONVERSATION_APPROVED},
    {CONVERSATION_RUNNING, CONVERSATION_DETACHING, "detach", CONVERSATION_DETACHED},
    {CONVERSATION_RUNNING, CONVERSATION_FOLLOWING, "follow", CONVERSATION_APPROVED},
    {CONVERSATION_RUNNING, CONVERSATION_STORING, "answer",
     CONVERSATION_APPROVED | CONVERSATION_DETACHED},
    {CONVERSATION_RUNNING, CONVERSATION_ENDED, "drop",
     CONVERSATION_APPROVED | CONVERSATION_DETACHED},
    {CONVERSATION_DETACHING, CONVERSATION_RUNNING, "run", CONVERSATION_DETACHED},
    {CONVERSATION_DETACHING, CONVERSATION_STORING, "answer", CONVERSATION_DETACHED},
    {CONVERSATION_DETACHING, CONVERSATION_ENDED, "drop", CONVERSATION_DETACHED},
    {CONVERSATION_FOLLOWING, CONVERSATION_STORING, "answer", CONVERSATION_APPROVED},
    {CONVERSATION_FOLLOWING, CONVERSATION_ENDED, "drop", CONVERSATION_APPROVED},
    {CONVERSATION_STORING, CONVERSATION_ENDED, "store",
     CONVERSATION_APPROVED | CONVERSATION_DETACHED},
    {CONVERSATION_REFUSED, CONVERSATION_ENDED, "store", CONVERSATION_APPROVED},
};

static const char *allowed_name(unsigned kind, unsigned from, unsigned to)
{
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (allowed[i].from == from && allowed[i].to == to && (allowed[i].of & kind))
            return allowed[i].name;
    }
    return NULL;
}

static void check_pairs(enum conversation_kind kind)
{
    for (unsigned from = 0; from < CONVERSATION_STATE_COUNT; from++) {
        for (unsigned to = 0; to < CONVERSATION_STATE_COUNT; to++) {
            const char *name = conversation_move_name(kind, from, to);
            const char *wanted = allowed_name(kind, from, to);
            ck_assert_msg(!name == !wanted && (!name || strcmp(name, wanted) == 0),
                          "from %s to %s of kind %d: %s", conversation_state_name(from),
                          conversation_state_name(to), kind, name ? name : "forbidden");
        }
    }
}

START_TEST(every_pair_of_states_is_as_listed)
{
    check_pairs(CONVERSATION_APPROVED);
    check_pairs(CONVERSATION_DETACHED);
}
END_TEST

/* All states that moves lead to, as a set of bits. */
static unsigned reach(enum conversation_kind kind, enum conversation_state from)
{
    unsigned reached = 0, before;
    for (unsigned to = 0; to < CONVERSATION_STATE_COUNT; to++)
        reached |= conversation_move_name(kind, from, to) ? 1U << to : 0;
    do {
        before = reached;
        for (unsigned via = 0; via < CONVERSATION_STATE_COUNT; via++) {
            for (unsigned to = 0; to < CONVERSATION_STATE_COUNT; to++)
                reached |=
                    (reached & 1U << via) && conversation_move_name(kind, via, to) ? 1U << to : 0;
        }
    } while (reached != before);
    return reached;
}

START_TEST(no_move_leads_from_sent_to_unsent)
{
    const unsigned unsent = 1U << CONVERSATION_OFFERED | 1U << CONVERSATION_CHECKING |
                            1U << CONVERSATION_CLAIMING | 1U << CONVERSATION_COMMITTING |
                            1U << CONVERSATION_OPENING | 1U << CONVERSATION_REFUSED;
    const enum conversation_state sent[] = {CONVERSATION_RUNNING, CONVERSATION_FOLLOWING,
                                            CONVERSATION_STORING, CONVERSATION_ENDED};
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
        unsigned reached = reach(CONVERSATION_APPROVED, sent[i]);
        ck_assert_uint_eq(reached & (unsent | 1U << CONVERSATION_RUNNING), 0);
    }
    ck_assert_uint_eq(reach(CONVERSATION_APPROVED, CONVERSATION_REFUSED), 1U << CONVERSATION_ENDED);
}
END_TEST

/* A detached call has been sent before it is one. */
START_TEST(a_detached_call_is_never_offered_nor_checked)
{
    const unsigned before = 1U << CONVERSATION_OFFERED | 1U << CONVERSATION_CHECKING |
                            1U << CONVERSATION_OPENING | 1U << CONVERSATION_REFUSED |
                            1U << CONVERSATION_FOLLOWING;
    ck_assert_uint_eq(reach(CONVERSATION_DETACHED, CONVERSATION_RUNNING) & before, 0);
    ck_assert_uint_eq(reach(CONVERSATION_DETACHED, CONVERSATION_STORING), 1U << CONVERSATION_ENDED);
}
END_TEST

START_TEST(every_life_ends_and_nothing_follows)
{
    for (unsigned state = 0; state < CONVERSATION_ENDED; state++)
        if (state != CONVERSATION_DETACHING) /* no approved call is there */
            ck_assert_uint_ne(reach(CONVERSATION_APPROVED, state) & 1U << CONVERSATION_ENDED, 0);
    const unsigned detached[] = {CONVERSATION_RUNNING, CONVERSATION_DETACHING,
                                 CONVERSATION_STORING};
    for (size_t i = 0; i < sizeof detached / sizeof *detached; i++)
        ck_assert_uint_ne(reach(CONVERSATION_DETACHED, detached[i]) & 1U << CONVERSATION_ENDED, 0);
    ck_assert_uint_eq(reach(CONVERSATION_APPROVED, CONVERSATION_ENDED), 0);
    ck_assert_uint_eq(reach(CONVERSATION_DETACHED, CONVERSATION_ENDED), 0);
}
END_TEST

START_TEST(each_state_has_a_name_of_its_own)
{
    ck_assert_str_eq(conversation_state_name(CONVERSATION_OFFERED), "offered");
    ck_assert_str_eq(conversation_state_name(CONVERSATION_ENDED), "ended");
    ck_assert_str_eq(conversation_state_name((enum conversation_state)CONVERSATION_STATE_COUNT),
                     "unknown");
    for (unsigned a = 0; a < CONVERSATION_STATE_COUNT; a++) {
        for (unsigned b = 0; b < a; b++)
            ck_assert_str_ne(conversation_state_name(a), conversation_state_name(b));
    }
}
END_TEST

START_TEST(a_state_that_there_is_not_has_no_moves)
{
    const enum conversation_state unknown = (enum conversation_state)CONVERSATION_STATE_COUNT;
    ck_assert(!conversation_move_name(CONVERSATION_APPROVED, unknown, CONVERSATION_ENDED));
    ck_assert(!conversation_move_name(CONVERSATION_APPROVED, CONVERSATION_OFFERED, unknown));
}
END_TEST

/* ---- what holds ---- */

static void destroy(struct invocation *invocation)
{
}

static const struct invocation_class execution_class = {.kind = CONVERSATION_APPROVED,
                                                        .destroy = destroy};
static const struct invocation_class detached_class = {.kind = CONVERSATION_DETACHED,
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
    invocation_init(&invocation, &detached_class, CONVERSATION_RUNNING, &worker);
    invocation.source = &source;
    invocation.up.state = LINK_SENT;
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
    invocation_init(&invocation, &execution_class, CONVERSATION_OFFERED, &worker);
    invocation.source = &source;
    invocation.snapshot = some_snapshot;
    struct task *task = task_create(state);
    invocation_set_task(&invocation, task);
    task_unref(task);
}

static void end(void)
{
    invocation.snapshot = NULL;
    invocation.up.exchange = NULL;
    invocation_unref(&invocation);
}

static void expect_broken(enum conversation_state state, const char *rule)
{
    struct error error = {""};
    ck_assert(!conversation_check(&invocation, state, &error));
    ck_assert_ptr_nonnull(strstr(error.message, rule));
    ck_assert_ptr_nonnull(strstr(error.message, conversation_state_name(state)));
}

static void expect_holds(enum conversation_state state)
{
    struct error error = {""};
    ck_assert_msg(conversation_check(&invocation, state, &error), "%s", error.message);
}

START_TEST(only_what_was_never_sent_is_checked_and_committed)
{
    const enum conversation_state before[] = {CONVERSATION_OFFERED, CONVERSATION_CHECKING,
                                              CONVERSATION_COMMITTING, CONVERSATION_REFUSED};
    begin(TASK_APPROVED);
    invocation.outcome.change = (struct task_change){.to = TASK_FAILED, .unless_begun = true};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        expect_holds(before[i]);
        invocation.up.exchange = some_exchange;
        expect_broken(before[i], "nothing of it has been sent");
        invocation.up.exchange = NULL;
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
    expect_broken(CONVERSATION_CHECKING, "approved");
    expect_broken(CONVERSATION_COMMITTING, "approved");
    end();
    begin(TASK_PENDING);
    expect_broken(CONVERSATION_CHECKING, "approved");
    end();
}
END_TEST

START_TEST(a_claim_is_of_a_task_that_waits_for_a_decision)
{
    begin(TASK_APPROVED);
    expect_broken(CONVERSATION_CLAIMING, "waits for a decision");
    end();
    begin(TASK_PENDING);
    expect_holds(CONVERSATION_CLAIMING);
    ck_assert(conversation_move(&invocation, CONVERSATION_CLAIMING));
    ck_assert(conversation_is_under_way(&invocation) && !conversation_has_begun(&invocation));
    expect_broken(CONVERSATION_RUNNING, "executing");
    end();
}
END_TEST

START_TEST(nothing_runs_before_the_store_has_it_as_executing)
{
    begin(TASK_APPROVED);
    expect_broken(CONVERSATION_OPENING, "executing");
    expect_broken(CONVERSATION_RUNNING, "executing");
    end();
    begin(TASK_EXECUTING);
    invocation.source = NULL; /* taken out of the configuration meanwhile */
    expect_holds(CONVERSATION_OPENING);
    expect_broken(CONVERSATION_RUNNING, "its server");
    invocation.source = &source;
    expect_broken(CONVERSATION_RUNNING, "written");
    buffer_append_text(&invocation.request_id, "\"tg:1\"");
    expect_holds(CONVERSATION_RUNNING);
    expect_broken(CONVERSATION_OPENING, "nothing of it has been sent");
    end();
}
END_TEST

START_TEST(a_task_of_the_server_is_followed_once_the_call_was_sent)
{
    begin(TASK_EXECUTING);
    expect_broken(CONVERSATION_FOLLOWING, "sent");
    buffer_append_text(&invocation.request_id, "\"tg:1\"");
    expect_broken(CONVERSATION_FOLLOWING, "task");
    invocation.server_task = memory_copy_text("theirs");
    expect_holds(CONVERSATION_FOLLOWING);
    end();
}
END_TEST

START_TEST(a_stored_outcome_is_known)
{
    begin(TASK_EXECUTING);
    expect_broken(CONVERSATION_STORING, "outcome");
    invocation.outcome.change.to = TASK_FAILED;
    expect_holds(CONVERSATION_STORING);
    expect_broken(CONVERSATION_REFUSED, "yields");
    invocation.up.exchange = some_exchange;
    expect_broken(CONVERSATION_STORING, "under way");
    expect_broken(CONVERSATION_ENDED, "under way");
    end();
}
END_TEST

START_TEST(a_detached_call_is_committed_with_a_promoted_task_and_runs_at_the_server)
{
    begin_detached();
    expect_broken(CONVERSATION_DETACHING, "promoted");
    expect_holds(CONVERSATION_RUNNING); /* with no task, while its client waits */
    set_promoted();
    expect_holds(CONVERSATION_DETACHING);
    invocation.up.state = LINK_ENDED;
    expect_broken(CONVERSATION_RUNNING, "the server works");
    expect_broken(CONVERSATION_STORING, "outcome");
    end();
}
END_TEST

START_TEST(an_answer_may_come_before_the_task_of_a_detached_call_is_stored)
{
    begin_detached();
    set_promoted();
    ck_assert(conversation_move(&invocation, CONVERSATION_DETACHING));
    ck_assert(conversation_is_under_way(&invocation));
    invocation.up.state = LINK_ENDED;
    invocation.outcome.change.to = TASK_COMPLETED;
    ck_assert(conversation_move(&invocation, CONVERSATION_STORING));
    ck_assert(conversation_move(&invocation, CONVERSATION_ENDED));
    end();
}
END_TEST

START_TEST(a_detached_call_whose_task_is_not_taken_stays_what_it_was)
{
    begin_detached();
    set_promoted();
    ck_assert_str_eq(invocation.id, invocation.task->id);
    ck_assert(conversation_move(&invocation, CONVERSATION_DETACHING));
    invocation_set_task(&invocation, NULL);
    ck_assert_str_eq(invocation.id, "");
    ck_assert(conversation_move(&invocation, CONVERSATION_RUNNING));
    set_promoted(); /* the next try */
    ck_assert(conversation_move(&invocation, CONVERSATION_DETACHING));
    end();
}
END_TEST

START_TEST(a_whole_life_is_told_state_by_state)
{
    begin(TASK_APPROVED);
    ck_assert(!conversation_is_under_way(&invocation) && !conversation_has_begun(&invocation));
    ck_assert(conversation_move(&invocation, CONVERSATION_CHECKING));
    ck_assert(conversation_move(&invocation, CONVERSATION_COMMITTING));
    ck_assert(conversation_is_under_way(&invocation) && !conversation_has_begun(&invocation));
    invocation.task->state = TASK_EXECUTING;
    ck_assert(conversation_move(&invocation, CONVERSATION_OPENING));
    ck_assert(conversation_is_under_way(&invocation) && conversation_has_begun(&invocation));
    buffer_append_text(&invocation.request_id, "\"tg:1\"");
    ck_assert(conversation_move(&invocation, CONVERSATION_RUNNING));
    ck_assert_int_eq(conversation_where(&invocation), CONVERSATION_RUNNING);
    ck_assert(conversation_is_under_way(&invocation) && conversation_has_begun(&invocation));
    invocation.outcome.change.to = TASK_COMPLETED;
    ck_assert(conversation_move(&invocation, CONVERSATION_STORING));
    ck_assert(conversation_move(&invocation, CONVERSATION_ENDED));
    ck_assert(!conversation_is_under_way(&invocation) && !conversation_has_begun(&invocation));
    end();
}
END_TEST

/* ---- forbidden moves: a debug build aborts, any other refuses them ---- */

START_TEST(a_move_that_is_not_in_the_table_is_not_made)
{
    begin(TASK_EXECUTING);
    invocation.state = CONVERSATION_RUNNING;
    ck_assert(!conversation_move(&invocation, CONVERSATION_CHECKING));
    ck_assert_int_eq(conversation_where(&invocation), CONVERSATION_RUNNING);
    end();
}
END_TEST

START_TEST(a_move_to_where_the_rules_do_not_hold_is_not_made)
{
    begin(TASK_APPROVED);
    invocation.state = CONVERSATION_COMMITTING;
    ck_assert(!conversation_move(&invocation, CONVERSATION_OPENING));
    ck_assert_int_eq(conversation_where(&invocation), CONVERSATION_COMMITTING);
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
    ADD_FORBIDDEN(tests, a_move_that_is_not_in_the_table_is_not_made);
    ADD_FORBIDDEN(tests, a_move_to_where_the_rules_do_not_hold_is_not_made);
    return tests;
}
