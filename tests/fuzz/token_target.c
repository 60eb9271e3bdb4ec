/*
 * A token's three parts and the key set, with keys that nobody can sign by: whatever comes, no
 * token is good. Texts in base64url have one spelling. Claims, which a good signature would stand
 * in front of, are judged on their own, and what passes is what it must be.
 */
#include <string.h>

#include "fuzz.h"
#include "jose.h"
#include "key_set_internal.h"
#include "taskgate/core/memory.h"
#include "taskgate/identity/token.h"
#include "taskgate/json/text.h"

#define NOW_MS INT64_C(1800000000000)

static const struct token_rules rules = {.issuer = "https://i",
                                         .audience = "a",
                                         .client_id = "c",
                                         .leeway_ms = 60000,
                                         .shape = {.groups_claim = "g.r"}};

/* Of RFC 7515 A.3, RFC 8037 A.2 and RFC 7515 A.2. */
static const char known[] =
    "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"e\","
    "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"},"
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"o\","
    "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"},"
    "{\"kty\":\"RSA\",\"kid\":\"r\",\"e\":\"AQAB\",\"n\":"
    "\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt"
    "0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXn"
    "dS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5Ih"
    "lJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\"}]}";

static void expect_refused(struct str token, const struct key_set *keys)
{
    struct identity *identity = NULL;
    enum token_error error = token_verify(token, keys, &rules, NOW_MS, &identity);
    FUZZ_EXPECT(error != TOKEN_OK && error < TOKEN_ERROR_COUNT && identity == NULL);
}

static void judge_claims(struct str text)
{
    int64_t until_ms = 0;
    if (!json_check(text, NULL) || json_type(text) != JSON_OBJECT ||
        token_judge_claims(text, &rules, NOW_MS, &until_ms) != TOKEN_OK)
        return;
    FUZZ_EXPECT(until_ms > NOW_MS);
    FUZZ_EXPECT(json_string_equals(json_member(text, "iss"), STR("https://i")));
    struct identity *identity = identity_create(text, rules.issuer, &rules.shape, until_ms);
    if (!identity)
        return;
    FUZZ_EXPECT(*identity->subject && strlen(identity->owner) == 68);
    for (size_t i = 0; i < identity->groups.count; i++)
        FUZZ_EXPECT(identity_has_group(identity, identity->groups.items[i]));
    for (size_t i = 0; i < identity->scopes.count; i++)
        FUZZ_EXPECT(!strchr(identity->scopes.items[i], ' '));
    identity_unref(identity);
}

static void one_spelling(struct str text)
{
    struct buffer bytes = {0}, again = {0};
    if (base64url_decode(text, &bytes)) {
        base64url_encode(buffer_str(&bytes), &again);
        FUZZ_EXPECT(str_equal(text, buffer_str(&again)));
    }
    buffer_finish(&bytes);
    buffer_finish(&again);
}

/* The first two bytes say how long the parts are that are put together. */
static void put_together(struct str text, const struct key_set *keys)
{
    struct fuzz_input input = {(const uint8_t *)text.bytes, text.length};
    size_t header = fuzz_byte(&input), signature = fuzz_byte(&input);
    struct buffer token = {0};
    base64url_encode(fuzz_text(&input, header), &token);
    buffer_append_char(&token, '.');
    struct str bytes = fuzz_text(&input, signature);
    struct str claims = fuzz_text(&input, SIZE_MAX);
    base64url_encode(claims, &token);
    buffer_append_char(&token, '.');
    base64url_encode(bytes, &token);
    expect_refused(buffer_str(&token), keys);
    buffer_finish(&token);
    judge_claims(claims);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct key_set *keys;
    struct fuzz_input input = {data, size};
    struct str token = STR_EMPTY;
    if (!keys)
        keys = key_set_parse(str_from(known), NULL);
    FUZZ_EXPECT(keys && key_set_count(keys) == 3);
    uint8_t kind = fuzz_byte(&input);
    struct str text = fuzz_text(&input, SIZE_MAX);
    if (kind % 4 == 0) {
        struct key_set *set = key_set_parse(text, NULL);
        if (set) {
            FUZZ_EXPECT(key_set_count(set) + key_set_ignored_count(set) <= KEY_SET_MAX_KEYS);
            expect_refused(STR("eyJhbGciOiJFUzI1NiIsImtpZCI6ImUifQ.e30.AAAA"), set);
        }
        key_set_unref(set);
    } else if (kind % 4 == 1) {
        put_together(text, keys);
    } else if (kind % 4 == 2) {
        judge_claims(text);
    } else {
        one_spelling(text);
        if (token_from_value(text, &token) == TOKEN_OK)
            expect_refused(token, keys);
        expect_refused(text, keys);
    }
    return 0;
}
