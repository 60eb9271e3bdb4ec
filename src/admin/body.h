/* The JSON body of a POST. */
#pragma once

#include "internal.h"
#include "taskgate/core/error.h"

/* Whether it is announced as JSON; else answers 415. `may_be_missing`: one of no bytes and no
 * type will do. */
bool body_is_json(const struct request *request, bool may_be_missing);
/* Whether the raw key between quotes, as json_next_member() gives it, reads `name`. */
bool body_key_is(struct str key, const char *name);
