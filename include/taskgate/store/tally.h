/*
 * The outcomes of the other calls of a tool: for approvers, beside the call that they decide.
 *
 * The counts are of whole days (UTC), today's and the 29 before it. They are kept in the
 * transaction of each change, so that they outlive the tasks; a change of an older version is not
 * among them. The last decision and equal calls are read in the audit trail, as far as it reaches
 * back. Behaviour 10.11.
 */
#pragma once

#include "taskgate/store/store.h"

#define STORE_TALLY_DAYS 30
/* Equal calls beyond these are not counted. */
#define STORE_TALLY_SAME_MOST 1000

/* Approvals (also by a grant), rejections, expiries, and failed calls. */
struct store_tally_counts {
    int64_t approved, rejected, expired, failed;
};

struct store_tally {
    struct store_tally_counts all, owner; /* of all callers; of the task's owner */
    /* The last decision by a person; `state` is TASK_APPROVED or TASK_REJECTED. */
    bool has_last;
    enum task_state state;
    char *person, *reason;
    int64_t decided_ms;
    /* Approvals of calls with the same arguments, and when the last one was. */
    int64_t same_approved, same_ms;
};

/* As store_task_get(); where there is the task, reply->tally is of the others of its source and
 * tool. */
void store_task_get_with_tally(struct store *store, struct str id, struct store_call call);
