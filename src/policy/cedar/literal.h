/*
 * The text between the quotes of a string or a pattern.
 */
#pragma once

#include "ast.h"

/* The place and fault of a wrong literal. */
struct literal_error {
    size_t offset; /* from the opening quote */
    const char *message;
};

/* `literal` has its quotes. The result lives in `arena`, or in `literal` when nothing is
 * escaped. */
bool literal_string(struct arena *arena, struct str literal, struct str *text,
                    struct literal_error *error);
/* The same for `like`: a star is a wildcard, `\*` is a star. */
bool literal_pattern(struct arena *arena, struct str literal, struct pattern *pattern,
                     struct literal_error *error);
