/* The claims of a token, and what becomes of them. */
#include <stdlib.h>
#include <string.h>

#include "identity_test.h"
#include "taskgate/core/memory.h"

#define ISS "\"iss\":\"" ISSUER "\","
#define AUD "\"aud\":\"" AUDIENCE "\","
#define SUB "\"sub\":\"alice\","
#define EXP "\"exp\":1800000300"

static const struct {
    const char *claims;
    enum token_error error;
} rows[] = {
    {"{" CLAIMS "}", TOKEN_OK},
    {"{" AUD SUB EXP "}", TOKEN_ISSUER},
    {"{\"iss\":\"https://issuer.example/\"," AUD SUB EXP "}", TOKEN_ISSUER},
    {"{\"iss\":\"https://ISSUER.example\"," AUD SUB EXP "}", TOKEN_ISSUER},
    {"{\"iss\":[\"https://issuer.example\"]," AUD SUB EXP "}", TOKEN_ISSUER},
    {"{" ISS SUB EXP "}", TOKEN_AUDIENCE},
    {"{" ISS "\"aud\":\"https://other.example\"," SUB EXP "}", TOKEN_AUDIENCE},
    {"{" ISS "\"aud\":\"" AUDIENCE "/\"," SUB EXP "}", TOKEN_AUDIENCE},
    {"{" ISS "\"aud\":[]," SUB EXP "}", TOKEN_AUDIENCE},
    {"{" ISS "\"aud\":[\"x\",\"" AUDIENCE "\"]," SUB EXP "}", TOKEN_OK},
    {"{" ISS "\"aud\":[1,\"" AUDIENCE "\"]," SUB EXP "}", TOKEN_CLAIMS},
    {"{" ISS "\"aud\":{\"" AUDIENCE "\":1}," SUB EXP "}", TOKEN_CLAIMS},
    {"{" ISS AUD EXP "}", TOKEN_SUBJECT},
    {"{" ISS AUD "\"sub\":\"\"," EXP "}", TOKEN_SUBJECT},
    {"{" ISS AUD "\"sub\":7," EXP "}", TOKEN_SUBJECT},
    {"{" ISS AUD "\"sub\":\"a\\u0000b\"," EXP "}", TOKEN_SUBJECT},
    {"{" ISS AUD "\"sub\":\"alice\"}", TOKEN_NO_EXPIRY},
    {"{" ISS AUD SUB "\"exp\":\"1800000300\"}", TOKEN_CLAIMS},
    {"{" ISS AUD SUB "\"exp\":null}", TOKEN_CLAIMS},
    {"{" ISS AUD SUB "\"exp\":1799999941}", TOKEN_OK}, /* 59 s ago */
    {"{" ISS AUD SUB "\"exp\":1799999940}", TOKEN_EXPIRED},
    {"{" ISS AUD SUB "\"exp\":-1}", TOKEN_EXPIRED},
    {"{" ISS AUD SUB "\"exp\":0}", TOKEN_EXPIRED},
    {"{" ISS AUD SUB "\"exp\":1e300}", TOKEN_OK},
    {"{" ISS AUD SUB "\"exp\":1800000300.5}", TOKEN_OK},
    {"{" CLAIMS ",\"nbf\":1800000060}", TOKEN_OK},
    {"{" CLAIMS ",\"nbf\":1800000061}", TOKEN_NOT_YET},
    {"{" CLAIMS ",\"nbf\":1e400}", TOKEN_NOT_YET},
    {"{" CLAIMS ",\"nbf\":\"0\"}", TOKEN_CLAIMS},
    {"{" CLAIMS ",\"sub\":\"bob\"}", TOKEN_CLAIMS},
    {"{" CLAIMS ",\"\\u0073ub\":\"bob\"}", TOKEN_CLAIMS},
    {"{" CLAIMS ",\"x\":{\"a\":1,\"a\":2}}", TOKEN_CLAIMS},
    {"{" CLAIMS ",\"x\":\"\xc3\"}", TOKEN_CLAIMS},
    {"{" CLAIMS "} ", TOKEN_OK},
    {"{" CLAIMS "}{}", TOKEN_CLAIMS},
    {"[" CLAIMS "]", TOKEN_CLAIMS},
    {"\"" ISSUER "\"", TOKEN_CLAIMS},
};

START_TEST(claims_are_judged)
{
    struct identity *identity;
    expect_refused(rows[_i].error, verify_claims(rows[_i].claims, &identity));
    identity_unref(identity);
}
END_TEST

