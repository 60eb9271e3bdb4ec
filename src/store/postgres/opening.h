/* Making a connection that may be used: settings, checks, schema. */
#pragma once

#include "connection.h"

/* Connects anew, waits at most `patience_ms`, and says in database->error why it has not. */
enum opened opening_connect(struct database *database, int64_t patience_ms);
