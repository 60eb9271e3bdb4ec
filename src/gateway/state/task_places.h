/*
 * The tasks of clients that nobody has verified, by the address that they came from: a token can be
 * made up, so that `limits.pending_per_principal` alone holds nobody off. All workers share it
 * behind a short lock. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"

struct task_places;

struct task_places *task_places_create(void);
void task_places_destroy(struct task_places *places); /* NULL is allowed */
/* A place for the task, which has none yet; false: `address` has `most` already. */
bool task_places_take(struct task_places *places, struct str task, struct str address,
                      int64_t most);
/* The task counts no more, or never was. One without a place is passed over. */
void task_places_give_back(struct task_places *places, struct str task);
