/*
 * The configuration in force: one immutable, reference-counted pair of configuration and compiled
 * policy. A request takes a reference when it comes in and keeps it to its end, so a reload never
 * changes a decision half-way (behaviour 2.7). Any thread.
 */
#pragma once

#include <stdint.h>

#include "taskgate/config/config.h"
#include "taskgate/policy/policy.h"

struct snapshot {
    struct config *config;
    struct policy *policy;
    struct policy *shadow; /* of config->shadow, or NULL: it decides nothing */
    uint64_t number;       /* no other snapshot of the process has it */
    int references;        /* atomic; of snapshot.c alone */
};

/* Takes over the reference to `config`; NULL with errors in `problems` when it cannot be
 * compiled. Warnings may be there in any case. */
struct snapshot *snapshot_create(struct config *config, struct config_problems *problems);
struct snapshot *snapshot_ref(struct snapshot *snapshot);
void snapshot_unref(struct snapshot *snapshot); /* NULL is allowed */

/* The one in force. snapshot_current() returns a new reference; snapshot_install() takes
 * over the caller's and releases the one before. */
struct snapshot *snapshot_current(void);
void snapshot_install(struct snapshot *snapshot); /* NULL at the end of the process */
