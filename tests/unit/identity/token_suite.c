/* A token's parts, header and signature. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "identity_test.h"
#include "jose.h"
#include "taskgate/core/memory.h"

static const char *const algorithms[] = {"RS256", "PS256", "ES256", "ES384", "EdDSA"};
#define ALGORITHMS 5

static void use_key(struct signer *key)
{
    struct buffer set = {0};
    buffer_append_text(&set, "{\"keys\":[");
    signer_write_jwk(key, "", &set);
    buffer_append_text(&set, "]}");
    buffer_append_char(&set, '\0');
    key_set_unref(keys);
    keys = key_set_of(set.bytes);
    buffer_finish(&set);
}

static void write_token(struct signer *key, const char *algorithm, struct buffer *token)
{
    char *header = memory_format("{\"alg\":\"%s\",\"kid\":\"k\"}", algorithm);
    signer_write_token(key, algorithm, str_from(header), STR("{" CLAIMS "}"), token);
    free(header);
}

START_TEST(each_algorithm_is_verified)
{
    struct signer *key = signer_create(algorithms[_i], "k");
    struct buffer token = {0};
    struct identity *identity;
    use_key(key);
    write_token(key, algorithms[_i], &token);
    expect_refused(TOKEN_OK, verify_text(buffer_str(&token), &identity));
    ck_assert_str_eq(identity->subject, "alice");
    identity_unref(identity);

    /* A change at any place counts. */
    for (size_t i = 0; i < token.length; i += 11) {
        char kept = token.bytes[i];
        token.bytes[i] = kept == 'A' ? 'B' : 'A';
        ck_assert_int_ne(verify_text(buffer_str(&token), &identity), TOKEN_OK);
        token.bytes[i] = kept;
    }
    ck_assert_uint_eq(ERR_peek_error(), 0);
    buffer_finish(&token);
    signer_destroy(key);
}
END_TEST

START_TEST(another_key_under_the_same_id_is_refused)
{
    struct signer *key = signer_create(algorithms[_i], "k"),
                  *other = signer_create(algorithms[_i], "k");
    struct buffer token = {0};
    struct identity *identity;
    use_key(other);
    write_token(key, algorithms[_i], &token);
    expect_refused(TOKEN_SIGNATURE, verify_text(buffer_str(&token), &identity));
    buffer_finish(&token);
    signer_destroy(key);
    signer_destroy(other);
}
END_TEST

/* The header says one thing and the key is another: no key fits, whatever was signed. */
START_TEST(keys_of_the_wrong_type_do_not_fit)
{
    int named = _i / ALGORITHMS, held = _i % ALGORITHMS;
    bool is_rsa = named < 2 && held < 2;
    if (named == held || is_rsa)
        return;
    struct signer *key = signer_create(algorithms[held], "k");
    struct buffer token = {0};
    struct identity *identity;
    use_key(key);
    char *header = memory_format("{\"alg\":\"%s\",\"kid\":\"k\"}", algorithms[named]);
    signer_write_token(key, algorithms[held], str_from(header), STR("{" CLAIMS "}"), &token);
    free(header);
    expect_refused(TOKEN_KEY_UNKNOWN, verify_text(buffer_str(&token), &identity));
    buffer_finish(&token);
    signer_destroy(key);
}
END_TEST

