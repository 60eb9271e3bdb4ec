/* Keys that a lenient reader would take for a protocol key. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

/* Whether `key` equals `name` (ASCII) once case is folded as some JSON libraries do. */
bool lookalike(struct str key, struct str name);
