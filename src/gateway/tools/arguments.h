/*
 * The parameters of the gateway's own tools: one table of them makes the schema that a model
 * reads and the check of what it sends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"

enum pseudo_type { PSEUDO_TOOL_TEXT, PSEUDO_TOOL_NUMBER, PSEUDO_TOOL_BOOLEAN, PSEUDO_TOOL_OBJECT };

#define PSEUDO_TOOL_MOST_CHOICES 8

struct pseudo_parameter {
    const char *name; /* NULL ends a table */
    enum pseudo_type type;
    bool is_required;
    const char *description;
    const char *choices[PSEUDO_TOOL_MOST_CHOICES]; /* of a text; NULL ends them; none: any text */
    int64_t minimum, maximum; /* of a number; more than `maximum` counts as that */
    const char *default_json; /* for the reader; NULL: none */
};

/* A JSON Schema of an object with these members. */
void pseudo_write_schema(struct buffer *out, const struct pseudo_parameter *parameters);
/* Whether `arguments` (JSON text of an object, or empty) fits. If it does not, `problem` tells a
 * model why. Members that the table lacks are ignored. A null counts as not given. */
bool pseudo_check_arguments(struct str arguments, const struct pseudo_parameter *parameters,
                            struct buffer *problem);

/* ---- of arguments that have been checked ---- */
/* Decoded; false when it is not given. */
bool pseudo_argument_text(struct str arguments, const char *name, struct buffer *out);
int64_t pseudo_argument_number(struct str arguments, const char *name, int64_t most,
                               int64_t fallback);
bool pseudo_argument_is_true(struct str arguments, const char *name);
