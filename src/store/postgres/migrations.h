/*
 * The schema as a list of scripts; script n leads from version n to n + 1. A version of the program
 * serves beside the next one: scripts only add, and each version says which is the oldest that can
 * still use its schema.
 */
#pragma once

#include "connection.h"
#include "taskgate/core/buffer.h"

extern const int postgres_migration_count; /* the version of this program's schema */

/* Brings the schema up, under a lock. Nothing of a failed script remains. If there is nothing to
 * do, the right to read and write rows is enough. */
enum opened postgres_migrate(struct database *database);
/* Refuses a database without a schema, or with one that this program cannot read as it is. */
enum opened postgres_check_schema(struct database *database);

/* Appends the names of all tables, with that of their schema, which is written as it is given. */
void migrations_write_tables(struct str schema, struct buffer *sql);
/* Appends the statements that bring the schema up; none where there is nothing to do. False with
 * database->error. */
bool migrations_write_pending(struct database *database, struct buffer *sql);
