/* Tokens are known by their SHA-256; what was sent is hashed and compared with each of them. */
#include "tokens.h"

#include "taskgate/core/digest.h"

struct operator_identity *tokens_authenticate(const struct request *request)
{
    struct str scheme, token;
    char sha256[65];
    if (!str_cut(http_header(request->exchange, "authorization"), ' ', &scheme, &token))
        return NULL;
    token = str_trim(token);
    if (!str_equal_ignore_case(scheme, STR("bearer")) || token.length == 0)
        return NULL;
    digest_sha256_hex(token, sha256);
    return operator_of_token(request->admin, request->snapshot->config, sha256);
}
