/* Whom a request speaks for. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/str.h"

#define OWNER_BYTES 80
/* Of everybody who has neither token nor session: what it owns is found by its id alone. */
#define OWNER_ANONYMOUS "anonymous"

/* The digest by which its holder is known. Spellings that a server reads alike have one digest: the
 * scheme counts in lower case (RFC 9110 §11.1), white space inside as one blank. A value that is
 * one word has no scheme. */
void authorization_digest(struct str value, char hex[DIGEST_HEX_BYTES]);

/* Contract "Sessions, owners". `token` and `session` are digests, "" without one. */
void owner_write(char owner[OWNER_BYTES], const char *token, const char *session,
                 bool is_session_owner);
