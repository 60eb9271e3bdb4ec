/* Counts by holder. */
#include "state/quota.h"

#include "suites.h"

START_TEST(each_holder_has_as_many_as_allowed)
{
    struct quota *quota = quota_create();
    for (int i = 0; i < 3; i++)
        ck_assert(quota_take(quota, STR("a"), 3, INT64_MAX));
    ck_assert(!quota_take(quota, STR("a"), 3, INT64_MAX));
    ck_assert(quota_take(quota, STR("b"), 3, INT64_MAX));
    quota_give_back(quota, STR("a"));
    ck_assert(quota_take(quota, STR("a"), 3, INT64_MAX));
    ck_assert(!quota_take(quota, STR("a"), 3, INT64_MAX));
    ck_assert(quota_take(quota, STR("a"), 4, INT64_MAX)); /* the limit was raised meanwhile */
    quota_destroy(quota);
}
END_TEST

START_TEST(all_together_have_as_many_as_allowed)
{
    struct quota *quota = quota_create();
    ck_assert(quota_take(quota, STR("a"), 3, 2));
    ck_assert(quota_take(quota, STR("b"), 3, 2));
    ck_assert(!quota_take(quota, STR("a"), 3, 2));
    ck_assert(!quota_take(quota, STR("c"), 3, 2));
    ck_assert(!quota_has(quota, STR("c")));
    quota_give_back(quota, STR("b"));
    ck_assert(quota_take(quota, STR("c"), 3, 2));
    ck_assert(!quota_take(quota, STR("b"), 3, 2));
    quota_destroy(quota);
}
END_TEST

START_TEST(an_owner_with_none_is_forgotten)
{
    struct quota *quota = quota_create();
    ck_assert(!quota_has(quota, STR("a")));
    ck_assert(!quota_take(quota, STR("a"), 0, INT64_MAX));
    ck_assert(!quota_has(quota, STR("a")));
    ck_assert(quota_take(quota, STR_EMPTY, 1, INT64_MAX));
    ck_assert(quota_has(quota, STR_EMPTY));
    quota_give_back(quota, STR_EMPTY);
    ck_assert(!quota_has(quota, STR_EMPTY));
    quota_give_back(quota, STR("never taken"));
    ck_assert(!quota_has(quota, STR("never taken")));
    quota_destroy(quota);
}
END_TEST

TCase *quota_tests(void)
{
    TCase *tests = tcase_create("quota");
    tcase_add_test(tests, each_holder_has_as_many_as_allowed);
    tcase_add_test(tests, all_together_have_as_many_as_allowed);
    tcase_add_test(tests, an_owner_with_none_is_forgotten);
    return tests;
}
