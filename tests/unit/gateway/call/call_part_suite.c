/* The parts of a call: found by their kind, dropped the last one first. */
#include <string.h>

#include "call/call.h"
#include "suites.h"

struct thing {
    int number;
    struct call_part part; /* not first: the offset counts */
};

static int dropped[4];
static int drop_count;

static void drop(struct call *call, void *object)
{
    const struct thing *thing = object;
    ck_assert_ptr_null(call_part_find(call, thing->part.kind));
    dropped[drop_count++] = thing->number;
}

static const struct call_part_kind first_kind = CALL_PART_KIND(struct thing, drop);
static const struct call_part_kind second_kind = CALL_PART_KIND(struct thing, drop);
static const struct call_part_kind third_kind = CALL_PART_KIND(struct thing, drop);

static void begin(struct call *call)
{
    memset(call, 0, sizeof *call);
    list_init(&call->parts);
    drop_count = 0;
}

START_TEST(a_part_is_found_by_its_kind_alone)
{
    struct call call;
    struct thing first = {.number = 1}, second = {.number = 2};
    begin(&call);
    ck_assert_ptr_null(call_part_find(&call, &first_kind));
    call_part_add(&call, &first.part, &first_kind);
    call_part_add(&call, &second.part, &second_kind);
    ck_assert_ptr_eq(call_part_find(&call, &first_kind), &first);
    ck_assert_ptr_eq(call_part_get(&call, &second_kind), &second);
    ck_assert_ptr_null(call_part_find(&call, &third_kind));
}
END_TEST

START_TEST(parts_are_dropped_the_last_one_first)
{
    struct call call;
    struct thing first = {.number = 1}, second = {.number = 2}, third = {.number = 3};
    begin(&call);
    call_part_add(&call, &first.part, &first_kind);
    call_part_add(&call, &second.part, &second_kind);
    call_part_add(&call, &third.part, &third_kind);
    call_part_drop_all(&call);
    ck_assert_int_eq(drop_count, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(dropped[i], 3 - i);
    ck_assert(list_is_empty(&call.parts));
}
END_TEST

START_TEST(a_part_that_was_removed_is_not_dropped)
{
    struct call call;
    struct thing first = {.number = 1}, second = {.number = 2};
    begin(&call);
    call_part_add(&call, &first.part, &first_kind);
    call_part_add(&call, &second.part, &second_kind);
    call_part_remove(&first.part);
    call_part_remove(&first.part); /* of no call: nothing happens */
    ck_assert_ptr_null(call_part_find(&call, &first_kind));
    call_part_drop_all(&call);
    ck_assert_int_eq(drop_count, 1);
    ck_assert_int_eq(dropped[0], 2);
}
END_TEST

TCase *call_part_tests(void)
{
    TCase *tests = tcase_create("parts of a call");
    tcase_add_test(tests, a_part_is_found_by_its_kind_alone);
    tcase_add_test(tests, parts_are_dropped_the_last_one_first);
    tcase_add_test(tests, a_part_that_was_removed_is_not_dropped);
    return tests;
}
