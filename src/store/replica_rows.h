/* The rows of replicas: what they have claimed, leases, homes of sessions, and the feed of changes.
 */
#pragma once

#include "row.h"
#include "taskgate/store/records.h"

/* A change of a task, or of a grant, that a replica has committed. */
struct feed_change {
    int64_t sequence;            /* given by the database */
    struct str task_id, replica; /* in place of the task's id: the grant's */
    bool created;
};

/* A replica, as the database knows it. */
struct replica_row {
    char *id, *address; /* the address for others; empty: none */
    int64_t epoch;
    int64_t alive_ms; /* 0: its epoch has ended */
    int64_t seen_ms;  /* its last sign of life */
};

/* A session of a source. */
struct home_key {
    const char *source, *session_digest;
};

/* The home of a session: a replica in one of its epochs. The texts are owned. */
struct home_row {
    char *replica;
    int64_t epoch;
    char *lost_replica; /* of replica_rows_home_take(): who had it and is gone; NULL: nobody */
    int64_t lost_epoch;
};

/* The home of a task. The texts are owned. */
struct task_home_row {
    char *replica, *address; /* "": it takes no calls */
    int64_t epoch;
    enum task_state state;
    bool is_over; /* that epoch */
};

typedef bool feed_visitor(void *context, const struct feed_change *change);

/* The task lives with this replica, which does not execute it yet, unless it lives with one whose
 * epoch goes on. */
bool replica_rows_keep(struct database *database, const char *task_id, const char *id,
                       int64_t epoch);
/* It is alive at `now_ms`; 0: it says goodbye. ROW_ABSENT: its epoch is over. */
enum row_result replica_rows_beat(struct database *database, const char *id, int64_t epoch,
                                  int64_t now_ms);
/* Ends the epochs of all others that were alive last before `before_ms`, or, with a clock that was
 * ahead, after `after_ms`. */
bool replica_rows_fence(struct database *database, const char *but_id, int64_t before_ms,
                        int64_t after_ms);
/* The home of the task: the replica that has claimed or kept it last. The caller frees the texts.
 */
enum row_result replica_rows_task_home(struct database *database, const char *task_id,
                                       struct task_home_row *home);
/* The sequences of the feed rise in the order of the commits: whoever has read one will find no
 * smaller one later. 0: nothing was told yet. */
bool replica_rows_feed_end(struct database *database, int64_t *sequence);
bool replica_rows_feed_read(struct database *database, int64_t after, size_t limit,
                            feed_visitor *visit, void *context);
bool replica_rows_feed_add(struct database *database, const struct feed_change *change,
                           int64_t now_ms);
/* All that are not forgotten, by id. The caller finishes the list, also when this fails. */
bool replica_rows_list(struct database *database, struct record_list *list);
/* NULL: none has the id. */
const struct replica_row *replica_rows_find(const struct record_list *list, const char *id);
/* Whether a replica has said for all that commits are missing, and nobody has taken it back. */
bool replica_rows_is_held(struct database *database, bool *is_held);
/* A session that is stored lives at `id` from now on, unless it lives at a replica whose epoch goes
 * on. ROW_FOUND: it was taken, and home->lost_replica says from whom. ROW_ABSENT: it was not, and
 * home->replica says where it lives; NULL: nowhere. The caller frees the texts. */
enum row_result replica_rows_home_take(struct database *database, const struct home_key *key,
                                       const char *id, int64_t epoch, int64_t now_ms,
                                       struct home_row *home);

/* ---- the other replicas, as other threads see them ---- */

/* The texts of the items are owned. */
struct peers {
    struct store_peer *items;
    size_t count;
};

void peers_add(struct peers *peers, const struct replica_row *row, enum store_peer_state state);
void peers_finish(struct peers *peers);
