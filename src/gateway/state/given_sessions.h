/*
 * The declarations of legacy clients in the sessions that the gateway gives out in front of modern
 * servers: one JSON object each, with `capabilities` (as modern requests declare them),
 * `clientInfo`, `logLevel`, `uris`, the resources that they have subscribed to, and `token`, the
 * digest of the token that the session is bound to. The first is always there.
 *
 * Shared by all workers in shards with short locks, and bounded as the other tables of sessions.
 * Any thread. `session` is the digest of a session's id.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

#define GIVEN_SESSION_TOKEN "token"
/* Of one session's text. */
#define GIVEN_SESSION_BYTES ((size_t)16384)

struct given_sessions;

struct given_sessions *given_sessions_create(void);
void given_sessions_destroy(struct given_sessions *sessions); /* NULL is allowed */

/* Past `limit` sessions the one that was not seen for longest is forgotten. */
void given_sessions_put(struct given_sessions *sessions, struct str source, struct str session,
                        struct str text, int64_t limit);
/* Appends the text, and counts the session as seen. */
bool given_sessions_get(struct given_sessions *sessions, struct str source, struct str session,
                        struct buffer *text);
/* Sets a member to a JSON text. */
bool given_sessions_set(struct given_sessions *sessions, struct str source, struct str session,
                        const char *key, struct str value);
/* Adds a URI (decoded text) to `uris`, or takes it out. false: the session is not known, or its
 * text would be too long. */
bool given_sessions_subscribe(struct given_sessions *sessions, struct str source,
                              struct str session, struct str uri, bool is_wanted);
void given_sessions_remove(struct given_sessions *sessions, struct str source, struct str session);
