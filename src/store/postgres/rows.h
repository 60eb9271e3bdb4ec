/* Values of the rows that came. */
#pragma once

#include "row.h"
#include "taskgate/store/postgres_library.h"

struct value row_value(const PGresult *rows, int row, int column);
int64_t row_number(const PGresult *rows, int row, int column); /* INT64_MAX where it is NULL */
/* A view; empty where it is NULL. */
struct str row_bytes(const PGresult *rows, int row, int column);
void row_copy(char *field, size_t size, const PGresult *rows, int row, int column);
/* Clears the rows. The number in the first column of the first one; false: there is none. */
bool rows_take_number(PGresult *rows, int64_t *number);
/* ROW_FAILED where there is no result. */
enum row_result rows_any(const PGresult *rows);
