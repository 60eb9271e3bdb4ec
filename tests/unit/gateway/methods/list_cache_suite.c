/* The lists kept for bad times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "methods/list_cache.h"
#include "suites.h"
#include "taskgate/core/memory.h"

static bool has_list(struct seen_table *lists, const char *key, const char *text)
{
    struct buffer result = {0};
    bool found = list_cache_get(lists, str_from(key), &result);
    ck_assert(!found || str_equal(buffer_str(&result), str_from(text)));
    buffer_finish(&result);
    return found;
}

START_TEST(a_kept_list_is_found_by_its_own_key_until_it_is_replaced)
{
    struct seen_table *lists = list_cache_create();
    ck_assert(!has_list(lists, "a", ""));
    list_cache_put(lists, STR("a"), NULL, STR("one"));
    list_cache_put(lists, STR("b"), NULL, STR("two"));
    ck_assert(has_list(lists, "a", "one"));
    ck_assert(has_list(lists, "b", "two"));
    list_cache_put(lists, STR("a"), NULL, STR("three"));
    ck_assert(has_list(lists, "a", "three"));
    ck_assert(!has_list(lists, "", ""));
    seen_table_destroy(lists);
}
END_TEST

START_TEST(list_cache_are_bounded_in_number_and_bytes_and_the_oldest_go)
{
    struct seen_table *lists = list_cache_create();
    char key[32];
    for (int i = 0; i < 1001; i++) {
        snprintf(key, sizeof key, "k%d", i);
        list_cache_put(lists, str_from(key), NULL, STR("x"));
    }
    ck_assert(!has_list(lists, "k0", "x"));
    ck_assert(has_list(lists, "k1", "x"));
    ck_assert(has_list(lists, "k1000", "x"));
    size_t length = (size_t)1024 * 1024;
    char *big = memory_alloc(length + 1);
    list_cache_put(lists, STR("too big"), NULL, str_slice(big, length + 1));
    ck_assert(!has_list(lists, "too big", ""));
    for (int i = 0; i < 64; i++) {
        snprintf(key, sizeof key, "big%d", i);
        memset(big, 'x', length);
        list_cache_put(lists, str_from(key), NULL, str_slice(big, length));
    }
    ck_assert(!has_list(lists, "k1000", "x"));
    ck_assert(has_list(lists, "big0", big));
    list_cache_put(lists, STR("one more"), NULL, STR("y"));
    ck_assert(!has_list(lists, "big0", big));
    ck_assert(has_list(lists, "big1", big));
    ck_assert(has_list(lists, "one more", "y"));
    free(big);
    seen_table_destroy(lists);
}
END_TEST

TCase *list_cache_tests(void)
{
    TCase *tests = tcase_create("kept_lists");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_kept_list_is_found_by_its_own_key_until_it_is_replaced);
    tcase_add_test(tests, list_cache_are_bounded_in_number_and_bytes_and_the_oldest_go);
    return tests;
}
