/* The fate of a relayed request that has got no whole response. */
#include "replicas/carry.h"

#include "suites.h"

static struct carry_facts facts_of(unsigned bits)
{
    return (struct carry_facts){
        .was_written = (bits & 1) != 0,
        .is_unread = (bits & 2) != 0,
        .is_repeatable = (bits & 4) != 0,
        .has_begun = (bits & 8) != 0,
        .may_answer = (bits & 16) != 0,
    };
}

static const struct {
    struct carry_facts facts;
    bool was_taken;
    enum carry_fate fate;
} cases[] = {
    /* no byte of it has gone out: the replica is not reached, or stays silent before that */
    {{.may_answer = true}, false, CARRY_HERE},
    {{.may_answer = true, .is_repeatable = true}, false, CARRY_HERE},
    {{.may_answer = false}, false, CARRY_AGAIN},
    /* it is refused unread */
    {{.was_written = true, .is_unread = true, .may_answer = true}, false, CARRY_HERE},
    {{.was_written = true, .is_unread = true}, false, CARRY_AGAIN},
    /* it may have run */
    {{.was_written = true, .may_answer = true}, true, CARRY_UNKNOWN},
    {{.was_written = true, .has_begun = true, .may_answer = true}, true, CARRY_UNKNOWN},
    {{.was_written = true}, true, CARRY_UNKNOWN},
    /* that cannot matter */
    {{.was_written = true, .is_repeatable = true, .may_answer = true}, true, CARRY_HERE},
    {{.was_written = true, .is_repeatable = true}, true, CARRY_AGAIN},
    {{.was_written = true, .is_repeatable = true, .has_begun = true, .may_answer = true},
     true,
     CARRY_AGAIN},
};

START_TEST(a_lost_request_has_the_fate_of_its_facts)
{
    ck_assert_int_eq(carry_was_taken(&cases[_i].facts), cases[_i].was_taken);
    ck_assert_int_eq(carry_fate_of(&cases[_i].facts), cases[_i].fate);
}
END_TEST

START_TEST(the_outcome_is_unknown_only_if_bytes_went_out_and_no_unread_came_back)
{
    for (unsigned bits = 0; bits < 32; bits++) {
        const struct carry_facts facts = facts_of(bits);
        enum carry_fate fate = carry_fate_of(&facts);
        bool may_have_run = facts.was_written && !facts.is_unread && !facts.is_repeatable;
        ck_assert_msg((fate == CARRY_UNKNOWN) == may_have_run, "facts %u", bits);
        if (fate == CARRY_HERE)
            ck_assert_msg(facts.may_answer && !facts.has_begun, "facts %u", bits);
    }
}
END_TEST

TCase *carry_tests(void)
{
    TCase *tests = tcase_create("carry");
    tcase_add_loop_test(tests, a_lost_request_has_the_fate_of_its_facts, 0,
                        sizeof cases / sizeof *cases);
    tcase_add_test(tests, the_outcome_is_unknown_only_if_bytes_went_out_and_no_unread_came_back);
    return tests;
}
