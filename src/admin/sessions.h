/*
 * Sessions of operators who have signed in: a cookie in the browser, its digest and the issuer's
 * word of them in the store. They survive a restart, and end with max_age, a logout, or when the
 * configuration takes the person for another.
 */
#pragma once

#include "internal.h"

/* The issuer's word as it is kept: a JSON object of this shape, which the caller frees. */
extern const struct identity_shape sessions_kept_shape;
/* Of an operator. Groups only give rights, so those that are left out take some. */
#define SESSIONS_MOST_GROUPS 1000
char *sessions_write_claims(const struct identity *identity);
/* The ID token with which the session began, so that its end can be told to the issuer. It is kept
 * sealed with the cookie, which the store does not have. The caller overwrites and frees it; NULL
 * when there is none. */
char *sessions_open_token(const struct operator_identity *who, struct str cookie);

enum session_result { SESSION_OK, SESSION_NONE, SESSION_UNAVAILABLE };

/* `who`: one reference, the receiver's; NULL unless SESSION_OK. */
typedef void (*session_found)(void *context, enum session_result result,
                              struct operator_identity *who);
void sessions_find(struct admin *admin, struct str cookie, session_found callback, void *context);

typedef void (*session_stored)(void *context, bool is_stored);
/* Begins the session of this cookie; answers after the commit. `config` says for how long; `token`
 * is the ID token. */
void sessions_begin(struct admin *admin, const struct config *config, const char *cookie,
                    const struct operator_identity *who, const char *token, session_stored callback,
                    void *context);
/* Ends it, with its open streams and waits. */
void sessions_end(struct admin *admin, struct str cookie, session_stored callback, void *context);

/*
 * A text that only the holder of a secret can read again: AES-256-GCM under a key that is derived
 * from the secret. The sealed text alone, such as that in a copy of the store, tells nothing.
 */
/* `secret` has 256 random bits or more, and its digest may be known. The sealed text is
 * hexadecimal; the caller frees it. */
char *seal_close(struct str secret, struct str text);
/* The text, which the caller overwrites and frees; NULL when it was sealed with another secret, or
 * was changed. */
char *seal_open(struct str secret, struct str sealed);
