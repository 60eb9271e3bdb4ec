/* A second connection for a moment: who shares a server process with us? */
#include "pooler.h"

#include <poll.h>
#include <stdlib.h>

#include "place.h"
#include "taskgate/core/clock.h"

#define PATIENCE_MS 3000
#define ROUNDS 4

/* Runs `sql` on a blocking connection within the time; the number that it gives, or -1. */
static int64_t ask_number(PGconn *handle, const char *sql, int64_t until_ms)
{
    int64_t number = -1;
    PGresult *result;
    if (!PQsendQueryParams(handle, sql, 0, NULL, NULL, NULL, NULL, 0))
        return -1;
    while (PQisBusy(handle)) {
        struct pollfd look = {.fd = PQsocket(handle), .events = POLLIN};
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (left_ms <= 0 || poll(&look, 1, (int)left_ms) < 0 || !PQconsumeInput(handle))
            return -1;
    }
    while ((result = PQgetResult(handle))) {
        if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
            number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        else if (PQresultStatus(result) == PGRES_COMMAND_OK)
            number = 0;
        PQclear(result);
    }
    return number;
}

static PGconn *connect_second(const struct place *place)
{
    const char *const keywords[] = {"fallback_application_name", "dbname", "connect_timeout", NULL};
    const char *const values[] = {"taskgate", place->url, "3", NULL};
    return PQconnectdbParams(keywords, values, 1);
}

/* While the second is in a transaction, it holds its server process. Two sessions that have the
 * same one, or one that changes its own, do not have a process each. */
static bool is_shared(struct database *database, PGconn *second, int64_t until_ms)
{
    bool is_shared = false;
    for (int i = 0; i < ROUNDS && !is_shared; i++) {
        int64_t other;
        if (ask_number(second, "BEGIN", until_ms) < 0)
            return false;
        other = ask_number(second, "SELECT pg_backend_pid()", until_ms);
        int64_t own = -1;
        rows_take_number(connection_read_text(database, "SELECT pg_backend_pid()", NO_VALUES),
                         &own);
        is_shared = other == own || own != database->backend_id;
        if (ask_number(second, "COMMIT", until_ms) < 0)
            return is_shared;
    }
    return is_shared;
}

enum opened pooler_check(struct database *database)
{
    /* A pooler makes up the number by which a session is cancelled. */
    if (PQbackendPID(database->handle) == database->backend_id)
        return OPENED;
    PGconn *second = connect_second(database->place);
    bool found = PQstatus(second) == CONNECTION_OK &&
                 is_shared(database, second, clock_monotonic_ms() + PATIENCE_MS);
    PQfinish(second);
    if (!found)
        return database->handle ? OPENED : OPENED_LATER;
    error_set(&database->error,
              "%s is behind a pooler in transaction mode, where a session is not one server "
              "process; let the pooler use session mode (PgBouncer: pool_mode = session), or name "
              "the server itself in the store's URL",
              database->place->title);
    database->has_failed = true;
    return OPENED_REFUSED;
}
