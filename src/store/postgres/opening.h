/* Making a connection that may be used: settings, checks, schema. */
#pragma once

#include "connection.h"

enum opened {
    OPENED,
    OPENED_LATER,   /* the database cannot be reached now; it is worth trying again */
    OPENED_REFUSED, /* nobody can use it so: the password, the database, its version … */
};

/* Connects anew, waits at most `patience_ms`, and says in database->error why it has not. */
enum opened opening_connect(struct database *database, int64_t patience_ms);
