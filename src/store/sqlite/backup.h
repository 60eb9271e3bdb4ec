/* A copy by SQLite itself, page by page. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"

/* `target` is there and empty. A copy that has failed is left behind. */
bool sqlite_backup(const char *path, const char *target, struct error *error);