static const struct {
    const char *header;
    enum token_error error;
} headers[] = {
    {"{\"alg\":\"ES256\",\"kid\":\"k\"}", TOKEN_OK},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"typ\":\"JWT\"}", TOKEN_OK},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"typ\":\"jwt\"}", TOKEN_OK},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"typ\":\"application/AT+JWT\"}", TOKEN_OK},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"jku\":\"https://evil.example/keys\"}", TOKEN_OK},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"typ\":\"logout+jwt\"}", TOKEN_TYPE},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"typ\":\"dpop+jwt\"}", TOKEN_TYPE},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"typ\":1}", TOKEN_HEADER},
    {"{\"alg\":\"none\",\"kid\":\"k\"}", TOKEN_ALGORITHM},
    {"{\"alg\":\"nOnE\",\"kid\":\"k\"}", TOKEN_ALGORITHM},
    {"{\"alg\":\"HS256\",\"kid\":\"k\"}", TOKEN_ALGORITHM},
    {"{\"alg\":\"ES512\",\"kid\":\"k\"}", TOKEN_ALGORITHM},
    {"{\"alg\":\"es256\",\"kid\":\"k\"}", TOKEN_ALGORITHM},
    {"{\"alg\":\"ES256\\u0000\",\"kid\":\"k\"}", TOKEN_ALGORITHM},
    {"{\"alg\":\"\",\"kid\":\"k\"}", TOKEN_ALGORITHM},
    {"{\"alg\":[\"ES256\"],\"kid\":\"k\"}", TOKEN_HEADER},
    {"{\"kid\":\"k\"}", TOKEN_HEADER},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"crit\":[\"exp\"],\"exp\":1}", TOKEN_CRITICAL},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"crit\":[]}", TOKEN_CRITICAL},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"crit\":[\"b64\"],\"b64\":false}", TOKEN_CRITICAL},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"enc\":\"A128GCM\"}", TOKEN_ENCRYPTED},
    {"{\"alg\":\"ES256\"}", TOKEN_KEY_MISSING},
    {"{\"alg\":\"ES256\",\"kid\":\"other\"}", TOKEN_KEY_UNKNOWN},
    {"{\"alg\":\"ES256\",\"kid\":\"k\\u0000\"}", TOKEN_KEY_UNKNOWN},
    {"{\"alg\":\"ES256\",\"kid\":\"\"}", TOKEN_KEY_UNKNOWN},
    {"{\"alg\":\"ES256\",\"kid\":7}", TOKEN_HEADER},
    {"{\"alg\":\"ES256\",\"alg\":\"ES256\",\"kid\":\"k\"}", TOKEN_HEADER},
    {"{\"alg\":\"ES256\",\"\\u0061lg\":\"none\",\"kid\":\"k\"}", TOKEN_HEADER},
    {"{\"alg\":\"ES256\",\"kid\":\"k\",\"x\":\"\xff\"}", TOKEN_HEADER},
    {"{\"alg\":\"ES256\",\"kid\":\"k\"}}", TOKEN_HEADER},
    {"[\"ES256\"]", TOKEN_HEADER},
    {"ES256", TOKEN_HEADER},
};

START_TEST(headers_are_judged)
{
    struct identity *identity;
    expect_refused(headers[_i].error, verify_signed(headers[_i].header, "{" CLAIMS "}", &identity));
    identity_unref(identity);
}
END_TEST

START_TEST(an_id_token_is_no_access_token)
{
    struct identity *identity;
    rules.kind = TOKEN_ID;
    expect_refused(TOKEN_TYPE, verify_claims("{" CLAIMS "}", &identity));
    rules.kind = TOKEN_EITHER;
    expect_refused(TOKEN_OK, verify_claims("{" CLAIMS "}", &identity));
    identity_unref(identity);
}
END_TEST

/* The classic: the public key, which everybody knows, as the secret of HMAC. */
START_TEST(hmac_with_the_public_key_is_refused)
{
    struct signer *key = signer_create("RS256", "k");
    struct buffer jwk = {0}, token = {0};
    struct identity *identity;
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    use_key(key);
    signer_write_jwk(key, "", &jwk);
    base64url_encode(STR("{\"alg\":\"HS256\",\"kid\":\"k\"}"), &token);
    buffer_append_char(&token, '.');
    base64url_encode(STR("{" CLAIMS "}"), &token);
    HMAC(EVP_sha256(), jwk.bytes, (int)jwk.length, (unsigned char *)token.bytes, token.length, mac,
         &length);
    buffer_append_char(&token, '.');
    base64url_encode(str_slice((char *)mac, length), &token);
    expect_refused(TOKEN_ALGORITHM, verify_text(buffer_str(&token), &identity));
    buffer_finish(&jwk);
    buffer_finish(&token);
    signer_destroy(key);
}
END_TEST

