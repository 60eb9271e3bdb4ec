/* JWK sets: which keys may check a token. */
#include <stdlib.h>
#include <string.h>

#include "identity_test.h"
#include "taskgate/core/memory.h"

static struct key_set *set_of_one(const struct signer *key, const char *more)
{
    struct buffer text = {0};
    buffer_append_text(&text, "{\"keys\":[");
    signer_write_jwk(key, more, &text);
    buffer_append_text(&text, "]}");
    buffer_append_char(&text, '\0');
    struct key_set *set = key_set_of(text.bytes);
    buffer_finish(&text);
    return set;
}

static void expect_kept(const struct signer *key, const char *more, bool is_kept)
{
    struct key_set *set = set_of_one(key, more);
    ck_assert_msg(key_set_count(set) == is_kept, "%s", more);
    ck_assert_uint_eq(key_set_ignored_count(set), !is_kept);
    key_set_unref(set);
}

static const struct {
    const char *more;
    bool is_kept;
} members[] = {
    {"", true},
    {",\"use\":\"sig\"", true},
    {",\"use\":\"enc\"", false},
    {",\"use\":\"Sig\"", false},
    {",\"use\":7", false},
    {",\"key_ops\":[\"verify\"]", true},
    {",\"key_ops\":[\"encrypt\",\"verify\"]", true},
    {",\"key_ops\":[\"encrypt\"]", false},
    {",\"key_ops\":\"verify\"", false},
    {",\"alg\":\"ES256\"", true},
    {",\"alg\":\"ES384\"", false},
    {",\"alg\":\"ECDH-ES\"", false},
    {",\"alg\":\"none\"", false},
    {",\"d\":\"AAAA\"", false},
    {",\"k\":\"AAAA\"", false},
    {",\"x5c\":[\"AAAA\"],\"unknown\":{}", true},
};

START_TEST(keys_for_other_purposes_are_left_out)
{
    expect_kept(signer, members[_i].more, members[_i].is_kept);
}
END_TEST

START_TEST(an_rsa_key_is_for_the_algorithm_that_it_names)
{
    struct signer *key = signer_create("RS256", "k");
    struct buffer token = {0};
    struct identity *identity;
    key_set_unref(keys);
    keys = set_of_one(key, ",\"alg\":\"RS256\"");
    signer_write_token(key, "PS256", STR("{\"alg\":\"PS256\",\"kid\":\"k\"}"), STR("{" CLAIMS "}"),
                       &token);
    expect_refused(TOKEN_KEY_UNKNOWN, verify_text(buffer_str(&token), &identity));
    buffer_clear(&token);
    signer_write_token(key, "RS256", STR("{\"alg\":\"RS256\",\"kid\":\"k\"}"), STR("{" CLAIMS "}"),
                       &token);
    expect_refused(TOKEN_OK, verify_text(buffer_str(&token), &identity));
    identity_unref(identity);
    buffer_finish(&token);
    signer_destroy(key);
}
END_TEST

static const struct {
    unsigned bits;
    bool is_kept;
} sizes[] = {{1024, false}, {2040, false}, {2048, true}, {3072, true}};

START_TEST(small_rsa_keys_are_left_out)
{
    struct signer *key = signer_create_rsa(sizes[_i].bits, "k");
    expect_kept(key, "", sizes[_i].is_kept);
    signer_destroy(key);
}
END_TEST

START_TEST(keys_without_an_id_or_of_another_curve_are_left_out)
{
    struct signer *key = signer_create("ES256", NULL);
    expect_kept(key, "", false);
    expect_kept(key, ",\"kid\":\"\"", false);
    expect_kept(key, ",\"kid\":7", false);
    expect_kept(key, ",\"kid\":\"k\"", true);
    signer_destroy(key);
    key = signer_create("ES512", "k");
    expect_kept(key, "", false);
    signer_destroy(key);
}
END_TEST

#define ON_CURVE                                                                                   \
    "\"kid\":\"k\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","                         \
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"" /* RFC 7515, A.3 */
static const struct {
    const char *key;
    size_t count;
} literal[] = {
    {"{\"kty\":\"EC\",\"crv\":\"P-256\"," ON_CURVE "}", 1},
    {"{\"kty\":\"EC\",\"crv\":\"P-384\"," ON_CURVE "}", 0},
    {"{\"kty\":\"ec\",\"crv\":\"P-256\"," ON_CURVE "}", 0},
    {"{\"crv\":\"P-256\"," ON_CURVE "}", 0},
    {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"k\","
     "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
     "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a4\"}",
     0}, /* off the curve; bits left */
    {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"k\","
     "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
     "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a8\"}",
     0},
    {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"k\","
     "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
     "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5aw\"}",
     0}, /* off the curve */
    {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"k\",\"x\":\"\",\"y\":\"\"}", 0},
    {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"k\"}", 0},
    {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"k\","
     "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
     1}, /* RFC 8037, A.2 */
    {"{\"kty\":\"OKP\",\"crv\":\"X25519\",\"kid\":\"k\","
     "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
     0},
    {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"k\",\"x\":\"11qY\"}", 0},
    {"{\"kty\":\"oct\",\"kid\":\"k\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T\"}", 0},
    {"{\"kty\":\"oct\",\"kid\":\"k\"}", 0},
    {"{\"kty\":\"RSA\",\"kid\":\"k\",\"n\":\"AQAB\",\"e\":\"AQAB\"}", 0},
    {"{\"kty\":\"RSA\",\"kid\":\"k\",\"n\":\"\",\"e\":\"\"}", 0},
    {"{\"kty\":\"RSA\",\"kid\":\"k\",\"n\":\"AAAA\",\"e\":\"AAAA\"}", 0},
    {"{}", 0},
    {"null", 0},
    {"[]", 0},
    {"\"key\"", 0},
};

