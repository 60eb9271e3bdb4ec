/* The owner that a request speaks for. */
#pragma once

#include <stdbool.h>

#include "taskgate/config/config.h"
#include "taskgate/core/digest.h"
#include "taskgate/core/str.h"
#include "taskgate/identity/identity.h"
#include "taskgate/policy/policy.h"

#define OWNER_BYTES 80
/* The owner of the requests of one session that have no token: the session's digest follows. */
#define OWNER_SESSION "session:"
/* The owner of all requests with neither token nor session: its tasks are found by their ids
 * alone, by any request without a token. */
#define OWNER_ANONYMOUS "anonymous"
/* The one owner of all requests without a token, where a source has `identity: anonymous`. */
#define OWNER_SHARED OWNER_ANONYMOUS ":shared"

/* The digest of the token. Spellings that a server reads alike have one digest: the scheme counts
 * in lower case (RFC 9110 §11.1), and white space inside counts as one blank. A value of one word
 * has no scheme. */
void authorization_digest(struct str value, char hex[DIGEST_HEX_BYTES]);

/* Behaviour 4.2, 4.3. `token` and `session` are digests, "" without one. */
void owner_write(char owner[OWNER_BYTES], const char *token, const char *session,
                 enum config_identity identity);
/* Whether any client may be the owner: OWNER_ANONYMOUS or OWNER_SHARED. Nobody vouches for it, and
 * limits tell its clients apart by their addresses. */
bool owner_is_anybody(const char *owner);
/* Whether it is gone with its session. */
bool owner_is_session(const char *owner);

/* Fills `verified` with what the policy knows of the identity, whose texts stay the identity's, and
 * returns it; NULL for NULL. Any thread. */
const struct policy_verified *verified_from(const struct identity *identity,
                                            struct policy_verified *verified);
