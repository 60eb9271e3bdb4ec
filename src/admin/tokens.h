/* Bearer tokens of operators. */
#pragma once

#include "internal.h"

/* Whose token the request brings in its Authorization header: the configured ones and the
 * extra one are all compared, in constant time. false: none, or one that nobody has. */
bool tokens_authenticate(const struct admin *admin, const struct config *config,
                         const struct http_exchange *exchange, struct operator* operator);
/* Whether a token that was good when a stream began still has the role. */
bool tokens_still_allow(const struct admin *admin, const struct config *config, const char *sha256,
                        unsigned role);
