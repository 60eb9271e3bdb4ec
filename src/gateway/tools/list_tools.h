/*
 * Regular expressions that an agent chooses (POSIX extended, over bytes, found anywhere in a name):
 * no expression of 256 bytes takes more than a few thousand steps for a byte of the name, where
 * regexec() takes time without bound. Without repetition counts and back references. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

struct name_pattern;

/* NULL: `fault` says why, as "has a ( without its )". */
struct name_pattern *name_pattern_create(struct str text, const char **fault);
/* NULL is allowed. */
void name_pattern_destroy(struct name_pattern *pattern);
bool name_pattern_matches(const struct name_pattern *pattern, struct str name);
