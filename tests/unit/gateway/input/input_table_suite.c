/* The table of questions: found by receiver, closed once, bounded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/input_table.h"
#include "suites.h"
#include "taskgate/core/memory.h"

#define KEY STR("up/session:s")

/* Of the session "s", with an id of upstream's own. */
static struct input_request *make(const char *key, const char *upstream_id, const char *message)
{
    struct input_request *input = memory_alloc(sizeof *input);
    list_init(&input->node);
    random_ulid(input->id);
    snprintf(input->key, sizeof input->key, "%s", key);
    snprintf(input->session, sizeof input->session, "s");
    input->source = memory_copy_text("up");
    input->task = memory_copy_text("");
    input->upstream_id = memory_copy_text(upstream_id);
    input->message = memory_copy_text(message);
    input->asked_ms = 1;
    return input;
}

static void drop(struct input_table *table, struct input_request *input)
{
    if (table)
        input_table_remove(table, input);
    free(input->source);
    free(input->task);
    free(input->upstream_id);
    free(input->message);
    free(input);
}

static struct input_request *add(struct input_table *table, const char *key,
                                 const char *upstream_id)
{
    struct input_request *input = make(key, upstream_id, "{}");
    ck_assert_int_eq(input_table_add(table, input), INPUT_ADDED);
    return input;
}

static void count(void *context, struct input_request *input)
{
    ++*(size_t *)context;
}

static size_t count_of(struct input_table *table, struct str key, const struct input_match *match)
{
    size_t found = 0;
    input_table_visit(table, key, match, count, &found);
    return found;
}

START_TEST(input_requests_are_found_by_whom_they_are_for)
{
    struct input_table *table = input_table_create();
    struct input_request *one = add(table, "up/session:s", "1");
    struct input_request *two = add(table, "up/session:s", "\"1\"");
    struct input_request *other = add(table, "up/session:t", "1");
    size_t found = 0;
    ck_assert_uint_eq(count_of(table, KEY, NULL), 2);
    ck_assert_uint_eq(count_of(table, STR("up/session:t"), NULL), 1);
    ck_assert_uint_eq(count_of(table, STR("up/session:u"), NULL), 0);
    const struct input_match by_id = {.upstream_id = STR("1"), .session = STR("s")};
    ck_assert_uint_eq(count_of(table, KEY, &by_id), 1);
    const struct input_match wrong_session = {.upstream_id = STR("1"), .session = STR("x")};
    ck_assert_uint_eq(count_of(table, KEY, &wrong_session), 0);
    const struct input_match ours = {.id = str_from(two->id)};
    ck_assert_uint_eq(count_of(table, KEY, &ours), 1);
    ck_assert_uint_eq(count_of(table, STR("up/session:t"), &ours), 0);
    input_table_visit_id(table, str_from(other->id), count, &found);
    input_table_visit_id(table, STR("01"), count, &found);
    ck_assert_uint_eq(found, 1);
    drop(table, one);
    drop(table, two);
    drop(table, other);
    ck_assert_uint_eq(input_table_count(table), 0);
    input_table_destroy(table);
}
END_TEST

START_TEST(a_form_that_is_a_url_has_an_id_of_its_own)
{
    struct input_table *table = input_table_create();
    struct input_request *visit =
        make("up/session:s", "1",
             "{\"params\":{\"mode\":\"url\",\"elicitationId\":\"v\",\"url\":\"https://a\"}}");
    struct input_request *form =
        make("up/session:s", "2", "{\"params\":{\"mode\":\"form\",\"elicitationId\":\"v\"}}");
    input_table_add(table, visit);
    input_table_add(table, form);
    const struct input_match by_visit = {.id = STR("v")};
    struct input_closing closing = {.state = INPUT_ANSWERED_IN_TASK, .now_ms = 2};
    ck_assert_ptr_eq(input_table_close(table, KEY, &by_visit, &closing), visit);
    ck_assert_ptr_null(input_table_close(table, KEY, &by_visit, &closing));
    drop(table, visit);
    drop(table, form);
    input_table_destroy(table);
}
END_TEST

START_TEST(one_alone_closes_a_question_and_the_others_are_told_how)
{
    struct input_table *table = input_table_create();
    struct input_request *input = add(table, "up/session:s", "1");
    const struct input_match match = {.id = str_from(input->id)};
    const struct input_match unknown = {.id = STR("other")};
    struct input_closing first = {.state = INPUT_ANSWERED_BY_TOOL, .now_ms = 5};
    char digest[DIGEST_HEX_BYTES];
    digest_sha256_hex(STR("answer"), digest);
    first.answer = digest;
    ck_assert_ptr_null(input_table_close(table, KEY, &unknown, &first));
    ck_assert_int_eq(first.was, INPUT_OPEN);
    ck_assert_ptr_eq(input_table_close(table, KEY, &match, &first), input);
    ck_assert_int_eq(input->closed_ms, 5);
    struct input_closing second = {.state = INPUT_EXPIRED, .now_ms = 6};
    ck_assert_ptr_null(input_table_close(table, KEY, &match, &second));
    ck_assert_int_eq(second.was, INPUT_ANSWERED_BY_TOOL);
    ck_assert_str_eq(second.was_answer, digest);
    ck_assert_int_eq(input->state, INPUT_ANSWERED_BY_TOOL);
    drop(table, input);
    input_table_destroy(table);
}
END_TEST

