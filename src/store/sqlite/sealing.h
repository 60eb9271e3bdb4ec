/* Chaining a trail from before there was a chain. */
#pragma once

#include "database.h"

/* Chains the rows in one transaction. Cheap when there are none. */
bool sealing_run(struct database *database, struct error *error);
