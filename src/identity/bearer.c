/* The bearer token of a request. */
#include <ctype.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/identity/token.h"

static bool is_token_letter(unsigned char c)
{
    return isalnum(c) || (c && strchr("-._~+/", c));
}

/* RFC 6750 §2.1, b64token. */
static bool is_token_text(struct str text)
{
    size_t i = 0;
    while (i < text.length && is_token_letter((unsigned char)text.bytes[i]))
        i++;
    size_t letters = i;
    while (i < text.length && text.bytes[i] == '=')
        i++;
    return letters > 0 && i == text.length;
}

enum token_error token_from_value(struct str value, struct str *token)
{
    struct str scheme, rest;
    str_cut(str_trim(value), ' ', &scheme, &rest);
    if (!str_equal_ignore_case(scheme, STR("bearer")))
        return TOKEN_SCHEME;
    rest = str_trim(rest);
    if (rest.length > TOKEN_MAX_BYTES)
        return TOKEN_TOO_LARGE;
    if (!is_token_text(rest))
        return TOKEN_MALFORMED;
    *token = rest;
    return TOKEN_OK;
}

enum token_error token_from_request(const struct http_exchange *exchange, struct str *token)
{
    struct str value = STR_EMPTY;
    unsigned found = 0;
    for (size_t i = 0; i < http_header_count(exchange); i++) {
        struct http_header header = http_header_at(exchange, i);
        if (!str_equal_ignore_case(header.name, STR("authorization")))
            continue;
        value = header.value;
        found++;
    }
    if (found != 1)
        return found ? TOKEN_SEVERAL : TOKEN_ABSENT;
    return token_from_value(value, token);
}

/* The table of refusals. */

static const struct {
    const char *name, *code, *description;
} rows[TOKEN_ERROR_COUNT] = {
#define TOKEN_ERROR_ROW(symbol, name, code, description) {name, code, description},
#include "taskgate/identity/token_error_table.h"
#undef TOKEN_ERROR_ROW
};

const char *token_error_name(enum token_error error)
{
    ASSERT_NUMBERS(error, <, TOKEN_ERROR_COUNT);
    return rows[error].name;
}

const char *token_error_code(enum token_error error)
{
    ASSERT_NUMBERS(error, <, TOKEN_ERROR_COUNT);
    return rows[error].code;
}

const char *token_error_description(enum token_error error)
{
    ASSERT_NUMBERS(error, <, TOKEN_ERROR_COUNT);
    return rows[error].description;
}

int token_error_status(enum token_error error)
{
    ASSERT_NUMBERS(error, <, TOKEN_ERROR_COUNT);
    const char *code = rows[error].code;
    if (strcmp(code, "temporarily_unavailable") == 0)
        return 503;
    return strcmp(code, "insufficient_scope") == 0 ? 403 : 401;
}
