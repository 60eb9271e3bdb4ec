/* How one worker reaches all of them. Any thread. */
#pragma once

#include "internal.h"

typedef void (*worker_callback)(struct gateway_worker *worker, struct task *task,
                                struct str message);
/* Runs `callback` on every worker's loop, the caller's own too, with its own reference of `task`
 * (may be NULL) and its own copy of `message` (may be empty). */
void workers_broadcast(struct gateway *gateway, worker_callback callback, struct task *task,
                       struct str message);
