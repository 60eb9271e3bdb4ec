/*
 * A key set, as token_verify() sees it.
 */
#pragma once

#include <stdbool.h>

#include "jose.h"
#include "taskgate/identity/key_set.h"

/* The next key from `*position` on (0 at first) that has this id and may sign by this algorithm;
 * NULL when there is no more. */
const struct jose_key *key_set_next(const struct key_set *set, struct str id,
                                    enum jose_algorithm algorithm, size_t *position);
