/* Poolers between us and the server. */
#pragma once

#include "opening.h"

/* Refuses a pooler that gives each transaction another server process, as PgBouncer does in
 * transaction mode: settings, prepared statements and notifications would be somebody else's. */
enum opened pooler_check(struct database *database);
