/*
 * How many tasks are undecided or run without a decision, per owner and in all, for the limits.
 * Kept beside the database, because counting ten thousand rows at every create would be the slowest
 * part of it.
 */
#pragma once

#include <stdint.h>

#include "backend.h"

struct pending {
    struct map *owners;    /* owner -> count, without zeros */
    int64_t limited_total; /* undecided, or running without a decision: what limits count */
    int64_t pending_total; /* what waits for a human */
};

void pending_init(struct pending *pending);
void pending_finish(struct pending *pending);
/* Counts anew what the database holds: at the start, and after a rollback. */
bool pending_load(struct pending *pending, const struct store_backend *backend,
                  struct database *database);
int64_t pending_of_owner(const struct pending *pending, const char *owner);
/* A task has come into being, or left `from`. */
void pending_note_created(struct pending *pending, const struct task *task);
void pending_note_moved(struct pending *pending, const struct task *task, enum task_state from);
