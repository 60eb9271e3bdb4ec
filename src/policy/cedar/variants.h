/* Names in a record that fold to the one that a policy asks for (taskgate/json/fold.h). */
#pragma once

#include "value.h"

/* A member with a name that folding changes. */
struct folded_name {
    struct str folded, name;
};

/* Whether the record was made by cedar_record_of_names(), and has a member with another name but
 * the same folded name as `name`. */
bool record_has_variant(const struct cedar_record *record, struct arena *scratch, struct str name);
