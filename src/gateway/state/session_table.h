/*
 * The sessions between clients and servers: what each side said of itself. Shared by all workers,
 * in shards with short locks, and bounded (`limits.sessions`): the session not seen for longest
 * makes room. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "seen_table.h"
#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

#define SESSION_NAME_BYTES 128
#define SESSION_VERSION_BYTES 24
/* For so long a replica does not ask the database again for a session that is not there. The commit
 * of another replica that has opened it may be slow. */
#define SESSION_UNKNOWN_KEPT_MS 1000
/* Stored beside the client's capabilities: {"elicitation": …, "sampling": …}, true for what the
 * gateway declared to the server in the client's place. */
#define SESSION_INJECTED "io.taskgate/injected"
/* The same of a bridged session: what its table below has of it. */
#define SESSION_GIVEN "io.taskgate/bridged"

/* The client's side: what it said of itself in `initialize`. */
struct client_session {
    bool declares_tasks, declares_elicitation, declares_sampling;
    char name[SESSION_NAME_BYTES];
    char version[SESSION_NAME_BYTES];
};

/* The server's side: what it answered, and what it was told in the client's place. */
struct server_session {
    bool has_tasks; /* meaning only when known; else the source's last value counts */
    bool has_task_status;
    bool lacks_resources;                         /* known to offer none */
    bool injected_elicitation, injected_sampling; /* the gateway's tools answer for the client */
};

/* The facts of a session, copied for one request. */
struct session_facts {
    bool known;
    int64_t unknown_until_ms; /* unless known: monotonic, when another replica may have opened it */
    char version[SESSION_VERSION_BYTES]; /* of the protocol, as negotiated */
    struct client_session client;
    struct server_session server;
};

struct seen_table *sessions_create(void);

/* `session` is the digest of the session id. */
void sessions_put(struct seen_table *sessions, struct str source, struct str session,
                  const struct session_facts *facts, int64_t limit);
/* Also counts the session as seen. */
bool sessions_get(struct seen_table *sessions, struct str source, struct str session,
                  struct session_facts *facts);

/*
 * The declarations of legacy clients in the sessions that the gateway gives out in front of modern
 * servers: one JSON object each, with `capabilities` (as modern requests declare them),
 * `clientInfo`, `logLevel`, `uris`, the resources that they have subscribed to, and `token`, the
 * digest of the token that the session is bound to. The first is always there.
 *
 * Shared by all workers in shards with short locks, and bounded as the other tables of sessions.
 * Any thread. `session` is the digest of a session's id.
 */

#define GIVEN_SESSION_TOKEN "token"
/* Of one session's text. */
#define GIVEN_SESSION_BYTES ((size_t)16384)

struct seen_table *given_sessions_create(void);
/* Past `limit` sessions the one that was not seen for longest is forgotten. */
void given_sessions_put(struct seen_table *sessions, struct str source, struct str session,
                        struct str text, int64_t limit);
/* Appends the text, and counts the session as seen. */
bool given_sessions_get(struct seen_table *sessions, struct str source, struct str session,
                        struct buffer *text);
/* Sets a member to a JSON text. */
bool given_sessions_set(struct seen_table *sessions, struct str source, struct str session,
                        const char *key, struct str value);
/* Adds a URI (decoded text) to `uris`, or takes it out. false: the session is not known, or its
 * text would be too long. */
bool given_sessions_subscribe(struct seen_table *sessions, struct str source, struct str session,
                              struct str uri, bool is_wanted);

/*
 * The (session, token) pairs that each server has accepted: its word that these credentials count.
 * Bounded by `limits.sessions` and `limits.sessions_per_principal`: the pair not seen for longest
 * makes room, of all or of the same token. Any thread. `session` and `token` are digests, and may
 * be empty.
 */

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
