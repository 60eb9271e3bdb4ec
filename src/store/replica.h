/*
 * This process among those that may share the database: its id, its epoch, its leases, and how far
 * it has read the feed of changes.
 *
 * An execution is claimed by id and epoch. A replica that was silent is fenced: its epoch ends, its
 * executions end with an unknown outcome, and what it still has to say of them is not stored. If
 * the database is one process's alone, no heartbeat, lease or feed is written. Behaviour 16.2.
 */
#pragma once

#include "operation.h"

/* Work that one of several replicas does. LEASE_ROW(symbol, name). */
#define LEASE_TABLE(LEASE_ROW)                                                                     \
    LEASE_ROW(SWEEP, "sweep")   /* deadlines, purging, anchors */                                  \
    LEASE_ROW(OUTBOX, "outbox") /* deliveries to endpoints */

enum lease {
#define LEASE_ROW(symbol, name) LEASE_##symbol,
    LEASE_TABLE(LEASE_ROW)
#undef LEASE_ROW
        LEASE_COUNT
};

/* Another process that has this one's id, and has told of itself lately. */
struct rival {
    int64_t epoch, alive_ms, since_ms; /* since when it is watched */
};

/* The tasks that this process has claimed lately, by id. */
#define CLAIMS_KEPT 4096
struct claims {
    char (*ids)[TASK_ID_BYTES]; /* a ring */
    size_t count;               /* of all that were ever added */
};

/* The reasons of tasks whose replica is gone: of a call that was promoted, and of the others. */
#define REPLICA_LOST_PROMOTED "upstream connection lost"
#define REPLICA_LOST_EXECUTING                                                                     \
    "The gateway stopped while the call was running: outcome unknown. It may have taken effect; "  \
    "it is not run again by itself."

/* Own changes that were committed and not read in the feed yet, in its order. */
struct told {
    struct task **tasks; /* one reference each */
    size_t count, capacity;
};

struct replica {
    char *id;
    int64_t epoch;      /* 0 before it has joined */
    int64_t last_epoch; /* that it had, or may have had */
    int64_t
        watching_since_ms; /* the store's clock: since when it would have heard others; 0: not */
    int64_t beaten_ms;     /* the store's clock, at the last heartbeat */
    int64_t lease_until_ms[LEASE_COUNT]; /* the store's clock */
    int64_t notices_dropped; /* of endpoints that are gone, since the log has told of them */
    unsigned sessions_put, pairs_put; /* counts */
    int64_t waits_measured_ms;        /* when a sweep has looked at the tasks that wait */
    struct feed_place seen;           /* the last change that observers were told of */
    bool has_blocks;                  /* callers may be blocked: false only if none is */
    struct rival rival;
    struct claims claims;
    struct told told;
    bool was_reached; /* it has joined once */
    bool yields;      /* a rival lives: nothing is done any more */
    bool has_lost;    /* commits are missing, which the database is still to be told */
    bool is_held;     /* nobody decides or executes */
};

/* `id` NULL: the system's host name. */
void replica_init(struct replica *replica, const char *id);
void replica_finish(struct replica *replica);

/* A new epoch, in a transaction that has just begun. false with an error of its own in
 * `batch->refusal` while another process has this one's id, or the database has failed. */
bool replica_join(struct batch *batch);

/* Whether this replica does the work now. */
bool replica_holds(const struct batch *batch, enum lease lease);
/* The task is executing: by this replica from now on. false also when its epoch is over, or when
 * nobody may execute. */
bool replica_claim(struct batch *batch, const struct task *task);
/* This replica, with which a new task lives, because it has the credentials. */
struct keeper replica_keeper(const struct batch *batch);
/* Ends an execution whose replica is gone. */
bool replica_end_unknown(struct batch *batch, const char *id);
/* Whether the task was claimed by another replica, in an earlier epoch of this one, or again since
 * its claim `claim`. */
bool replica_is_late(struct batch *batch, const struct task *task, size_t claim, bool *is_late);

/* Adds the changes that others have committed to the batch's events, in a transaction that has
 * just begun. Notices when changes are missing that were read before. */
bool replica_catch_up(struct batch *batch);
/* Keeps the batch's own events until they are read in the feed, and forgets those that it has read
 * there. Once it is committed. */
void replica_keep_told(struct replica *replica, const struct batch *batch);
/* Adds the batch's own events, from `first` on, to the feed, right before the commit. */
bool replica_tell(struct batch *batch, size_t first);
/* The same for the grants and definitions that the batch has changed. */
bool replica_tell_changed(struct batch *batch, size_t first);

#define REPLICA_SILENCE_MS 20000 /* behaviour 16.2 */
#define REPLICA_HEARTBEAT_MS 5000
#define REPLICA_LEASE_MS INT64_C(20000)
/* So long is a rival watched: a heartbeat, and what it may be late. */
#define REPLICA_RIVAL_MS 6500
/* A replica that has not read for so long is fenced long since, and begins anew. */
#define REPLICA_FEED_RETENTION_MS 3600000
/* How late observers hear of others at most; and where the database gives hints, if one is missed.
 */
#define REPLICA_CATCH_UP_MS 250
#define REPLICA_CATCH_UP_SLOW_MS 1000
