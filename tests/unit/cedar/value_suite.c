/* Values built by hand: sets, records, depth. */
#include "cedar_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "taskgate/core/memory.h"

START_TEST(large_sets_are_searched_by_hash)
{
    struct cedar_heap *heap = cedar_heap_create();
    enum { COUNT = 100000 };
    struct cedar_value *elements = memory_alloc_array(COUNT, sizeof *elements);
    struct cedar_value up, down, half;
    for (int i = 0; i < COUNT; i++)
        elements[i] = cedar_long(i / 2);
    ck_assert(cedar_set(heap, elements, COUNT, &up));
    for (int i = 0; i < COUNT; i++)
        elements[i] = cedar_long((COUNT - 1 - i) / 2);
    ck_assert(cedar_set(heap, elements, COUNT, &down));
    ck_assert(cedar_set(heap, elements, COUNT / 2, &half));
    ck_assert(cedar_value_equal(&up, &down));
    ck_assert(!cedar_value_equal(&up, &half));
    /* Sets as elements of a set. */
    struct cedar_value outer[] = {up, down, half}, nested, two[] = {half, up}, same;
    ck_assert(cedar_set(heap, outer, 3, &nested));
    ck_assert(cedar_set(heap, two, 2, &same));
    ck_assert(cedar_value_equal(&nested, &same));
    free(elements);
    cedar_heap_destroy(heap);
}
END_TEST

/* Undoes hash ^= hash >> shift. */
static uint64_t unshift(uint64_t hash, unsigned shift)
{
    uint64_t result = hash;
    for (unsigned done = shift; done < 64; done += shift)
        result = hash ^ (result >> shift);
    return result;
}

/* The number that value_mix() made of nothing but itself would take to `hash`. */
static uint64_t unmix(uint64_t hash)
{
    const uint64_t factor = UINT64_C(0xd6e8feb86659fd93);
    uint64_t inverse = factor;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - factor * inverse;
    return unshift(unshift(hash, 29) * inverse, 32);
}

/* Chosen to fall into one slot of the table that finds doubles, which would be searched from its
 * beginning for each of them: minutes for the numbers that one call may bring. */
START_TEST(chosen_numbers_do_not_collide)
{
    enum { COUNT = 200000 };
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_value *elements = memory_alloc_array(COUNT, sizeof *elements), set;
    for (uint64_t i = 0; i < COUNT; i++)
        elements[i] = cedar_long((int64_t)(unmix(i << 24) - ((uint64_t)CEDAR_LONG << 56)));
    ck_assert(cedar_set(heap, elements, COUNT, &set));
    free(elements);
    cedar_heap_destroy(heap);
}
END_TEST

START_TEST(records_are_found_by_name)
{
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_member members[] = {
        {STR("b"), cedar_long(1)},
        {STR("a"), cedar_long(2)},
        {STR(""), cedar_long(3)},
        {STR("abc"), cedar_long(4)},
        {str_slice("a\0", 2), cedar_long(5)},
        {STR("ab"), cedar_long(6)},
    };
    struct cedar_value record, again;
    ck_assert(cedar_record(heap, members, 6, &record));
    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(cedar_record_get(record.record, members[i].name)->number,
                         members[i].value.number);
    ck_assert_ptr_null(cedar_record_get(record.record, STR("c")));
    struct cedar_member first = members[0];
    members[0] = members[5];
    members[5] = first;
    ck_assert(cedar_record(heap, members, 6, &again));
    ck_assert(cedar_value_equal(&record, &again));
    members[5].value = cedar_long(7);
    ck_assert(cedar_record(heap, members, 6, &again));
    ck_assert(!cedar_value_equal(&record, &again));
    members[5].name = STR("a");
    ck_assert(!cedar_record(heap, members, 6, &again));
    cedar_heap_destroy(heap);
}
END_TEST

START_TEST(depth_of_values_is_bounded)
{
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_value value = cedar_long(1), deeper;
    for (int i = 0; i < CEDAR_MAX_VALUE_DEPTH; i++) {
        struct cedar_member member = {.name = STR("a"), .value = value};
        ck_assert(i % 2 ? cedar_record(heap, &member, 1, &value)
                        : cedar_set(heap, &value, 1, &value));
    }
    struct cedar_member member = {.name = STR("a"), .value = value};
    ck_assert(!cedar_set(heap, &value, 1, &deeper));
    ck_assert(!cedar_record(heap, &member, 1, &deeper));
    /* A policy that would nest it once more cannot be evaluated: nothing is allowed. */
    struct cedar_policies *policies =
        must_parse("permit(principal, action, resource);"
                   "permit(principal, action, resource) when { [context] == [] };");
    struct cedar_request request = must_make_request(NULL, NULL);
    struct cedar_response response;
    cedar_response_init(&response);
    cedar_authorize(policies, NULL, &request, &response);
    ck_assert_int_eq(response.decision, CEDAR_ALLOW);
    ck_assert_int_eq(value.kind, CEDAR_RECORD);
    request.context = value.record;
    cedar_authorize(policies, NULL, &request, &response);
    ck_assert_int_eq(response.decision, CEDAR_DENY);
    ck_assert(response.exhausted);
    ck_assert_uint_eq(response.failure_count, 1);
    ck_assert_int_eq(response.failures[0].code, CEDAR_FAILURE_DEPTH);
    cedar_response_finish(&response);
    cedar_policies_destroy(policies);
    cedar_heap_destroy(heap);
}
END_TEST

