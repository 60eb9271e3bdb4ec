/* The feed as observers ask for it. */
#include <stdlib.h>

#include "replica.h"
#include "replica_rows.h"
#include "taskgate/core/memory.h"

struct asking {
    struct batch *batch;
    struct store_reply *reply;
    size_t limit;
    bool has_failed;
};

/* A task that was purged meanwhile has no change to tell. */
static bool add_task(void *context, const struct feed_change *change)
{
    struct asking *asking = context;
    struct store_reply *reply = asking->reply;
    struct task *task = NULL;
    reply->has_more = reply->task_count == asking->limit;
    if (reply->has_more)
        return false;
    enum row_result result = task_rows_get(asking->batch->database, change->task_id, &task);
    if (result == ROW_FOUND) {
        reply->sequences[reply->task_count] = change->sequence;
        reply->tasks[reply->task_count++] = task;
    }
    asking->has_failed = result == ROW_FAILED;
    return !asking->has_failed;
}

static bool run_after(struct batch *batch, struct operation *operation)
{
    struct store_reply *reply = &operation->reply;
    struct asking asking = {.batch = batch, .reply = reply, .limit = operation->limit};
    reply->tasks = memory_alloc_array(operation->limit, sizeof(struct task *));
    reply->sequences = memory_alloc_array(operation->limit, sizeof *reply->sequences);
    return replica_rows_feed_end(batch->database, &reply->last_sequence) &&
           replica_rows_feed_read(batch->database, operation->sequence, operation->limit + 1,
                                  add_task, &asking) &&
           !asking.has_failed;
}

const struct operation_kind operation_feed_after = {"read the feed", false, run_after};
