/* The kind of database that a place names. No other part of the program knows all kinds. */
#pragma once

#include <stdbool.h>

#include "taskgate/config/config.h"
#include "taskgate/store/store.h"

/* A URL with `://` in it is a shared database, anything else an SQLite file. */
const struct store_backend *store_choice_of(const char *place);
