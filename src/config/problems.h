/*
 * Findings of the parts of the config module. Each has its place. All are collected, and none is
 * fatal by itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/config/config.h"

/* The place of a finding; line 0 when it has none in a file. */
struct place {
    const char *file; /* or the variable's name; NULL when neither */
    int line, column;
};

/* `hint` may be NULL; everything is copied. */
void problems_error(struct config_problems *problems, struct place place, const char *key,
                    const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void problems_warning(struct config_problems *problems, struct place place, const char *key,
                      const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Whether the same has been found at the same place. */
bool problems_have(const struct config_problems *problems, bool is_warning, struct place place,
                   const char *message);

/* `text` in double quotes, escaped and cut to a length fit for a message. The caller frees. */
char *problems_quote(const char *text);
