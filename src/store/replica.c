/* Claims, leases and the feed, in the transactions of other operations. */
#include "replica.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "taskgate/core/memory.h"

#define FEED_LIMIT 256
#define HOST_NAME_BYTES 256

void replica_init(struct replica *replica, const char *id)
{
    char host[HOST_NAME_BYTES] = "";
    if (!id) {
        gethostname(host, sizeof host - 1);
        id = *host ? host : "taskgate";
    }
    *replica = (struct replica){.id = memory_copy_text(id)};
}

void replica_finish(struct replica *replica)
{
    free(replica->id);
    replica->id = NULL;
}

/* ---- executions ---- */

bool replica_claim(struct batch *batch, const struct task *task)
{
    const struct replica *self = batch->replica;
    return batch->backend->replicas->claim(batch->database, task, self->id, self->epoch) ==
           ROW_FOUND;
}

bool replica_is_late(struct batch *batch, const struct task *task, bool *is_late)
{
    const struct replica *self = batch->replica;
    char *claimed_by = NULL;
    int64_t epoch = 0;
    enum row_result result =
        batch->backend->replicas->claim_of(batch->database, task, &claimed_by, &epoch);
    *is_late = result == ROW_FOUND && (epoch != self->epoch || strcmp(claimed_by, self->id) != 0);
    free(claimed_by);
    return result != ROW_FAILED;
}

/* ---- leases ---- */

bool replica_holds(const struct batch *batch, enum lease lease)
{
    return !batch->backend->is_shared || batch->replica->lease_until_ms[lease] > batch->now_ms;
}

/* ---- the feed ---- */

struct reading {
    struct batch *batch;
    int64_t seen;
    bool has_failed;
};

/* A task that was purged meanwhile has no change to tell. */
static bool add_change(void *context, const struct feed_change *change)
{
    struct reading *reading = context;
    struct batch *batch = reading->batch;
    struct task *task = NULL;
    reading->seen = change->sequence;
    if (str_equal(change->replica, str_from(batch->replica->id)))
        return true;
    enum row_result result = batch->backend->tasks->get(batch->database, change->task_id, &task);
    if (result == ROW_FOUND)
        batch_add_event(batch, task, change->created);
    task_unref(task);
    reading->has_failed = result == ROW_FAILED;
    return result != ROW_FAILED;
}

bool replica_catch_up(struct batch *batch)
{
    struct reading reading = {.batch = batch, .seen = batch->replica->feed_seen};
    if (!batch->backend->is_shared || batch->replica->epoch == 0)
        return true;
    if (!batch->backend->replicas->feed_read(batch->database, reading.seen, FEED_LIMIT, add_change,
                                             &reading) ||
        reading.has_failed)
        return false;
    batch->feed_seen = reading.seen;
    return true;
}

bool replica_tell(struct batch *batch, size_t first)
{
    bool done = true;
    for (size_t i = first; batch->backend->is_shared && done && i < batch->event_count; i++) {
        const struct task_event *event = &batch->events[i];
        const struct feed_change change = {
            .task_id = str_from(event->task->id),
            .replica = str_from(batch->replica->id),
            .created = event->created,
        };
        done = batch->backend->replicas->feed_add(batch->database, &change, batch->now_ms);
    }
    return done;
}
