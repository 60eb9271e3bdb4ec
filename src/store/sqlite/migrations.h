/* The database's schema as a list of scripts; script n leads from user_version n to n + 1. A new
 * file gets one script, which has what all of them have. */
#pragma once

#include "database.h"

/* "tgdb": tells our files from other SQLite databases. */
#define MIGRATIONS_APPLICATION_ID 0x74676462

extern const char *const migration_scripts[];
extern const int migration_count; /* the user_version of this program */
/* The version that the script of schema.c is of. */
#define MIGRATIONS_SCHEMA_VERSION 36
extern const char migration_schema[];

/* Brings the database to migration_count, in one transaction. false: it is as it was. It may not be
 * ours, or from a newer program. */
bool migrations_apply(struct database *database, struct error *error);

/* Chains the audit rows of before there was a chain, in one transaction. Cheap when there are none.
 */
bool migrations_seal(struct database *database, struct error *error);
