/*
 * Single values of the types in keys.h: from text to the field that the key's row names.
 */
#pragma once

#include "keys.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* Any single value but a choice, from the file or from the table's default. `target` is the
 * struct of the mapping. false with `error` when the row does not allow it. */
bool scalar_store(const struct key *key, struct str text, void *target, struct error *error);
/* A number or a choice, in the width of its field; not at all where the key has none. */
void scalar_store_number(const struct key *key, void *target, int64_t value);
