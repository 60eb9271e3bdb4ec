/* A compact JWT: its three parts, its header, its signature, its claims, in this order. */
#include "taskgate/identity/token.h"

#include "claims.h"
#include "jose.h"
#include "key_set_internal.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

/* Keys of one id that are tried: a set should have one. */
#define MAX_TRIED_KEYS 4

struct token {
    struct str text;                         /* all of it */
    struct str signature_text;               /* the third part, as it came */
    struct buffer header, claims, signature; /* decoded */
    struct buffer key_id;
    enum jose_algorithm algorithm;
};

static void token_finish(struct token *token)
{
    buffer_finish(&token->header);
    buffer_finish(&token->claims);
    buffer_finish(&token->signature);
    buffer_finish(&token->key_id);
}

static enum token_error split(struct token *token)
{
    struct str parts[5], rest = token->text;
    unsigned count = 0;
    bool is_more = true;
    while (is_more && count < 5)
        is_more = str_cut(rest, '.', &parts[count++], &rest);
    if (count == 5 && !is_more)
        return TOKEN_ENCRYPTED; /* RFC 7516 §7.1: a JWE has five */
    if (count != 3)
        return TOKEN_MALFORMED;
    token->signature_text = parts[2];
    /* An empty signature is that of an unsecured token, whose algorithm says why it is refused. */
    if (!parts[0].length || !parts[1].length || !base64url_decode(parts[0], &token->header) ||
        !base64url_decode(parts[1], &token->claims) ||
        !base64url_decode(parts[2], &token->signature))
        return TOKEN_MALFORMED;
    return TOKEN_OK;
}

static bool is_object(const struct buffer *text)
{
    return json_check(buffer_str(text), NULL) && json_type(buffer_str(text)) == JSON_OBJECT;
}

/* RFC 7515 §4.1.9: "application/" may be left out, case does not matter; RFC 8725 §3.11: other
 * kinds of JWT are not taken for ours. */
static enum token_error judge_type(struct str type, enum token_kind kind)
{
    if (!type.length)
        return TOKEN_OK;
    OWNED_BUFFER(name);
    enum token_error error = TOKEN_TYPE;
    if (!json_decode_string(type, &name))
        error = TOKEN_HEADER;
    struct str text = buffer_str(&name), prefix = STR("application/");
    if (text.length > prefix.length &&
        str_equal_ignore_case(str_slice(text.bytes, prefix.length), prefix))
        text = str_slice(text.bytes + prefix.length, text.length - prefix.length);
    if (str_equal_ignore_case(text, STR("jwt")) ||
        (kind != TOKEN_ID && str_equal_ignore_case(text, STR("at+jwt"))))
        error = TOKEN_OK;
    return error;
}

static enum token_error read_algorithm(struct token *token, struct str value)
{
    OWNED_BUFFER(name);
    enum token_error error = TOKEN_OK;
    if (!json_decode_string(value, &name))
        error = TOKEN_HEADER;
    else if (!jose_algorithm_parse(buffer_str(&name), &token->algorithm))
        error = TOKEN_ALGORITHM;
    return error;
}

static enum token_error token_read_header(struct token *token, enum token_kind kind)
{
    enum { ALG, TYP, KID, CRIT, ENC, COUNT };
    static const char *const names[COUNT] = {"alg", "typ", "kid", "crit", "enc"};
    struct str members[COUNT];
    if (!is_object(&token->header))
        return TOKEN_HEADER;
    json_members(buffer_str(&token->header), names, COUNT, members);
    if (members[ENC].length)
        return TOKEN_ENCRYPTED;
    if (members[CRIT].length)
        return TOKEN_CRITICAL; /* RFC 7515 §4.1.11: nothing that it may name is understood here */
    enum token_error error = judge_type(members[TYP], kind);
    if (error == TOKEN_OK)
        error = read_algorithm(token, members[ALG]);
    if (error != TOKEN_OK)
        return error;
    if (!members[KID].length)
        return TOKEN_KEY_MISSING;
    return json_decode_string(members[KID], &token->key_id) ? TOKEN_OK : TOKEN_HEADER;
}

static enum token_error token_check_signature(const struct token *token, const struct key_set *keys)
{
    enum token_error error = TOKEN_KEY_UNKNOWN;
    const struct jose_key *key;
    size_t position = 0;
    for (unsigned tried = 0; tried < MAX_TRIED_KEYS; tried++) {
        key = key_set_next(keys, buffer_str(&token->key_id), token->algorithm, &position);
        if (!key)
            break;
        if (jose_verify(key, token->algorithm, token->text, token->signature_text,
                        buffer_str(&token->signature)))
            return TOKEN_OK;
        error = TOKEN_SIGNATURE;
    }
    return error;
}

/* ---- the claims ---- */

static enum token_error judge_issuer(struct str claims, const struct token_rules *rules)
{
    struct str issuer = json_member(claims, "iss");
    return json_string_equals(issuer, str_from(rules->issuer)) ? TOKEN_OK : TOKEN_ISSUER;
}

