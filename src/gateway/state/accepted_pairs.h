/*
 * The (session, token) pairs that each server has accepted: its word that these credentials count.
 * Shared by all workers, in shards with short locks, and bounded (`limits.sessions`,
 * `limits.sessions_per_principal`): the pair not seen for longest makes room, of all or of the
 * same token. Any thread. `session` and `token` are digests, and may be empty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "seen_table.h"
#include "taskgate/config/config.h"
#include "taskgate/core/str.h"

struct seen_table *accepted_pairs_create(void);

/* The server has answered a request with the pair. True when this is news, so that it should be
 * written to the store. `*forgotten` is the session whose pair with this token made room, which the
 * caller frees; NULL without one. */
bool accepted_pairs_note(struct seen_table *pairs, struct str source, struct str session,
                         struct str token, int64_t monotonic_ms, const struct config_limits *limits,
                         char **forgotten);
/* How long ago the server last accepted the pair, which has been seen with this call; INT64_MAX
 * when it never did. */
int64_t accepted_pairs_ago_ms(struct seen_table *pairs, struct str source, struct str session,
                              struct str token, int64_t monotonic_ms);
/* How long ago the server last accepted the token in any session; INT64_MAX when it never did, or
 * all its sessions have ended. */
int64_t accepted_pairs_token_ago_ms(struct seen_table *pairs, struct str source, struct str token,
                                    int64_t monotonic_ms);
/* The session has ended, or made room: the token is accepted in it no longer. */
void accepted_pairs_remove(struct seen_table *pairs, struct str source, struct str session,
                           struct str token);
