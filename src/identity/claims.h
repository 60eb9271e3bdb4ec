/*
 * Single claims of a JSON object that json_check() has accepted. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"

/* The member of that name, else what stands at it as a path with dots. Empty when there is none:
 * names with dots in them are common ("https://example.com/groups"). */
struct str claim_find(struct str claims, const char *name);
/* A NumericDate (RFC 7519 §2) as milliseconds, cut to the year 9999 and to 0; false, with `ms`
 * untouched, when it is no number. */
bool claim_time(struct str value, int64_t *ms);