/* A text, or a list of texts and nothing else (RFC 7519 §4.1.3). */
static enum token_error judge_audience(struct str claims, const struct token_rules *rules,
                                       size_t *count)
{
    struct str audience = json_member(claims, "aud"), element, wanted = str_from(rules->audience);
    *count = 1;
    if (json_type(audience) == JSON_STRING)
        return json_string_equals(audience, wanted) ? TOKEN_OK : TOKEN_AUDIENCE;
    if (json_type(audience) == JSON_NONE)
        return TOKEN_AUDIENCE;
    if (json_type(audience) != JSON_ARRAY)
        return TOKEN_CLAIMS;
    bool is_ours = false;
    *count = 0;
    for (size_t at = 0; json_next_element(audience, &at, &element); ++*count) {
        if (json_type(element) != JSON_STRING)
            return TOKEN_CLAIMS;
        is_ours = is_ours || json_string_equals(element, wanted);
    }
    return is_ours ? TOKEN_OK : TOKEN_AUDIENCE;
}

static enum token_error judge_times(struct str claims, const struct token_rules *rules,
                                    int64_t now_ms, int64_t *until_ms)
{
    struct str exp = json_member(claims, "exp"), nbf = json_member(claims, "nbf");
    int64_t expires_ms, begins_ms = 0;
    if (json_type(exp) == JSON_NONE)
        return TOKEN_NO_EXPIRY;
    if (!claim_time(exp, &expires_ms) || (nbf.length && !claim_time(nbf, &begins_ms)))
        return TOKEN_CLAIMS;
    if (now_ms >= expires_ms + rules->leeway_ms)
        return TOKEN_EXPIRED;
    if (now_ms + rules->leeway_ms < begins_ms)
        return TOKEN_NOT_YET;
    *until_ms = now_ms < expires_ms ? expires_ms : expires_ms + rules->leeway_ms;
    return TOKEN_OK;
}

/* OpenID Connect Core §3.1.3.7, 3 to 5; RFC 9068 has `client_id` instead of `azp`. */
static enum token_error judge_client(struct str claims, const struct token_rules *rules,
                                     size_t audiences)
{
    if (!rules->client_id)
        return TOKEN_OK;
    static const char *const names[] = {"azp", "client_id"};
    struct str values[2], ours = str_from(rules->client_id);
    json_members(claims, names, 2, values);
    for (unsigned i = 0; i < 2; i++) {
        if (values[i].length && !json_string_equals(values[i], ours))
            return TOKEN_CLIENT;
    }
    bool is_said = values[0].length || (values[1].length && rules->kind != TOKEN_ID);
    return audiences > 1 && !is_said ? TOKEN_CLIENT : TOKEN_OK;
}

static enum token_error judge_nonce(struct str claims, const struct token_rules *rules)
{
    if (!rules->nonce)
        return TOKEN_OK;
    OWNED char *nonce = json_plain_text(json_member(claims, "nonce"));
    return nonce && str_equal_constant_time(str_from(nonce), str_from(rules->nonce)) ? TOKEN_OK
                                                                                     : TOKEN_NONCE;
}

enum token_error token_judge_claims(struct str claims, const struct token_rules *rules,
                                    int64_t now_ms, int64_t *until_ms)
{
    size_t audiences = 0;
    enum token_error error = judge_issuer(claims, rules);
    if (error == TOKEN_OK)
        error = judge_audience(claims, rules, &audiences);
    if (error == TOKEN_OK)
        error = judge_times(claims, rules, now_ms, until_ms);
    if (error == TOKEN_OK)
        error = judge_client(claims, rules, audiences);
    return error == TOKEN_OK ? judge_nonce(claims, rules) : error;
}

/* ---- the whole ---- */

static enum token_error token_read_token(struct token *token, const struct key_set *keys,
                                         const struct token_rules *rules, int64_t now_ms,
                                         struct identity **identity)
{
    int64_t until_ms = 0;
    if (token->text.length > TOKEN_MAX_BYTES)
        return TOKEN_TOO_LARGE;
    enum token_error error = split(token);
    if (error == TOKEN_OK)
        error = token_read_header(token, rules->kind);
    if (error == TOKEN_OK)
        error = token_check_signature(token, keys);
    if (error == TOKEN_OK && !is_object(&token->claims))
        error = TOKEN_CLAIMS;
    if (error == TOKEN_OK)
        error = token_judge_claims(buffer_str(&token->claims), rules, now_ms, &until_ms);
    if (error != TOKEN_OK)
        return error;
    struct identity *created =
        identity_create(buffer_str(&token->claims), rules->issuer, &rules->shape, until_ms);
    if (!created)
        return TOKEN_SUBJECT;
    *identity = created;
    return TOKEN_OK;
}

enum token_error token_verify(struct str text, const struct key_set *keys,
                              const struct token_rules *rules, int64_t now_ms,
                              struct identity **identity)
{
    struct token token = {.text = text};
    enum token_error error = token_read_token(&token, keys, rules, now_ms, identity);
    token_finish(&token);
    return error;
}