/* {"list": [{"Path": 1}], "inner": {"Path": 1, "n": 2}}, read by names. */
static struct cedar_request request_with_names(struct cedar_heap *heap)
{
    struct cedar_member path = {STR("Path"), cedar_long(1)};
    struct cedar_value element, list, inner, outer;
    ck_assert(cedar_record_of_names(heap, &path, 1, &element));
    ck_assert(cedar_set(heap, &element, 1, &list));
    struct cedar_member two[] = {path, {STR("n"), cedar_long(2)}};
    ck_assert(cedar_record_of_names(heap, two, 2, &inner));
    struct cedar_member members[] = {{STR("list"), list}, {STR("inner"), inner}};
    ck_assert(cedar_record_of_names(heap, members, 2, &outer));
    struct cedar_member arguments = {STR("arguments"), outer};
    struct cedar_value context;
    ck_assert(cedar_record(heap, &arguments, 1, &context));
    struct cedar_request request = must_make_request(heap, NULL);
    request.context = context.record;
    return request;
}

/* A server that reads names without case takes the one for the other. */
START_TEST(a_comparison_of_records_asks_for_their_names)
{
    static const struct {
        const char *condition;
        bool is_variant;
    } cases[] = {
        {"context.arguments.inner == {\"path\": 1, \"n\": 2}", true},
        {"context.arguments.inner != {\"path\": 1}", true},
        {"{\"path\": 1} == context.arguments.inner", true},
        {"context.arguments == {\"list\": [], \"inner\": {\"PATH\": 1}}", true},
        {"context.arguments.list.contains({\"path\": 1})", true},
        {"context.arguments.list.containsAll([{\"path\": 1}])", true},
        {"context.arguments.list.containsAny([1, {\"path\": 1}])", true},
        {"[{\"path\": 1}].containsAny(context.arguments.list)", true},
        {"context.arguments.list == [{\"path\": 1}]", true},
        {"context.arguments.inner == {\"Path\": 1, \"n\": 2}", false},
        {"context.arguments.inner == {\"other\": 1}", false},
        {"context.arguments.list.contains({\"Path\": 1})", false},
        {"context.arguments.list.contains(1)", false},
    };
    struct cedar_heap *heap = cedar_heap_create();
    struct cedar_request request = request_with_names(heap);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct cedar_response response;
        snprintf(text, sizeof text, "permit(principal, action, resource) when { %s };",
                 cases[i].condition);
        struct cedar_policies *policies = must_parse(text);
        cedar_response_init(&response);
        cedar_authorize(policies, NULL, &request, &response);
        ck_assert_msg(response.failure_count == cases[i].is_variant, "%s", cases[i].condition);
        if (cases[i].is_variant)
            ck_assert_int_eq(response.failures[0].code, CEDAR_FAILURE_VARIANT);
        cedar_response_finish(&response);
        cedar_policies_destroy(policies);
    }
    cedar_heap_destroy(heap);
}
END_TEST

START_TEST(heaps_can_be_reset)
{
    struct cedar_heap *heap = cedar_heap_create();
    for (int i = 0; i < 100; i++) {
        char text[3000] = {0};
        struct str copy = cedar_heap_copy(heap, str_slice(text, sizeof text));
        ck_assert_uint_eq(copy.length, sizeof text);
        ck_assert_ptr_ne(copy.bytes, text);
        if (i % 10 == 9)
            cedar_heap_reset(heap);
    }
    cedar_heap_destroy(heap);
    cedar_heap_destroy(NULL);
}
END_TEST

Suite *value_suite(void)
{
    Suite *suite = suite_create("values");
    TCase *tests = tcase_create("values");
    tcase_add_test(tests, large_sets_are_searched_by_hash);
    tcase_add_test(tests, chosen_numbers_do_not_collide);
    tcase_add_test(tests, records_are_found_by_name);
    tcase_add_test(tests, depth_of_values_is_bounded);
    tcase_add_test(tests, a_comparison_of_records_asks_for_their_names);
    tcase_add_test(tests, heaps_can_be_reset);
    suite_add_tcase(suite, tests);
    return suite;
}
