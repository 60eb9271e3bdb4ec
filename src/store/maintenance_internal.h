/* A database that a command has opened, without a store on it. */
#pragma once

#include "backend.h"
#include "row.h"
#include "taskgate/store/maintenance.h"

/* NULL with an error; `*work` then says which kind. */
struct database *site_open(const struct store_site *site, enum store_work *work,
                           struct error *error);

/* As store_copy(), but of a database that processes use: what it has at one moment. */
bool site_copy_moment(const struct store_site *from, const struct store_site *to,
                      struct error *error);
