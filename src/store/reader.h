/* A database that a command has opened for reading alone. */
#pragma once

#include "backend.h"
#include "row.h"
#include "taskgate/store/site.h"

/* NULL with an error. */
struct database *reader_open(const struct store_site *site, struct error *error);
/* Closes it (NULL is allowed). Returns `is_good`; where that is false, an open database says why.
 */
bool reader_close(const struct store_site *site, struct database *database, bool is_good,
                  struct error *error);
