/* Verified tokens that are remembered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "identity_test.h"
#include "taskgate/core/memory.h"
#include "taskgate/identity/token_cache.h"

static struct identity *someone(int64_t until_ms)
{
    struct identity_shape shape = {0};
    struct identity *identity =
        identity_create(STR("{\"sub\":\"alice\"}"), ISSUER, &shape, until_ms);
    ck_assert_ptr_nonnull(identity);
    return identity;
}

static struct token_digest digest_of(unsigned number)
{
    char text[16];
    snprintf(text, sizeof text, "token %u", number);
    return token_digest(str_from(text));
}

START_TEST(a_digest_is_sha256)
{
    /* FIPS 180-4: of "abc" */
    struct token_digest digest = token_digest(STR("abc"));
    static const unsigned char head[] = {0xba, 0x78, 0x16, 0xbf};
    ck_assert_mem_eq(digest.bytes, head, sizeof head);
}
END_TEST

START_TEST(a_token_is_found_until_it_ends)
{
    struct token_cache *cache = token_cache_create(100);
    struct identity *identity = someone(NOW_MS + 1000);
    struct token_digest one = digest_of(1), other = digest_of(2);
    ck_assert_ptr_null(token_cache_find(cache, 1, &one, NOW_MS));
    token_cache_add(cache, 1, &one, identity, NOW_MS);
    identity_unref(identity);
    ck_assert_ptr_eq(token_cache_find(cache, 1, &one, NOW_MS + 999), identity);
    ck_assert_ptr_null(token_cache_find(cache, 1, &other, NOW_MS));
    ck_assert_ptr_null(token_cache_find(cache, 2, &one, NOW_MS)); /* by other rules */
    ck_assert_ptr_null(token_cache_find(cache, 1, &one, NOW_MS + 1000));
    token_cache_destroy(cache);
}
END_TEST

START_TEST(a_token_that_comes_again_takes_its_own_place)
{
    struct token_cache *cache = token_cache_create(100);
    struct token_digest one = digest_of(1);
    for (unsigned i = 0; i < 20; i++) {
        struct identity *identity = someone(NOW_MS + i);
        token_cache_add(cache, 1, &one, identity, NOW_MS);
        identity_unref(identity);
    }
    ck_assert_uint_eq(token_cache_count(cache), 1);
    ck_assert_ptr_nonnull(token_cache_find(cache, 1, &one, NOW_MS + 18));
    token_cache_destroy(cache);
}
END_TEST

START_TEST(a_full_cache_forgets_what_ended_first_and_then_the_least_used)
{
    struct token_cache *cache = token_cache_create(8);
    struct token_digest digests[10];
    for (unsigned i = 0; i < 10; i++)
        digests[i] = digest_of(i);
    for (unsigned i = 0; i < 8; i++) {
        struct identity *identity = someone(NOW_MS + (i == 5 ? 10 : 1000));
        token_cache_add(cache, 1, &digests[i], identity, NOW_MS);
        identity_unref(identity);
    }
    ck_assert_uint_eq(token_cache_count(cache), 8);
    ck_assert_ptr_nonnull(token_cache_find(cache, 1, &digests[0], NOW_MS));
    struct identity *late = someone(NOW_MS + 1000);
    token_cache_add(cache, 1, &digests[8], late, NOW_MS + 10);
    ck_assert_ptr_null(token_cache_find(cache, 1, &digests[5], NOW_MS));
    token_cache_add(cache, 1, &digests[9], late, NOW_MS + 10);
    ck_assert_ptr_null(token_cache_find(cache, 1, &digests[1], NOW_MS));
    for (unsigned i = 0; i < 10; i++) {
        if (i != 5 && i != 1)
            ck_assert_ptr_nonnull(token_cache_find(cache, 1, &digests[i], NOW_MS));
    }
    ck_assert_uint_eq(token_cache_count(cache), 8);
    identity_unref(late);
    token_cache_destroy(cache);
}
END_TEST

/* However many tokens come, no more than the bound is held; the last one always is. */
START_TEST(a_flood_is_bounded)
{
    struct token_cache *cache = token_cache_create(1000);
    struct identity *identity = someone(NOW_MS + 1000);
    for (unsigned i = 0; i < 20000; i++) {
        struct token_digest digest = digest_of(i);
        token_cache_add(cache, 1, &digest, identity, NOW_MS);
        ck_assert_ptr_eq(token_cache_find(cache, 1, &digest, NOW_MS), identity);
        ck_assert_uint_le(token_cache_count(cache), 1024);
    }
    ck_assert_uint_ge(token_cache_count(cache), 1000);
    identity_unref(identity);
    token_cache_destroy(cache);
}
END_TEST

Suite *token_cache_suite(void)
{
    Suite *suite = suite_create("token cache");
    TCase *tests = tcase_create("cache");
    tcase_add_test(tests, a_digest_is_sha256);
    tcase_add_test(tests, a_token_is_found_until_it_ends);
    tcase_add_test(tests, a_token_that_comes_again_takes_its_own_place);
    tcase_add_test(tests, a_full_cache_forgets_what_ended_first_and_then_the_least_used);
    tcase_add_test(tests, a_flood_is_bounded);
    suite_add_tcase(suite, tests);
    return suite;
}
