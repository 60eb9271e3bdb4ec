/* The tables of functions that make up store_sqlite, and what their files share. */
#pragma once

#include "backend.h"
#include "database.h"

/* Binds the number to the statement's only value, and runs it. */
bool rows_run_with(struct database *database, unsigned which, int64_t number);
/* The number in the first column of a bound statement's first row; INT64_MAX where it is NULL.
 * false: there is no row, or the database has failed. */
bool rows_read_number(sqlite3_stmt *row, int64_t *number);
/* The first columns of what a bound statement gives. */
bool rows_read_ids(sqlite3_stmt *statement, struct id_list *list);
/* After a step that should give at most one row. */
enum row_result rows_result(int code);