START_TEST(an_identity_has_what_the_issuer_says)
{
    struct identity *identity;
    rules.shape =
        (struct identity_shape){.groups_claim = "realm_access.roles", .name_claim = "nick"};
    expect_refused(TOKEN_OK,
                   verify_claims("{" CLAIMS ",\"nick\":\"Al\\u00e9\",\"email\":\"a@x\","
                                 "\"email_verified\":true,\"scope\":\"read  write\",\"sid\":\"s\","
                                 "\"auth_time\":1799990000,\"azp\":\"cli\","
                                 "\"realm_access\":{\"roles\":[\"dba\",7,\"o\\u0000p\",\"ops\"]}}",
                                 &identity));
    ck_assert_str_eq(identity->issuer, ISSUER);
    ck_assert_str_eq(identity->subject, "alice");
    ck_assert_str_eq(identity->name, "Al\xc3\xa9");
    ck_assert_str_eq(identity->email, "a@x");
    ck_assert(identity->email_verified);
    ck_assert_str_eq(identity->client_id, "cli");
    ck_assert_str_eq(identity->session, "s");
    ck_assert_int_eq(identity->signed_in_ms, INT64_C(1799990000000));
    ck_assert_int_eq(identity->until_ms, INT64_C(1800000300000));
    ck_assert_uint_eq(identity->groups.count, 2);
    ck_assert(identity_has_group(identity, "dba") && identity_has_group(identity, "ops"));
    ck_assert(!identity_has_group(identity, "o"));
    ck_assert_uint_eq(identity->scopes.count, 2);
    ck_assert(identity_has_scope(identity, "write") && !identity_has_scope(identity, "writ"));
    /* printf 'https://issuer.example\0alice' | sha256sum */
    ck_assert_str_eq(identity->owner,
                     "sub:d0c1e6aaa26b1226a7b0a1a3e4c6800ddbed666f783b7b7ea091754bb1502198");
    identity_unref(identity_ref(identity));
    identity_unref(identity);
}
END_TEST

/* A name with dots in it comes before the path. */
START_TEST(groups_are_found_by_name_or_path)
{
    static const struct {
        const char *name, *more, *group;
    } groups[] = {
        {NULL, ",\"groups\":[\"g\"]", "g"},
        {"groups", ",\"groups\":\"g\"", "g"},
        {"https://x.example/groups", ",\"https://x.example/groups\":[\"g\"]", "g"},
        {"a.b", ",\"a.b\":[\"g\"],\"a\":{\"b\":[\"h\"]}", "g"},
        {"a.b.c", ",\"a\":{\"b\":{\"c\":[\"g\"]}}", "g"},
        {"a.b", ",\"a\":[\"b\"]", NULL},
        {"a.b", ",\"a\":{\"c\":\"g\"}", NULL},
        {".", ",\"a\":1", NULL},
        {"groups", ",\"groups\":{\"g\":1}", NULL},
        {"groups", ",\"groups\":7", NULL},
    };
    struct identity *identity;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        char *claims = memory_format("{" CLAIMS "%s}", groups[i].more);
        rules.shape.groups_claim = groups[i].name;
        expect_refused(TOKEN_OK, verify_claims(claims, &identity));
        ck_assert_uint_eq(identity->groups.count, groups[i].group ? 1 : 0);
        if (groups[i].group)
            ck_assert_str_eq(identity->groups.items[0], groups[i].group);
        identity_unref(identity);
        free(claims);
    }
}
END_TEST

START_TEST(scopes_are_a_text_or_a_list)
{
    static const char *const spellings[] = {",\"scope\":\"a b\"", ",\"scp\":\"a b\"",
                                            ",\"scp\":[\"a\",\"b\"]",
                                            ",\"scope\":\" a b \",\"scp\":\"c\""};
    struct identity *identity;
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        char *claims = memory_format("{" CLAIMS "%s}", spellings[i]);
        expect_refused(TOKEN_OK, verify_claims(claims, &identity));
        ck_assert_uint_eq(identity->scopes.count, 2);
        ck_assert(identity_has_scope(identity, "a") && identity_has_scope(identity, "b"));
        identity_unref(identity);
        free(claims);
    }
}
END_TEST

/* In the leeway a token is good for the rest of the leeway. */
START_TEST(the_end_is_exp_or_that_of_the_leeway)
{
    struct identity *identity;
    expect_refused(TOKEN_OK, verify_claims("{" ISS AUD SUB "\"exp\":1800000001}", &identity));
    ck_assert_int_eq(identity->until_ms, NOW_MS + 1000);
    identity_unref(identity);
    expect_refused(TOKEN_OK, verify_claims("{" ISS AUD SUB "\"exp\":1799999999}", &identity));
    ck_assert_int_eq(identity->until_ms, NOW_MS - 1000 + 60000);
    identity_unref(identity);
}
END_TEST