START_TEST(an_unusable_key_is_left_out)
{
    char *text = memory_format("{\"keys\":[%s]}", literal[_i].key);
    struct key_set *set = key_set_of(text);
    ck_assert_uint_eq(key_set_count(set), literal[_i].count);
    key_set_unref(set);
    free(text);
}
END_TEST

/* A modulus of 2,048 bits with exponents that make a signature worth nothing, or dear. */
START_TEST(strange_exponents_are_left_out)
{
    static const struct {
        const char *e;
        size_t count;
    } exponents[] = {{"AQAB", 1},           {"Aw", 1},     {"AQ", 0}, {"AA", 0}, {"Ag", 0},
                     {"AAAAAAAAAAEAAQ", 1}, {"AQAAAAE", 0}};
    char modulus[343];
    memset(modulus, '_', 342);
    modulus[341] = 'w';
    modulus[342] = '\0';
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++) {
        char *text =
            memory_format("{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"k\",\"n\":\"%s\",\"e\":\"%s\"}]}",
                          modulus, exponents[i].e);
        struct key_set *set = key_set_of(text);
        ck_assert_msg(key_set_count(set) == exponents[i].count, "%s", exponents[i].e);
        key_set_unref(set);
        free(text);
    }
}
END_TEST

static const char *const bad_sets[] = {
    "",
    "null",
    "[]",
    "{}",
    "{\"keys\":{}}",
    "{\"keys\":[]",
    "{\"keys\":[],\"keys\":[]}",
    "{\"keys\":[{\"kid\":\"a\",\"kid\":\"b\"}]}",
    "{\"keys\":[\"\xff\"]}",
    "{\"keys\":[]}x",
};

START_TEST(a_malformed_set_is_refused)
{
    struct error error = {0};
    ck_assert_ptr_null(key_set_parse(str_from(bad_sets[_i]), &error));
    ck_assert_str_ne(error.message, "");
}
END_TEST

START_TEST(a_set_has_bounds)
{
    struct buffer text = {0};
    struct error error = {0};
    for (unsigned count = 100; count <= 101; count++) {
        buffer_clear(&text);
        buffer_append_text(&text, "{\"keys\":[{}");
        for (unsigned i = 1; i < count; i++)
            buffer_append_text(&text, ",{}");
        buffer_append_text(&text, "]}");
        struct key_set *set = key_set_parse(buffer_str(&text), &error);
        ck_assert(count == 100 ? set != NULL : set == NULL);
        key_set_unref(set);
    }
    ck_assert_str_eq(error.message, "the key set has more than 100 keys");
    buffer_clear(&text);
    buffer_append_text(&text, "{\"keys\":[]}");
    while (text.length < KEY_SET_MAX_BYTES)
        buffer_append_char(&text, ' ');
    struct key_set *set = key_set_parse(buffer_str(&text), &error);
    ck_assert_ptr_nonnull(set);
    key_set_unref(set);
    buffer_append_char(&text, ' ');
    ck_assert_ptr_null(key_set_parse(buffer_str(&text), &error));
    ck_assert_str_eq(error.message, "the key set is larger than 1048576 bytes");
    buffer_finish(&text);
}
END_TEST

/* An issuer that gives two keys one id, as in the middle of a rotation. */
START_TEST(of_two_keys_with_one_id_either_is_good)
{
    struct signer *first = signer_create("ES256", "k");
    struct buffer text = {0};
    struct identity *identity;
    buffer_append_text(&text, "{\"keys\":[");
    signer_write_jwk(first, "", &text);
    buffer_append_char(&text, ',');
    signer_write_jwk(signer, "", &text);
    buffer_append_text(&text, "]}");
    key_set_unref(keys);
    keys = key_set_parse(buffer_str(&text), NULL);
    ck_assert_uint_eq(key_set_count(keys), 2);
    expect_refused(TOKEN_OK, verify_claims("{" CLAIMS "}", &identity));
    identity_unref(identity);
    buffer_finish(&text);
    signer_destroy(first);
}
END_TEST

#define ROWS(table) ((int)(sizeof(table) / sizeof *(table)))

Suite *key_set_suite(void)
{
    Suite *suite = suite_create("key set");
    TCase *tests = tcase_create("keys");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, scene_setup, scene_teardown);
    tcase_add_loop_test(tests, keys_for_other_purposes_are_left_out, 0, ROWS(members));
    tcase_add_test(tests, an_rsa_key_is_for_the_algorithm_that_it_names);
    tcase_add_loop_test(tests, small_rsa_keys_are_left_out, 0, ROWS(sizes));
    tcase_add_test(tests, keys_without_an_id_or_of_another_curve_are_left_out);
    tcase_add_loop_test(tests, an_unusable_key_is_left_out, 0, ROWS(literal));
    tcase_add_test(tests, strange_exponents_are_left_out);
    tcase_add_loop_test(tests, a_malformed_set_is_refused, 0, ROWS(bad_sets));
    tcase_add_test(tests, a_set_has_bounds);
    tcase_add_test(tests, of_two_keys_with_one_id_either_is_good);
    suite_add_tcase(suite, tests);
    return suite;
}
