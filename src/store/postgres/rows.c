/* Values of the rows that libpq gives. */
#include "rows.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

int64_t row_number(const PGresult *rows, int row, int column)
{
    const char *bytes = PQgetvalue(rows, row, column);
    uint64_t eight;
    uint32_t four;
    if (PQgetisnull(rows, row, column))
        return INT64_MAX;
    switch (PQgetlength(rows, row, column)) {
    case sizeof eight:
        memcpy(&eight, bytes, sizeof eight);
        return (int64_t)be64toh(eight);
    case sizeof four:
        memcpy(&four, bytes, sizeof four);
        return (int32_t)ntohl(four);
    default:
        return *bytes; /* a boolean */
    }
}

/* The types of what statements select that is not text: pg_type.dat. */
static bool is_number(Oid type)
{
    enum { BOOLEAN = 16, BIGINT = 20, INTEGER = 23 };
    return type == BIGINT || type == INTEGER || type == BOOLEAN;
}

struct value row_value(const PGresult *rows, int row, int column)
{
    if (PQgetisnull(rows, row, column))
        return NOTHING;
    if (is_number(PQftype(rows, column)))
        return NUMBER(row_number(rows, row, column));
    return STRING(row_bytes(rows, row, column));
}

struct str row_bytes(const PGresult *rows, int row, int column)
{
    return str_slice(PQgetvalue(rows, row, column), (size_t)PQgetlength(rows, row, column));
}

void row_copy(char *field, size_t size, const PGresult *rows, int row, int column)
{
    snprintf(field, size, "%.*s", STR_ARGS(row_bytes(rows, row, column)));
}

bool rows_take_number(PGresult *rows, int64_t *number)
{
    bool is_there = rows && PQntuples(rows) > 0;
    *number = is_there ? row_number(rows, 0, 0) : INT64_MAX;
    PQclear(rows);
    return is_there;
}

enum row_result rows_any(const PGresult *rows)
{
    if (!rows)
        return ROW_FAILED;
    return PQntuples(rows) > 0 ? ROW_FOUND : ROW_ABSENT;
}
