/* Rows of the trail and anchors, for the readers beside the store as well. */
#pragma once

#include "rows.h"

/* AUDIT_COLUMNS of a stepped statement; valid until the next step. */
void audit_rows_read(struct audit_row *row, sqlite3_stmt *statement);
/* Of a row of number, hash, time and signature. */
void audit_rows_read_anchor(sqlite3_stmt *row, struct store_anchor *anchor);

/* Chains the rows of a trail from before there was a chain, in one transaction. Cheap when there
 * are none. */
bool audit_rows_seal(struct database *database, struct error *error);
