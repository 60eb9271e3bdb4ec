/* taskgate tasks list. */
#pragma once

#include <stdbool.h>

#include "admin_client.h"

/* As they stand on the command line; NULL where one is not given. */
struct tasks_filters {
    const char *state, *source, *tool, *cursor, *limit;
    bool json;
};

/* Prints tasks. For people those that wait stand first, the most urgent one before the others, and
 * then the newest of the rest; as JSON, or from a cursor on, they are as the endpoint gives them.
 * Returns an exit code. */
int tasks_print_list(struct admin_client *client, const struct tasks_filters *filters);
