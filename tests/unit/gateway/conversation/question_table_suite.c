/* The table of questions: found by receiver, closed once, bounded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversation/question_table.h"
#include "suites.h"
#include "taskgate/core/memory.h"

#define KEY STR("up/session:s")

/* Of the session "s", with an id of upstream's own. */
static struct question *make(const char *key, const char *upstream_id, const char *message)
{
    struct question *question = memory_alloc(sizeof *question);
    list_init(&question->node);
    random_ulid(question->id);
    snprintf(question->key, sizeof question->key, "%s", key);
    snprintf(question->session, sizeof question->session, "s");
    question->source = memory_copy_text("up");
    question->task = memory_copy_text("");
    question->upstream_id = memory_copy_text(upstream_id);
    question->message = memory_copy_text(message);
    question->asked_ms = 1;
    return question;
}

static void drop(struct question_table *table, struct question *question)
{
    if (table)
        question_table_remove(table, question);
    free(question->source);
    free(question->task);
    free(question->upstream_id);
    free(question->message);
    free(question);
}

static struct question *add(struct question_table *table, const char *key, const char *upstream_id)
{
    struct question *question = make(key, upstream_id, "{}");
    ck_assert_int_eq(question_table_add(table, question), QUESTION_ADDED);
    return question;
}

static size_t count_of_walk(struct question_walk walk)
{
    size_t found = 0;
    while (question_walk_next(&walk))
        found++;
    return found;
}

static size_t count_of(struct question_table *table, struct str key,
                       const struct question_match *match)
{
    return count_of_walk(question_walk(table, key, match));
}

START_TEST(questions_are_found_by_whom_they_are_for)
{
    struct question_table *table = question_table_create();
    struct question *one = add(table, "up/session:s", "1");
    struct question *two = add(table, "up/session:s", "\"1\"");
    struct question *other = add(table, "up/session:t", "1");
    ck_assert_uint_eq(count_of(table, KEY, NULL), 2);
    ck_assert_uint_eq(count_of(table, STR("up/session:t"), NULL), 1);
    ck_assert_uint_eq(count_of(table, STR("up/session:u"), NULL), 0);
    const struct question_match by_id = {.upstream_id = STR("1"), .session = STR("s")};
    ck_assert_uint_eq(count_of(table, KEY, &by_id), 1);
    const struct question_match wrong_session = {.upstream_id = STR("1"), .session = STR("x")};
    ck_assert_uint_eq(count_of(table, KEY, &wrong_session), 0);
    const struct question_match ours = {.id = str_from(two->id)};
    ck_assert_uint_eq(count_of(table, KEY, &ours), 1);
    ck_assert_uint_eq(count_of(table, STR("up/session:t"), &ours), 0);
    ck_assert_uint_eq(count_of_walk(question_walk_id(table, str_from(other->id))), 1);
    ck_assert_uint_eq(count_of_walk(question_walk_id(table, STR("01"))), 0);
    ck_assert_uint_eq(count_of_walk(question_walk_all(table)), 3);
    drop(table, one);
    drop(table, two);
    drop(table, other);
    ck_assert_uint_eq(question_table_count(table), 0);
    question_table_destroy(table);
}
END_TEST

START_TEST(a_form_that_is_a_url_has_an_id_of_its_own)
{
    struct question_table *table = question_table_create();
    struct question *visit =
        make("up/session:s", "1",
             "{\"params\":{\"mode\":\"url\",\"elicitationId\":\"v\",\"url\":\"https://a\"}}");
    struct question *form =
        make("up/session:s", "2", "{\"params\":{\"mode\":\"form\",\"elicitationId\":\"v\"}}");
    question_table_add(table, visit);
    question_table_add(table, form);
    const struct question_match by_visit = {.id = STR("v")};
    struct question_closing closing = {.state = QUESTION_ANSWERED_IN_TASK, .now_ms = 2};
    ck_assert_ptr_eq(question_table_close(table, KEY, &by_visit, &closing), visit);
    ck_assert_ptr_null(question_table_close(table, KEY, &by_visit, &closing));
    drop(table, visit);
    drop(table, form);
    question_table_destroy(table);
}
END_TEST

START_TEST(one_alone_closes_a_question_and_the_others_are_told_how)
{
    struct question_table *table = question_table_create();
    struct question *question = add(table, "up/session:s", "1");
    const struct question_match match = {.id = str_from(question->id)};
    const struct question_match unknown = {.id = STR("other")};
    struct question_closing first = {.state = QUESTION_ANSWERED_BY_TOOL, .now_ms = 5};
    char digest[DIGEST_HEX_BYTES];
    digest_sha256_hex(STR("answer"), digest);
    first.answer = digest;
    ck_assert_ptr_null(question_table_close(table, KEY, &unknown, &first));
    ck_assert_int_eq(first.was, QUESTION_OPEN);
    ck_assert_ptr_eq(question_table_close(table, KEY, &match, &first), question);
    ck_assert_int_eq(question->closed_ms, 5);
    struct question_closing second = {.state = QUESTION_EXPIRED, .now_ms = 6};
    ck_assert_ptr_null(question_table_close(table, KEY, &match, &second));
    ck_assert_int_eq(second.was, QUESTION_ANSWERED_BY_TOOL);
    ck_assert_str_eq(second.was_answer, digest);
    ck_assert_int_eq(question->state, QUESTION_ANSWERED_BY_TOOL);
    drop(table, question);
    question_table_destroy(table);
}
END_TEST

