/* The table of refusals. */
#include <string.h>

#include "taskgate/identity/token.h"

static const struct {
    const char *name, *code, *description;
} rows[TOKEN_ERROR_COUNT] = {
#define TOKEN_ERROR_ROW(symbol, name, code, description) {name, code, description},
#include "taskgate/identity/token_error_table.h"
#undef TOKEN_ERROR_ROW
};

const char *token_error_name(enum token_error error)
{
    return rows[error].name;
}

const char *token_error_code(enum token_error error)
{
    return rows[error].code;
}

const char *token_error_description(enum token_error error)
{
    return rows[error].description;
}

int token_error_status(enum token_error error)
{
    const char *code = rows[error].code;
    if (strcmp(code, "temporarily_unavailable") == 0)
        return 503;
    return strcmp(code, "insufficient_scope") == 0 ? 403 : 401;
}
