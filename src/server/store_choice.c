/* The one place that knows all kinds. */
#include "store_choice.h"

#include "taskgate/store/sqlite.h"

const struct store_backend *store_choice_backend(const struct config *config)
{
    (void)config;
    return &store_sqlite;
}
