/*
 * The rows that a transaction writes once, right before its commit, so that many operations cost
 * few statements: the tasks counted of each owner, and the changes added to the feed. An operation
 * that is undone takes back its counts; it has added nothing to the feed. Used by the thread of the
 * connection.
 */
#pragma once

#include <stdint.h>

#include "backend.h"
#include "task_rows.h"
#include "taskgate/core/buffer.h"

struct owed {
    struct owed_owner {
        char *owner;
        struct limited_change change, at_mark; /* of what limits count of him */
    } * owners;
    size_t owner_count, owner_capacity;
    struct buffer feed_ids, feed_created; /* lists with commas */
    size_t feed_count;
    char *feed_replica; /* of all of them */
    int64_t feed_at_ms;
};

void owed_init(struct owed *owed);
/* Forgets everything, as a new transaction does. */
void owed_finish(struct owed *owed);
struct limited_change owed_of(const struct owed *owed, struct str owner);
void owed_add(struct owed *owed, struct str owner, const struct limited_change *change);
/* Counts that are added after the mark can be taken back. */
void owed_mark(struct owed *owed);
void owed_return_to_mark(struct owed *owed);
/* The values of a FEED_ADD: id, replica, created, at_ms. All of a transaction are of one replica.
 */
void owed_add_change(struct owed *owed, const struct value *values);
bool owed_is_any(const struct owed *owed);
/* Queues the writes. */
bool owed_write(struct database *database);
