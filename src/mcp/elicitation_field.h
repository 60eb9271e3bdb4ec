/* One field of a form: its part of the schema, read once. One thread at a time. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

struct elicitation_field;

/* `schema` is JSON text that stays where it is; empty for a member that the form does not name. */
struct elicitation_field *elicitation_field_create(struct str schema);
/* NULL is allowed. */
void elicitation_field_destroy(struct elicitation_field *field);

/* Whether `value` (JSON text) answers the field. Takes time by the length of the value, and once
 * by that of the schema. false: `error` has the requirement. */
bool elicitation_field_check(struct elicitation_field *field, struct str value,
                             struct error *error);
