/*
 * Environment variables: one table of names, units and targets, applied over the file
 * (behaviour 2.3: a variable wins over its key).
 */
#pragma once

#include "validate.h"

enum variable_kind {
    VARIABLE_NUMBER,         /* stored times the spelling's factor */
    VARIABLE_ADDRESS,        /* char *, an IP address */
    VARIABLE_TEXT,           /* char *, over the key of the file */
    VARIABLE_FORCE_REQUIRED, /* tool names with commas, added to the file's */
    VARIABLE_UPSTREAM,       /* replaces the url of a single source */
    VARIABLE_REFUSED,        /* only `allowed` values may stand there */
    VARIABLE_WITHOUT_EFFECT, /* a warning says so, with `help` as the hint */
    VARIABLE_ELSEWHERE,      /* read by another part of the program */
};

#define MAX_SPELLINGS 3

struct variable {
    enum variable_kind kind;
    struct {
        const char *name;
        int64_t factor;         /* of VARIABLE_NUMBER */
    } spellings[MAX_SPELLINGS]; /* the first that is set wins */
    size_t offset, size;        /* in struct config */
    int64_t minimum, maximum;   /* of the stored number */
    const char *rule;           /* id of the reference's rule that the range is */
    const char *allowed;        /* of VARIABLE_REFUSED: separated by spaces, in lower case */
    const char *default_text;   /* in the first spelling's unit; NULL: the key's value */
    const char *sets;           /* the key it wins over, or NULL */
    const char *help;
};

extern const struct variable environment_table[];
extern const size_t environment_count;

/* Stores defaults and set values, and reports bad values: a malformed number with a warning (the
 * variable then counts as unset), any other with an error. */
void environment_apply(const struct draft *draft);
