/* Names that are kept of calls: whole when they are short, else told apart by their digest. */
#include <stdlib.h>
#include <string.h>

#include "suites.h"
#include "taskgate/core/memory.h"
#include "taskgate/task/recorded_name.h"

START_TEST(short_names_are_kept_whole)
{
    char out[RECORDED_NAME_BYTES], name[RECORDED_NAME_BYTES_MAX];
    memset(name, 'n', sizeof name);
    ck_assert_uint_eq(recorded_name(STR_EMPTY, out).length, 0);
    struct str same = recorded_name(str_slice(name, sizeof name), out);
    ck_assert_ptr_eq(same.bytes, name);
    ck_assert_uint_eq(same.length, sizeof name);
}
END_TEST

START_TEST(long_names_keep_beginning_length_and_digest)
{
    char out[RECORDED_NAME_BYTES], other[RECORDED_NAME_BYTES], digest[DIGEST_HEX_BYTES];
    size_t length = (size_t)1 << 20;
    char *name = memory_alloc(length);
    memset(name, 'n', length);
    memcpy(name + RECORDED_NAME_BYTES_MAX - 1, "\u20AC", 3); /* stands across the cut */
    digest_sha256_hex(str_slice(name, length), digest);
    char *end = memory_format("n... (1048576 bytes, sha256 %s)", digest);
    struct str cut = recorded_name(str_slice(name, length), out);
    ck_assert(str_ends_with(cut, str_from(end)));
    ck_assert_uint_eq(cut.length, RECORDED_NAME_BYTES_MAX - 2 + strlen(end));
    ck_assert_uint_gt(cut.length, RECORDED_NAME_BYTES_MAX); /* no whole name is as long */
    name[length - 1] = 'm';
    ck_assert(!str_equal(cut, recorded_name(str_slice(name, length), other)));
    free(end);
    free(name);
}
END_TEST

TCase *recorded_name_tests(void)
{
    TCase *tests = tcase_create("recorded_name");
    tcase_add_test(tests, short_names_are_kept_whole);
    tcase_add_test(tests, long_names_keep_beginning_length_and_digest);
    return tests;
}
