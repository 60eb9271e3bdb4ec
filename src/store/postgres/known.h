/*
 * The rows that a transaction knows without asking again, because nobody else may write meanwhile;
 * and its counts, which are written once, with the commit.
 */
#pragma once

#include <stdint.h>

#include "rows.h"
#include "taskgate/store/chain.h"

/* A command that was sent: what becomes of its result. */
enum sent_kind {
    SENT_PREPARE,
    SENT_WRITE,
    SENT_READ,
    SENT_LOOK, /* first of a transaction: the clock, and values of struct known */
    SENT_OWNER,
    SENT_TOTALS,
    SENT_END,
    SENT_GRANTS,
    SENT_TARGETS,
    SENT_COMMIT,
    SENT_SYNC,
};

/* Tasks that limits count, of all owners, and the bytes of tasks and of the trail. */
struct totals {
    int64_t tasks, pending, bytes;
};

struct known {
    bool has_totals, has_end;
    struct totals totals; /* as they are in the database */
    struct store_chain end;
    struct known_owner {
        char *owner;
        int64_t tasks, bytes;
    } * owners;
    size_t owner_count, owner_capacity;
    struct id_list ids;                     /* of tasks that are there */
    bool has_looked_for_grants, has_grants; /* whether any is in force */
    bool has_targets;
    struct known_target {
        unsigned events;
        bool with_arguments;
    } * targets;
    size_t target_count;
};
void known_forget(struct known *known);
/* NULL: not known. */
const struct known_owner *known_find_owner(const struct known *known, struct str owner);
bool known_has_id(const struct known *known, struct str id);
/* Takes what is in the rows of a statement that was sent for it. */
void known_take(struct known *known, enum sent_kind kind, const PGresult *rows);
