/* Keys that a lenient reader would take for a protocol key. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

/* Whether `key` folds to what `name` (ASCII) folds to. */
bool lookalike(struct str key, struct str name);
