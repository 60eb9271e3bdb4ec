/* One holder of a token, however its header is spelled. */
#include <string.h>

#include "call/authorization.h"
#include "suites.h"

static const struct {
    const char *value, *spelled; /* the digested text */
} rows[] = {
    {"Bearer abC", "bearer abC"},
    {"bEARER abC", "bearer abC"},
    {"Bearer  \t abC", "bearer abC"},
    {" Bearer abC ", "bearer abC"},
    {"Bearer abc", "bearer abc"},
    {"DPoP A  B", "dpop A B"},
    {"Digest username=\"A\",\turi=\"/X\"", "digest username=\"A\", uri=\"/X\""},
    {"OpaqueToken", "OpaqueToken"}, /* no scheme: its case is all it has */
    {"Bearer ", "Bearer"},
    {"", ""},
};

START_TEST(spellings_of_one_token_have_one_digest)
{
    char actual[DIGEST_HEX_BYTES], expected[DIGEST_HEX_BYTES];
    authorization_digest(str_from(rows[_i].value), actual);
    digest_sha256_hex(str_from(rows[_i].spelled), expected);
    ck_assert_str_eq(actual, expected);
}
END_TEST

TCase *authorization_tests(void)
{
    TCase *tests = tcase_create("authorization");
    tcase_add_loop_test(tests, spellings_of_one_token_have_one_digest, 0,
                        sizeof rows / sizeof *rows);
    return tests;
}
