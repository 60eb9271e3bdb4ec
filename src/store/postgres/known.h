/*
 * What a transaction knows without asking again, because nobody else may write meanwhile; and what
 * it has counted, which is written once, with the commit.
 */
#pragma once

#include <stdint.h>

#include "backend.h"

/* Tasks that limits count, of all owners, and the bytes of tasks and of the trail. */
struct totals {
    int64_t tasks, pending, bytes;
};

struct known {
    bool has_totals, has_end, has_owner;
    struct totals totals; /* as they are in the database */
    struct store_chain end;
    char *owner; /* the last that was asked for, */
    int64_t owner_tasks;
    /* and which targets of the outbox want what, as it was asked last. */
    struct {
        enum outbox_whom whom;
        unsigned events;
        enum outbox_wanted wanted;
    } wanted[8];
    size_t wanted_count;
};
void known_forget(struct known *known);
