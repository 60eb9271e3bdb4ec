/* The statements of statements.h in the words of a database. */
#pragma once

#include "row.h"
#include "taskgate/core/buffer.h"

struct dialect {
    const char *prefix; /* of the names of tables */
    char mark;          /* before the number of a value */
    /* By enum statement: the database's own text, or NULL. Its further ones follow. */
    const char *const *own;
    /* Texts in place of {name}, which may have "{…}" in them; up to a name that is NULL. */
    const struct dialect_word {
        const char *name, *text;
    } * words;
};

/* Appends the statement, and a NUL that does not count. `which` may be one of the further ones. */
void statement_write(const struct dialect *dialect, unsigned which, struct buffer *out);
/* The same of a text that varies. */
void statement_write_text(const struct dialect *dialect, const char *text, struct buffer *out);
/* For people; of enum statement only. */
const char *statement_name(enum statement which);
