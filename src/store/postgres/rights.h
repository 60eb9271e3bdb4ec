/*
 * The rights of a role that owns no table: what a gateway needs of them, for the tables that are
 * there and for those that later versions add.
 */
#pragma once

#include <stdbool.h>

#include "connection.h"
#include "taskgate/core/buffer.h"

/* Gives `role` the rights; the connection's own role owns the tables. False with database->error,
 * and then nothing was given. */
bool rights_grant(struct database *database, const char *role);
/* Appends the beginning of a transaction in the schema of the tables. False with
 * database->error. */
bool rights_write_head(struct database *database, struct buffer *sql);
/* Appends the statements that do so. False with database->error. */
bool rights_write(struct database *database, const char *role, struct buffer *sql);
