/* The tables of functions that make up store_postgres. */
#pragma once

#include "connection.h"

/* Asks for something that is not known yet, and waits. */
bool known_ask(struct database *database, unsigned which, int kind, const bool *is_known);
/* Makes the totals of this transaction known. */
bool totals_know(struct database *database);
/* Takes the bytes of rows that have gone, the first number of `rows`, from the totals; clears it.
 */
bool totals_give_back(struct database *database, PGresult *rows);
