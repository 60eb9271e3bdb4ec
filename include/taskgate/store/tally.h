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

/* As store_task_get(); where there is the task, reply->tally is of the others of its source and
 * tool. */
void store_task_get_with_tally(struct store *store, struct str id, struct store_call call);
