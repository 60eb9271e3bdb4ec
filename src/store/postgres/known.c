/* Totals, and what a transaction forgets. */
#include "known.h"

#include <stdlib.h>

#include "rows.h"

void known_forget(struct known *known)
{
    free(known->owner);
    *known = (struct known){.has_totals = false};
}

bool totals_know(struct database *database)
{
    struct known *known = &database->known;
    if (known->has_totals)
        return true;
    PGresult *rows = connection_read(database, STATEMENT_TOTALS_GET, NO_VALUES);
    known->has_totals = rows_any(rows) == ROW_FOUND;
    if (known->has_totals)
        known->totals =
            (struct totals){row_number(rows, 0, 0), row_number(rows, 0, 1), row_number(rows, 0, 2)};
    PQclear(rows);
    return known->has_totals;
}

bool totals_give_back(struct database *database, PGresult *rows)
{
    int64_t bytes;
    if (!rows_take_number(rows, &bytes))
        return false;
    database->counted.bytes -= bytes;
    return true;
}

bool totals_write(struct database *database)
{
    const struct totals counted = database->counted;
    database->counted = (struct totals){0, 0, 0};
    if (counted.tasks == 0 && counted.pending == 0 && counted.bytes == 0)
        return true;
    return connection_write(
        database, STATEMENT_TOTALS_ADD,
        VALUES(NUMBER(counted.tasks), NUMBER(counted.pending), NUMBER(counted.bytes)));
}
