/* Tokens are known by their SHA-256; what was sent is hashed and compared with each of them. */
#include "tokens.h"

#include <string.h>

#include "taskgate/core/digest.h"

static unsigned with_implied(unsigned roles)
{
    return roles & ROLE_APPROVER ? roles | ROLE_VIEWER : roles;
}

/* Goes on after a match, so that the time does not tell which token it was. */
static bool find_operator(const struct admin *admin, const struct config *config,
                          const char *sha256, struct operator* operator)
{
    bool found = false;
    struct str digest = str_from(sha256);
    for (size_t i = 0; i < config->token_count; i++) {
        const struct config_token *token = &config->tokens[i];
        if (!str_equal_constant_time(digest, str_from(token->sha256)))
            continue;
        operator->name = token->name;
        operator->roles = with_implied(token->roles);
        found = true;
    }
    if (str_equal_constant_time(digest, str_from(admin->extra_token_sha256))) {
        operator->name = "admin";
        operator->roles = with_implied(ROLE_APPROVER);
        found = true;
    }
    return found;
}

bool tokens_authenticate(const struct admin *admin, const struct config *config,
                         const struct http_exchange *exchange, struct operator* operator)
{
    struct str scheme, token;
    if (!str_cut(http_header(exchange, "authorization"), ' ', &scheme, &token))
        return false;
    token = str_trim(token);
    if (!str_equal_ignore_case(scheme, STR("bearer")) || token.length == 0)
        return false;
    digest_sha256_hex(token, operator->sha256);
    return find_operator(admin, config, operator->sha256, operator);
}

bool tokens_still_allow(const struct admin *admin, const struct config *config, const char *sha256,
                        unsigned role)
{
    struct operator operator;
    return find_operator(admin, config, sha256, &operator) && (operator.roles & role) != 0;
}
