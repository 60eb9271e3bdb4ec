/*
 * Which sessions each principal has, the one not seen for longest first, so that one of them
 * cannot have all that are remembered (`limits.sessions_per_principal`). Shared by all workers
 * behind a short lock. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"

struct session_holders;

struct session_holders *session_holders_create(void);
void session_holders_destroy(struct session_holders *holders); /* NULL is allowed */

/* `holder` was seen in `session`. When it thereby has more than `most` (0: there is no limit), the
 * name of the one that it has no longer, which the caller frees; else NULL. */
char *session_holders_see(struct session_holders *holders, struct str holder, struct str session,
                          int64_t most);
/* It is remembered no longer. */
void session_holders_leave(struct session_holders *holders, struct str holder, struct str session);
