/* The kinds of database. */
#include "taskgate/server/store_choice.h"

#include <string.h>

#include "taskgate/store/postgres.h"
#include "taskgate/store/sqlite.h"

const struct store_backend *store_choice_of(const char *place)
{
    return strstr(place, "://") ? &store_postgres : &store_sqlite;
}

const struct store_backend *store_choice_backend(const struct config *config)
{
    return store_choice_of(config->store_url ? config->store_url : config->store_path);
}
