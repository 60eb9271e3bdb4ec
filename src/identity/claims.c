/* The checks of a token's claims. */
#include "claims.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"
#include "taskgate/json/text.h"

#define LATEST_MS INT64_C(253402300799000) /* the end of the year 9999 */

struct str claim_find(struct str claims, const char *name)
{
    struct str value = json_member(claims, name);
    struct str rest = str_from(name), step;
    if (value.length || !strchr(name, '.'))
        return value;
    value = claims;
    while (rest.length && value.length) {
        str_cut(rest, '.', &step, &rest);
        char *key = memory_copy_str(step);
        value = json_member(value, key);
        free(key);
    }
    return value;
}

char *claim_text(struct str value)
{
    size_t length = 0;
    char *text = json_string_text(value, &length);
    if (text && strlen(text) != length) {
        free(text);
        return NULL;
    }
    return text;
}

bool claim_time(struct str value, int64_t *ms)
{
    if (json_type(value) != JSON_NUMBER)
        return false;
    char *text = memory_copy_str(value);
    double seconds = strtod(text, NULL);
    free(text);
    if (seconds <= 0)
        *ms = 0;
    else
        *ms = seconds >= (double)LATEST_MS / 1000 ? LATEST_MS : (int64_t)(seconds * 1000);
    return true;
}

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
    char *nonce = claim_text(json_member(claims, "nonce"));
    bool is_ours = nonce && str_equal_constant_time(str_from(nonce), str_from(rules->nonce));
    free(nonce);
    return is_ours ? TOKEN_OK : TOKEN_NONCE;
}

enum token_error claims_judge(struct str claims, const struct token_rules *rules, int64_t now_ms,
                              int64_t *until_ms)
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
