/* Base64url against its own way back, and what has no second spelling. */
#include <string.h>

#include "identity_test.h"
#include "jose.h"

static const struct {
    const char *text, *bytes;
} good[] = {
    {"", ""},           {"Zg", "f"},          {"Zm8", "fo"},          {"Zm9v", "foo"},
    {"Zm9vYg", "foob"}, {"Zm9vYmE", "fooba"}, {"Zm9vYmFy", "foobar"}, {"_-_-", "\xff\xef\xfe"},
};

START_TEST(values_go_both_ways)
{
    struct buffer out = {0};
    ck_assert(base64url_decode(str_from(good[_i].text), &out));
    ck_assert(str_equal(buffer_str(&out), str_from(good[_i].bytes)));
    buffer_clear(&out);
    base64url_encode(str_from(good[_i].bytes), &out);
    ck_assert(str_equal(buffer_str(&out), str_from(good[_i].text)));
    buffer_finish(&out);
}
END_TEST

/* Padding, the other alphabet, white space, a lone character, bits left over. */
static const char *const bad[] = {"Zg==",  "Zm8=", "_+_-",  "_/_-", "Zm9 v", "Zm9v\n", "Z",
                                  "Zm9vY", "A",    "Zm9vA", "Zh",   "Zm9",   "Zm9v."};

START_TEST(other_spellings_are_refused)
{
    struct buffer out = {0};
    buffer_append_text(&out, "before");
    ck_assert_msg(!base64url_decode(str_from(bad[_i]), &out), "%s", bad[_i]);
    ck_assert(str_equal(buffer_str(&out), STR("before")));
    buffer_finish(&out);
}
END_TEST

Suite *base64url_suite(void)
{
    Suite *suite = suite_create("base64url");
    TCase *tests = tcase_create("texts");
    tcase_add_loop_test(tests, values_go_both_ways, 0, (int)(sizeof good / sizeof *good));
    tcase_add_loop_test(tests, other_spellings_are_refused, 0, (int)(sizeof bad / sizeof *bad));
    suite_add_tcase(suite, tests);
    return suite;
}
