/* Integers of headers and JSON, compared without rounding. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"

/* The value of a decimal number that is an integer within ±(2^53−1): `42`, `42.0`, and with
 * `allows_exponent` also `4.2e1`. false: another text, a fraction, or beyond. */
bool exact_integer_read(struct str text, bool allows_exponent, int64_t *value);