static const struct {
    const char *text;
    enum token_error error;
} texts[] = {
    {"", TOKEN_MALFORMED},
    {"opaque", TOKEN_MALFORMED},
    {".", TOKEN_MALFORMED},
    {"..", TOKEN_MALFORMED},
    {"e30.e30", TOKEN_MALFORMED},
    {".e30.e30", TOKEN_MALFORMED},
    {"e30..e30", TOKEN_MALFORMED},
    {"e30.e30.e30.e30", TOKEN_MALFORMED},
    {"e30.e30.e30.e30.e30.e30", TOKEN_MALFORMED},
    {"e30.e30.e30=", TOKEN_MALFORMED},
    {"e30.e30.e3", TOKEN_MALFORMED},
    {"e30.e30.e30 ", TOKEN_MALFORMED},
    {"e30.e30.e30.e30.e30", TOKEN_ENCRYPTED},
    {"e30....", TOKEN_ENCRYPTED},
    {"e30.e30.e30", TOKEN_HEADER},
    {"eyJhbGciOiJub25lIn0.e30.", TOKEN_ALGORITHM}, /* {"alg":"none"} and no signature */
};

START_TEST(other_texts_are_refused)
{
    struct identity *identity;
    expect_refused(texts[_i].error, verify_text(str_from(texts[_i].text), &identity));
}
END_TEST

START_TEST(large_tokens_are_refused_unread)
{
    struct buffer token = {0};
    struct identity *identity;
    for (size_t i = 0; i < (size_t)1024 * 1024; i++)
        buffer_append_char(&token, i % 1000 ? 'e' : '.');
    expect_refused(TOKEN_TOO_LARGE, verify_text(buffer_str(&token), &identity));
    token.length = TOKEN_MAX_BYTES;
    expect_refused(TOKEN_MALFORMED, verify_text(buffer_str(&token), &identity));
    buffer_finish(&token);
}
END_TEST

START_TEST(a_signature_of_another_length_is_refused)
{
    struct buffer token = {0}, longer = {0}, signature = {0};
    struct identity *identity;
    write_token(signer, "ES256", &token);
    struct str text = buffer_str(&token);
    size_t at = text.length - 86; /* of 64 bytes */
    ck_assert_int_eq(text.bytes[at - 1], '.');
    ck_assert(base64url_decode(str_slice(text.bytes + at, 86), &signature));
    /* The same two numbers with a zero in front of each: the library alone would take it. */
    struct buffer padded = {0};
    for (unsigned half = 0; half < 2; half++) {
        buffer_append_char(&padded, '\0');
        buffer_append(&padded, str_slice(signature.bytes + 32 * half, 32));
    }
    buffer_append(&longer, str_slice(text.bytes, at));
    base64url_encode(buffer_str(&padded), &longer);
    expect_refused(TOKEN_SIGNATURE, verify_text(buffer_str(&longer), &identity));
    buffer_finish(&padded);
    buffer_finish(&signature);
    buffer_finish(&longer);
    buffer_finish(&token);
}
END_TEST

Suite *token_suite(void)
{
    Suite *suite = suite_create("token");
    TCase *tests = tcase_create("parts");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, scene_setup, scene_teardown);
    tcase_add_loop_test(tests, each_algorithm_is_verified, 0, ALGORITHMS);
    tcase_add_loop_test(tests, another_key_under_the_same_id_is_refused, 0, ALGORITHMS);
    tcase_add_loop_test(tests, keys_of_the_wrong_type_do_not_fit, 0, ALGORITHMS * ALGORITHMS);
    tcase_add_loop_test(tests, headers_are_judged, 0, (int)(sizeof headers / sizeof *headers));
    tcase_add_test(tests, an_id_token_is_no_access_token);
    tcase_add_test(tests, hmac_with_the_public_key_is_refused);
    tcase_add_loop_test(tests, other_texts_are_refused, 0, (int)(sizeof texts / sizeof *texts));
    tcase_add_test(tests, large_tokens_are_refused_unread);
    tcase_add_test(tests, a_signature_of_another_length_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
