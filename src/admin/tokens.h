/* Bearer tokens of operators. */
#pragma once

#include "internal.h"

/* Who has sent the request: the holder of the token in its Authorization header; one reference.
 * NULL: there is none, or one that nobody has. */
struct operator_identity *tokens_authenticate(const struct request *request);
