/*
 * The sessions of each principal, the longest unseen first, so that one principal cannot use up all
 * sessions that are remembered (`limits.sessions_per_principal`). All workers share it behind a
 * short lock. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"

struct session_holders;

struct session_holders *session_holders_create(void);
void session_holders_destroy(struct session_holders *holders); /* NULL is allowed */

/* `holder` was seen in `session` now (`monotonic_ms`). If it has more than `most` sessions then (0:
 * no limit), it loses the longest unseen one: returns that name, which the caller frees. Else NULL.
 */
char *session_holders_see(struct session_holders *holders, struct str holder, struct str session,
                          int64_t most, int64_t monotonic_ms);
/* How long ago it was last seen in any session; INT64_MAX: it has none. */
int64_t session_holders_ago_ms(struct session_holders *holders, struct str holder,
                               int64_t monotonic_ms);
/* The holder has lost the session. */
void session_holders_leave(struct session_holders *holders, struct str holder, struct str session);
