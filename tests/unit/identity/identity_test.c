/* Runs the suites of the identity layer. */
#include "identity_test.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

struct token_rules rules;
struct signer *signer;
struct key_set *keys;

void scene_setup(void)
{
    rules = (struct token_rules){
        .kind = TOKEN_ACCESS, .issuer = ISSUER, .audience = AUDIENCE, .leeway_ms = 60000};
    signer = signer_create("ES256", "k");
    struct buffer set = {0};
    buffer_append_text(&set, "{\"keys\":[");
    signer_write_jwk(signer, "", &set);
    buffer_append_text(&set, "]}");
    buffer_append_char(&set, '\0');
    keys = key_set_of(set.bytes);
    buffer_finish(&set);
}

void scene_teardown(void)
{
    key_set_unref(keys);
    signer_destroy(signer);
}

struct key_set *key_set_of(const char *document)
{
    struct error error = {0};
    struct key_set *set = key_set_parse(str_from(document), &error);
    ck_assert_msg(set, "%s", error.message);
    return set;
}

enum token_error verify_text(struct str token, struct identity **identity)
{
    char *exact = memory_alloc(token.length ? token.length : 1);
    memcpy(exact, token.bytes, token.length);
    *identity = NULL;
    enum token_error error =
        token_verify(str_slice(exact, token.length), keys, &rules, NOW_MS, identity);
    free(exact);
    ck_assert((error == TOKEN_OK) == (*identity != NULL));
    return error;
}

enum token_error verify_signed(const char *header, const char *claims, struct identity **identity)
{
    struct buffer token = {0};
    signer_write_token(signer, "ES256", str_from(header), str_from(claims), &token);
    enum token_error error = verify_text(buffer_str(&token), identity);
    buffer_finish(&token);
    return error;
}

enum token_error verify_claims(const char *claims, struct identity **identity)
{
    return verify_signed("{\"alg\":\"ES256\",\"kid\":\"k\",\"typ\":\"at+jwt\"}", claims, identity);
}

int main(void)
{
    SRunner *runner = srunner_create(token_suite());
    srunner_add_suite(runner, base64url_suite());
    srunner_add_suite(runner, bearer_suite());
    srunner_add_suite(runner, claims_suite());
    srunner_add_suite(runner, exchange_suite());
    srunner_add_suite(runner, issuer_suite());
    srunner_add_suite(runner, key_set_suite());
    srunner_add_suite(runner, token_cache_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
