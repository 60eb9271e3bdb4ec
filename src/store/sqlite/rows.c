/* Helpers for all kinds of rows. */
#include "rows.h"

bool rows_run_with(struct database *database, unsigned which, int64_t number)
{
    sqlite3_stmt *statement = database_statement(database, which);
    sqlite3_bind_int64(statement, 1, number);
    return database_run(statement);
}

bool rows_read_number(sqlite3_stmt *row, int64_t *number)
{
    bool read = sqlite3_step(row) == SQLITE_ROW;
    *number = INT64_MAX;
    if (read && sqlite3_column_type(row, 0) != SQLITE_NULL)
        *number = sqlite3_column_int64(row, 0);
    database_release(row);
    return read;
}

bool rows_read_ids(sqlite3_stmt *statement, struct id_list *list)
{
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        id_list_add(list, database_column_bytes(statement, 0));
    database_release(statement);
    return code == SQLITE_DONE;
}

enum row_result rows_result(int code)
{
    if (code == SQLITE_ROW)
        return ROW_FOUND;
    return code == SQLITE_DONE ? ROW_ABSENT : ROW_FAILED;
}
