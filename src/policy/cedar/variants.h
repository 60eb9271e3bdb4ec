/* Names in a record that fold to the one that a policy asks for (taskgate/json/fold.h). */
#pragma once

#include "value.h"

/* A member whose name is not what it folds to. */
struct folded_name {
    struct str folded, name;
};

/* Whether the record was made by cedar_record_of_names(), and has a member of another name than
 * `name` that folds to what `name` folds to. */
bool record_has_variant(const struct cedar_record *record, struct arena *scratch, struct str name);