START_TEST(a_question_opens_again_unless_what_asked_has_ended)
{
    struct input_table *table = input_table_create();
    struct input_request *input = add(table, "up/session:s", "1");
    const struct input_match match = {.id = str_from(input->id)};
    struct input_closing closing = {.state = INPUT_ANSWERED_BY_TOOL, .now_ms = 5};
    input_table_end(table, KEY, &match); /* of an open one it says nothing */
    ck_assert_ptr_eq(input_table_close(table, KEY, &match, &closing), input);
    ck_assert(input_table_reopen(table, input));
    ck_assert_int_eq(input->state, INPUT_OPEN);
    ck_assert_ptr_eq(input_table_close(table, KEY, &match, &closing), input);
    input_table_end(table, STR("up/session:t"), &match);
    ck_assert(input_table_reopen(table, input));
    ck_assert_ptr_eq(input_table_close(table, KEY, &match, &closing), input);
    input_table_end(table, KEY, &match);
    ck_assert(!input_table_reopen(table, input));
    ck_assert_int_eq(input->state, INPUT_REJECTED);
    ck_assert_ptr_null(input_table_close(table, KEY, &match, &closing));
    drop(table, input);
    input_table_destroy(table);
}
END_TEST

START_TEST(the_same_request_waits_once)
{
    struct input_table *table = input_table_create();
    struct input_request *input = add(table, "up/session:s", "1");
    struct input_request *again = make("up/session:s", "1", "{}");
    ck_assert_int_eq(input_table_add(table, again), INPUT_REPEATED);
    struct input_closing closing = {.state = INPUT_ANSWERED_BY_TOOL, .now_ms = 1};
    ck_assert_ptr_eq(input_table_close(table, KEY, NULL, &closing), input);
    ck_assert_int_eq(input_table_add(table, again), INPUT_ADDED);
    drop(table, input);
    drop(table, again);
    input_table_destroy(table);
}
END_TEST

START_TEST(a_client_can_be_asked_only_so_much)
{
    struct input_table *table = input_table_create();
    struct input_request *all[INPUTS_PER_KEY];
    for (size_t i = 0; i < INPUTS_PER_KEY; i++) {
        char id[16];
        snprintf(id, sizeof id, "%zu", i);
        all[i] = add(table, "up/session:s", id);
    }
    struct input_request *more = make("up/session:s", "\"more\"", "{}");
    ck_assert_int_eq(input_table_add(table, more), INPUT_TOO_MANY);
    struct input_request *other = add(table, "up/session:t", "1");
    struct input_closing closing = {.state = INPUT_WITHDRAWN, .now_ms = 1};
    ck_assert_ptr_eq(input_table_close(table, KEY, NULL, &closing), all[0]);
    ck_assert_int_eq(input_table_add(table, more), INPUT_ADDED);
    for (size_t i = 0; i < INPUTS_PER_KEY; i++)
        drop(table, all[i]);
    drop(table, more);
    drop(table, other);
    input_table_destroy(table);
}
END_TEST

static bool is_of_call(const void *context, const struct input_request *input)
{
    return input->call == *(const uint64_t *)context;
}

START_TEST(the_requests_of_one_call_are_taken_out_together)
{
    struct input_table *table = input_table_create();
    uint64_t call = 7;
    size_t taken = 0;
    struct input_request *input, *stays = add(table, "up/session:s", "0");
    for (int i = 1; i <= 3; i++) {
        char id[16], key[16];
        snprintf(id, sizeof id, "%d", i);
        snprintf(key, sizeof key, "up/%d", i);
        add(table, key, id)->call = call;
    }
    const struct input_match of_call = {.call = call};
    ck_assert_uint_eq(count_of(table, STR("up/1"), &of_call), 1);
    ck_assert_uint_eq(count_of(table, KEY, &of_call), 0);
    while ((input = input_table_take(table, is_of_call, &call))) {
        taken++;
        drop(NULL, input);
    }
    ck_assert_uint_eq(taken, 3);
    ck_assert_uint_eq(input_table_count(table), 1);
    drop(table, stays);
    input_table_destroy(table);
}
END_TEST

TCase *input_table_tests(void)
{
    TCase *cases = tcase_create("questions");
    tcase_add_test(cases, input_requests_are_found_by_whom_they_are_for);
    tcase_add_test(cases, a_form_that_is_a_url_has_an_id_of_its_own);
    tcase_add_test(cases, one_alone_closes_a_question_and_the_others_are_told_how);
    tcase_add_test(cases, a_question_opens_again_unless_what_asked_has_ended);
    tcase_add_test(cases, the_same_request_waits_once);
    tcase_add_test(cases, a_client_can_be_asked_only_so_much);
    tcase_add_test(cases, the_requests_of_one_call_are_taken_out_together);
    return cases;
}
