/*
 * Why a token is refused: TOKEN_ERROR_ROW(symbol, name, error, description).
 * `name` is that of log and metric. `error` is the code of RFC 6750 §3.1, "" where the request had
 * no token at all and the challenge therefore names none. `description` is what the client is told:
 * plain ASCII without quotes and backslashes, never a part of the token.
 * Included many times; no guard on purpose.
 */
/* clang-format off */
#ifndef TOKEN_ERROR_ROW
#error "define TOKEN_ERROR_ROW before including this table"
#endif
TOKEN_ERROR_ROW(OK, "ok", "", "")
TOKEN_ERROR_ROW(ABSENT, "absent", "", "The request has no access token")
TOKEN_ERROR_ROW(SEVERAL, "several", "invalid_token", "The request has several Authorization headers")
TOKEN_ERROR_ROW(SCHEME, "scheme", "", "The Authorization header has no bearer token")
TOKEN_ERROR_ROW(TOO_LARGE, "too_large", "invalid_token", "The token is too large")
TOKEN_ERROR_ROW(MALFORMED, "malformed", "invalid_token", "The token is not a JWT")
TOKEN_ERROR_ROW(ENCRYPTED, "encrypted", "invalid_token", "Encrypted tokens are not accepted")
TOKEN_ERROR_ROW(HEADER, "header", "invalid_token", "The header of the token is malformed")
TOKEN_ERROR_ROW(TYPE, "type", "invalid_token", "The token is of another type")
TOKEN_ERROR_ROW(ALGORITHM, "algorithm", "invalid_token", "The signature algorithm of the token is not accepted")
TOKEN_ERROR_ROW(CRITICAL, "critical", "invalid_token", "The token has critical header parameters")
TOKEN_ERROR_ROW(KEY_MISSING, "key_missing", "invalid_token", "The token does not name its key")
TOKEN_ERROR_ROW(KEY_UNKNOWN, "key_unknown", "invalid_token", "The issuer has no such key")
TOKEN_ERROR_ROW(SIGNATURE, "signature", "invalid_token", "The signature of the token is wrong")
TOKEN_ERROR_ROW(CLAIMS, "claims", "invalid_token", "The claims of the token are malformed")
TOKEN_ERROR_ROW(ISSUER, "issuer", "invalid_token", "The token is of another issuer")
TOKEN_ERROR_ROW(AUDIENCE, "audience", "invalid_token", "The token is not meant for this resource")
TOKEN_ERROR_ROW(SUBJECT, "subject", "invalid_token", "The token has no subject")
TOKEN_ERROR_ROW(NO_EXPIRY, "no_expiry", "invalid_token", "The token does not say when it expires")
TOKEN_ERROR_ROW(EXPIRED, "expired", "invalid_token", "The token has expired")
TOKEN_ERROR_ROW(NOT_YET, "not_yet", "invalid_token", "The token is not valid yet")
TOKEN_ERROR_ROW(CLIENT, "client", "invalid_token", "The token was issued to another client")
TOKEN_ERROR_ROW(NONCE, "nonce", "invalid_token", "The token does not belong to this sign-in")
TOKEN_ERROR_ROW(SCOPE, "scope", "insufficient_scope", "The token does not have every scope that is needed")
TOKEN_ERROR_ROW(UNAVAILABLE, "unavailable", "temporarily_unavailable", "The keys of the issuer cannot be fetched")
TOKEN_ERROR_ROW(EXCHANGE_REFUSED, "exchange_refused", "invalid_token", "The token cannot be exchanged for one of the server")
TOKEN_ERROR_ROW(EXCHANGE_FORBIDDEN, "exchange_forbidden", "insufficient_scope", "The token is not exchanged for one of this server")
TOKEN_ERROR_ROW(EXCHANGE_UNAVAILABLE, "exchange_unavailable", "temporarily_unavailable", "Tokens cannot be exchanged now")
/* clang-format on */
