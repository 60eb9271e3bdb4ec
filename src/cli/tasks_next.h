/* taskgate tasks next: the waiting calls one after the other, decided by single keys. */
#pragma once

#include "admin_client.h"

/* Shows the most urgent task and waits for a key, until nothing waits that was not skipped, or the
 * person leaves. Keys come from standard input, a terminal or not. Returns an exit code. */
int tasks_next(struct admin_client *client);