static const struct {
    const char *header, *claims;
    enum token_kind kind;
    enum token_error error;
} clients[] = {
    {"JWT", ",\"azp\":\"cli\"", TOKEN_ID, TOKEN_OK},
    {"JWT", "", TOKEN_ID, TOKEN_OK},
    {"JWT", ",\"azp\":\"other\"", TOKEN_ID, TOKEN_CLIENT},
    {"JWT", ",\"azp\":\"other\"", TOKEN_EITHER, TOKEN_CLIENT},
    {"at+jwt", ",\"client_id\":\"other\"", TOKEN_EITHER, TOKEN_CLIENT},
    {"at+jwt", ",\"client_id\":\"cli\"", TOKEN_EITHER, TOKEN_OK},
    {"JWT", ",\"azp\":[\"cli\"]", TOKEN_ID, TOKEN_CLIENT},
    {"JWT", ",\"azp\":\"cli\",\"client_id\":\"other\"", TOKEN_ID, TOKEN_CLIENT},
};

START_TEST(tokens_of_another_client_are_refused)
{
    struct identity *identity;
    char *header =
        memory_format("{\"alg\":\"ES256\",\"kid\":\"k\",\"typ\":\"%s\"}", clients[_i].header);
    char *claims = memory_format("{" CLAIMS "%s}", clients[_i].claims);
    rules.client_id = "cli";
    rules.kind = clients[_i].kind;
    expect_refused(clients[_i].error, verify_signed(header, claims, &identity));
    identity_unref(identity);
    free(header);
    free(claims);
}
END_TEST

START_TEST(of_several_audiences_one_client_is_named)
{
    static const char several[] = "{" ISS SUB EXP ",\"aud\":[\"" AUDIENCE "\",\"x\"]";
    struct identity *identity;
    rules.client_id = "cli";
    rules.kind = TOKEN_ID;
    char *bare = memory_format("%s}", several),
         *named = memory_format("%s,\"azp\":\"cli\"}", several);
    static const char header[] = "{\"alg\":\"ES256\",\"kid\":\"k\"}";
    expect_refused(TOKEN_CLIENT, verify_signed(header, bare, &identity));
    expect_refused(TOKEN_OK, verify_signed(header, named, &identity));
    identity_unref(identity);
    free(bare);
    free(named);
}
END_TEST

START_TEST(a_nonce_that_is_asked_for_must_be_there)
{
    struct identity *identity;
    rules.nonce = "n-1";
    expect_refused(TOKEN_NONCE, verify_claims("{" CLAIMS "}", &identity));
    expect_refused(TOKEN_NONCE, verify_claims("{" CLAIMS ",\"nonce\":\"n-2\"}", &identity));
    expect_refused(TOKEN_NONCE, verify_claims("{" CLAIMS ",\"nonce\":[\"n-1\"]}", &identity));
    expect_refused(TOKEN_OK, verify_claims("{" CLAIMS ",\"nonce\":\"n-1\"}", &identity));
    identity_unref(identity);
}
END_TEST

START_TEST(a_shape_may_leave_groups_out)
{
    const struct identity_shape shape = {.most_groups = 2};
    const struct str claims = STR("{\"sub\":\"s\",\"groups\":[\"a\",\"b\",\"c\"]}");
    struct identity *identity = identity_create(claims, "i", &shape, INT64_MAX);
    ck_assert_uint_eq(identity->groups.count, 2);
    ck_assert(identity_has_group(identity, "b") && !identity_has_group(identity, "c"));
    identity_unref(identity);
}
END_TEST

START_TEST(addresses_differ_in_more_than_the_case_of_letters)
{
    char digest[DIGEST_HEX_BYTES], other[DIGEST_HEX_BYTES];
    person_email_digest("aLICE@EXAMPLE.ORG", digest);
    person_email_digest("alice@example.org", other);
    ck_assert_str_eq(digest, other);
    person_email_digest("alice@example.or", other);
    ck_assert_str_ne(digest, other);
    person_email_digest("", digest);
    person_email_digest(NULL, other);
    ck_assert_str_eq(digest, "");
    ck_assert_str_eq(other, "");
}
END_TEST

Suite *claims_suite(void)
{
    Suite *suite = suite_create("claims");
    TCase *tests = tcase_create("claims");
    tcase_add_checked_fixture(tests, scene_setup, scene_teardown);
    tcase_add_loop_test(tests, claims_are_judged, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_test(tests, an_identity_has_what_the_issuer_says);
    tcase_add_test(tests, groups_are_found_by_name_or_path);
    tcase_add_test(tests, scopes_are_a_text_or_a_list);
    tcase_add_test(tests, the_end_is_exp_or_that_of_the_leeway);
    tcase_add_loop_test(tests, tokens_of_another_client_are_refused, 0,
                        (int)(sizeof clients / sizeof *clients));
    tcase_add_test(tests, of_several_audiences_one_client_is_named);
    tcase_add_test(tests, a_nonce_that_is_asked_for_must_be_there);
    tcase_add_test(tests, addresses_differ_in_more_than_the_case_of_letters);
    tcase_add_test(tests, a_shape_may_leave_groups_out);
    suite_add_tcase(suite, tests);
    return suite;
}
