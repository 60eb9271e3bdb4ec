/* The Authorization header. */
#include <stdlib.h>
#include <string.h>

#include "identity_test.h"
#include "taskgate/core/memory.h"

static const struct {
    const char *value;
    enum token_error error;
    const char *token;
} rows[] = {
    {"Bearer a.b.c", TOKEN_OK, "a.b.c"},
    {"bEARER   a-._~+/9==", TOKEN_OK, "a-._~+/9=="},
    {" Bearer a ", TOKEN_OK, "a"},
    {"Basic YTpi", TOKEN_SCHEME, NULL},
    {"Bearera", TOKEN_SCHEME, NULL},
    {"", TOKEN_SCHEME, NULL},
    {"DPoP a.b.c", TOKEN_SCHEME, NULL},
    {"Bearer", TOKEN_MALFORMED, NULL},
    {"Bearer ", TOKEN_MALFORMED, NULL},
    {"Bearer =", TOKEN_MALFORMED, NULL},
    {"Bearer a=b", TOKEN_MALFORMED, NULL},
    {"Bearer a b", TOKEN_MALFORMED, NULL},
    {"Bearer a,b", TOKEN_MALFORMED, NULL},
    {"Bearer a\x01", TOKEN_MALFORMED, NULL},
    {"Bearer \xc3\xa9", TOKEN_MALFORMED, NULL},
};

START_TEST(header_values)
{
    struct str token = STR_EMPTY;
    expect_refused(rows[_i].error, token_from_value(str_from(rows[_i].value), &token));
    if (rows[_i].token)
        ck_assert(str_equal(token, str_from(rows[_i].token)));
}
END_TEST

START_TEST(the_bound_is_64_kib)
{
    struct buffer value = {0};
    struct str token = STR_EMPTY;
    buffer_append_text(&value, "Bearer ");
    for (size_t i = 0; i < TOKEN_MAX_BYTES; i++)
        buffer_append_char(&value, 'a');
    expect_refused(TOKEN_OK, token_from_value(buffer_str(&value), &token));
    ck_assert_uint_eq(token.length, 65536);
    buffer_append_char(&value, 'a');
    expect_refused(TOKEN_TOO_LARGE, token_from_value(buffer_str(&value), &token));
    buffer_finish(&value);
}
END_TEST

/* RFC 6750 §3: what may stand in error_description. */
START_TEST(descriptions_fit_a_quoted_string)
{
    for (unsigned i = 1; i < TOKEN_ERROR_COUNT; i++) {
        const char *text = token_error_description((enum token_error)i);
        ck_assert_uint_gt(strlen(text), 0);
        for (; *text; text++)
            ck_assert(*text >= 0x20 && *text < 0x7f && *text != '"' && *text != '\\');
    }
}
END_TEST

START_TEST(refusals_have_the_standards_codes)
{
    ck_assert_str_eq(token_error_code(TOKEN_ABSENT), "");
    ck_assert_str_eq(token_error_code(TOKEN_EXPIRED), "invalid_token");
    ck_assert_str_eq(token_error_code(TOKEN_SCOPE), "insufficient_scope");
    ck_assert_int_eq(token_error_status(TOKEN_ABSENT), 401);
    ck_assert_int_eq(token_error_status(TOKEN_SEVERAL), 401);
    ck_assert_int_eq(token_error_status(TOKEN_SCOPE), 403);
    ck_assert_int_eq(token_error_status(TOKEN_UNAVAILABLE), 503);
    ck_assert_str_eq(token_error_name(TOKEN_KEY_UNKNOWN), "key_unknown");
}
END_TEST

Suite *bearer_suite(void)
{
    Suite *suite = suite_create("bearer");
    TCase *tests = tcase_create("header");
    tcase_add_loop_test(tests, header_values, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_test(tests, the_bound_is_64_kib);
    tcase_add_test(tests, descriptions_fit_a_quoted_string);
    tcase_add_test(tests, refusals_have_the_standards_codes);
    suite_add_tcase(suite, tests);
    return suite;
}
