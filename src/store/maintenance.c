/* A database without a store on it: the schema, the hold. */
#include "taskgate/store/maintenance.h"

#include <string.h>

#include "maintenance_internal.h"
#include "replica_rows.h"
#include "taskgate/store/store.h"

bool store_is_in_use(const struct error *error)
{
    return strstr(error->message, BACKEND_IN_USE) != NULL;
}

struct database *site_open(const struct store_site *site, enum store_work *work,
                           struct error *error)
{
    *work = STORE_WORK_FAILED;
    struct database *database = site->backend->open(site->place, error);
    if (!database) {
        if (store_is_in_use(error))
            *work = STORE_WORK_CONFLICT;
        return NULL;
    }
    if (site->backend->is_in_place(database, error))
        return database;
    site->backend->close(database);
    return NULL;
}

static bool has_roles(const struct store_site *site, struct error *error)
{
    return site->backend->grant ||
           error_set(error,
                     "%s is a file, which knows neither roles nor statements; --grant-to "
                     "and --print are for PostgreSQL",
                     site->place);
}

enum store_work store_migrate(const struct store_site *site, const char *grant_to,
                              struct error *error)
{
    enum store_work work;
    if (grant_to && !has_roles(site, error))
        return STORE_WORK_FAILED;
    struct database *database = site_open(site, &work, error);
    if (!database)
        return work;
    bool done = !grant_to || site->backend->grant(database, grant_to, error);
    site->backend->close(database);
    return done ? STORE_WORK_DONE : STORE_WORK_FAILED;
}

char *store_migration(const struct store_site *site, const char *grant_to, struct error *error)
{
    return has_roles(site, error) ? site->backend->statements(site->place, grant_to, error) : NULL;
}

static bool maintenance_accept(const struct store_backend *backend, struct database *database,
                               bool *was_held, struct error *error)
{
    if (!backend->begin(database, true) || !replica_rows_is_held(database, was_held) ||
        !rows_write(database, STATEMENT_HOLD_DELETE, NO_VALUES))
        return backend->describe(database, "the database failed", error);
    return backend->commit(database, error) == COMMIT_DONE;
}

enum store_work store_accept_timeline(const struct store_site *site, bool *was_held,
                                      struct error *error)
{
    enum store_work work;
    struct database *database = site_open(site, &work, error);
    if (!database)
        return work;
    bool done = maintenance_accept(site->backend, database, was_held, error);
    if (!done)
        site->backend->rollback(database);
    site->backend->close(database);
    return done ? STORE_WORK_DONE : STORE_WORK_FAILED;
}
