/* Durations as people write them. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* humantime ("10m", "1h 30m", "2d", "500ms") or ISO-8601 ("PT10M", "P1DT2H"). Overflow and
 * sub-millisecond results that are not 0 are errors. */
bool duration_parse(struct str text, int64_t *ms, struct error *error);
/* "10m", "1h 30m", "500ms". */
void duration_format(int64_t ms, char text[64]);