START_TEST(a_question_opens_again_unless_what_asked_has_ended)
{
    struct question_table *table = question_table_create();
    struct question *question = add(table, "up/session:s", "1");
    const struct question_match match = {.id = str_from(question->id)};
    struct question_closing closing = {.state = QUESTION_ANSWERED_BY_TOOL, .now_ms = 5};
    question_table_end(table, KEY, &match); /* of an open one it says nothing */
    ck_assert_ptr_eq(question_table_close(table, KEY, &match, &closing), question);
    ck_assert(question_table_reopen(table, question));
    ck_assert_int_eq(question->state, QUESTION_OPEN);
    ck_assert_ptr_eq(question_table_close(table, KEY, &match, &closing), question);
    question_table_end(table, STR("up/session:t"), &match);
    ck_assert(question_table_reopen(table, question));
    ck_assert_ptr_eq(question_table_close(table, KEY, &match, &closing), question);
    question_table_end(table, KEY, &match);
    ck_assert(!question_table_reopen(table, question));
    ck_assert_int_eq(question->state, QUESTION_REJECTED);
    ck_assert_ptr_null(question_table_close(table, KEY, &match, &closing));
    drop(table, question);
    question_table_destroy(table);
}
END_TEST

START_TEST(a_round_is_claimed_once_and_opens_again_as_the_next)
{
    struct question_table *table = question_table_create();
    struct question *round = make("up_1", "", "");
    struct question_closing closing = {.state = QUESTION_ANSWERED_IN_TASK, .now_ms = 1};
    const struct question_match first = {.call = 1}, second = {.call = 2};
    round->kind = QUESTION_ROUND;
    round->call = 1;
    ck_assert_int_eq(question_table_add(table, round), QUESTION_ADDED);
    ck_assert_ptr_null(question_table_close(table, STR("up_1"), &second, &closing));
    ck_assert_ptr_eq(question_table_close(table, STR("up_1"), &first, &closing), round);
    ck_assert_ptr_null(question_table_close(table, STR("up_1"), &first, &closing));
    ck_assert(question_table_reopen(table, round));
    ck_assert_ptr_null(question_table_close(table, STR("up_1"), &first, &closing));
    ck_assert_ptr_eq(question_table_close(table, STR("up_1"), &second, &closing), round);
    drop(table, round);
    question_table_destroy(table);
}
END_TEST

START_TEST(the_same_request_waits_once)
{
    struct question_table *table = question_table_create();
    struct question *question = add(table, "up/session:s", "1");
    struct question *again = make("up/session:s", "1", "{}");
    ck_assert_int_eq(question_table_add(table, again), QUESTION_REPEATED);
    struct question_closing closing = {.state = QUESTION_ANSWERED_BY_TOOL, .now_ms = 1};
    ck_assert_ptr_eq(question_table_close(table, KEY, NULL, &closing), question);
    ck_assert_int_eq(question_table_add(table, again), QUESTION_ADDED);
    drop(table, question);
    drop(table, again);
    question_table_destroy(table);
}
END_TEST

START_TEST(a_client_can_be_asked_only_so_much)
{
    struct question_table *table = question_table_create();
    struct question *all[QUESTIONS_PER_KEY];
    for (size_t i = 0; i < QUESTIONS_PER_KEY; i++) {
        char id[16];
        snprintf(id, sizeof id, "%zu", i);
        all[i] = add(table, "up/session:s", id);
    }
    struct question *more = make("up/session:s", "\"more\"", "{}");
    ck_assert_int_eq(question_table_add(table, more), QUESTION_TOO_MANY);
    struct question *other = add(table, "up/session:t", "1");
    struct question_closing closing = {.state = QUESTION_WITHDRAWN, .now_ms = 1};
    ck_assert_ptr_eq(question_table_close(table, KEY, NULL, &closing), all[0]);
    ck_assert_int_eq(question_table_add(table, more), QUESTION_ADDED);
    for (size_t i = 0; i < QUESTIONS_PER_KEY; i++)
        drop(table, all[i]);
    drop(table, more);
    drop(table, other);
    question_table_destroy(table);
}
END_TEST

START_TEST(the_requests_of_one_call_are_taken_out_together)
{
    struct question_table *table = question_table_create();
    uint64_t call = 7;
    size_t taken = 0;
    struct question *question, *stays = add(table, "up/session:s", "0");
    for (int i = 1; i <= 3; i++) {
        char id[16], key[16];
        snprintf(id, sizeof id, "%d", i);
        snprintf(key, sizeof key, "up/%d", i);
        add(table, key, id)->call = call;
    }
    const struct question_match of_call = {.call = call};
    ck_assert_uint_eq(count_of(table, STR("up/1"), &of_call), 1);
    ck_assert_uint_eq(count_of(table, KEY, &of_call), 0);
    struct question_walk walk = question_walk_all(table);
    while ((question = question_walk_next(&walk))) {
        if (question->call != call)
            continue;
        taken++;
        question_walk_remove(&walk);
        drop(NULL, question);
    }
    ck_assert_uint_eq(taken, 3);
    ck_assert_uint_eq(question_table_count(table), 1);
    drop(table, stays);
    question_table_destroy(table);
}
END_TEST

TCase *question_table_tests(void)
{
    TCase *cases = tcase_create("questions");
    tcase_add_test(cases, questions_are_found_by_whom_they_are_for);
    tcase_add_test(cases, a_form_that_is_a_url_has_an_id_of_its_own);
    tcase_add_test(cases, one_alone_closes_a_question_and_the_others_are_told_how);
    tcase_add_test(cases, a_question_opens_again_unless_what_asked_has_ended);
    tcase_add_test(cases, a_round_is_claimed_once_and_opens_again_as_the_next);
    tcase_add_test(cases, the_same_request_waits_once);
    tcase_add_test(cases, a_client_can_be_asked_only_so_much);
    tcase_add_test(cases, the_requests_of_one_call_are_taken_out_together);
    return cases;
}
