/*
 * Limits on requests per second: of one peer address (`limits.requests_per_second`), of one
 * principal (`limits.requests_per_second_per_principal`); off unless set. Each is shared by all
 * workers behind one short lock. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "state/seen_table.h"
#include "taskgate/core/str.h"

struct seen_table *rate_limit_create(void);
/* Whether that peer or principal may send one more request now: a bucket of twice the rate, which
 * fills with `per_second` a second. */
bool rate_limit_allows(struct seen_table *rate_limit, struct str peer, int64_t per_second,
                       int64_t monotonic_ms);
