/* Claims, leases and the feed, in the transactions of other operations. */
#include "replica.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replica_rows.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

#define FEED_LIMIT 256
/* Of the tasks that one look at the feed reads. */
#define FEED_BYTES ((size_t)16 * 1024 * 1024)
#define HOST_NAME_BYTES 256

static void forget_told(struct told *told, size_t count)
{
    ASSERT_NUMBERS(count, <=, told->count);
    for (size_t i = 0; i < count; i++)
        task_unref(told->tasks[i]);
    told->count -= count;
    if (told->count > 0)
        memmove(told->tasks, told->tasks + count, told->count * sizeof(struct task *));
}

void replica_init(struct replica *replica, const char *id)
{
    char host[HOST_NAME_BYTES] = "";
    if (!id) {
        gethostname(host, sizeof host - 1);
        id = *host ? host : "taskgate";
    }
    *replica = (struct replica){.id = memory_copy_text(id), .has_blocks = true};
}

void replica_finish(struct replica *replica)
{
    free(replica->id);
    free(replica->claims.ids);
    forget_told(&replica->told, replica->told.count);
    free(replica->told.tasks);
    replica->told.tasks = NULL;
    replica->id = NULL;
    replica->claims.ids = NULL;
}

/* ---- executions ---- */

/* Also where the commit then fails: its answer may be what was lost. */
static void keep_claim(struct claims *claims, const struct task *task)
{
    if (!claims->ids)
        claims->ids = memory_alloc_array(CLAIMS_KEPT, sizeof *claims->ids);
    memcpy(claims->ids[claims->count++ % CLAIMS_KEPT], task->id, TASK_ID_BYTES);
}

bool replica_claim(struct batch *batch, const struct task *task)
{
    struct replica *self = batch->replica;
    ASSERT(task->state == TASK_EXECUTING);
    if (self->is_held)
        return false;
    if (batch->backend->is_shared)
        keep_claim(&self->claims, task);
    return rows_change(batch->database, STATEMENT_CLAIM_PUT,
                       VALUES(TEXT(task->id), TEXT(self->id), NUMBER(self->epoch))) == ROW_FOUND;
}

struct keeper replica_keeper(const struct batch *batch)
{
    return (struct keeper){batch->replica->id, batch->replica->epoch};
}

struct claiming {
    const struct replica *self;
    bool is_own; /* the last claim, or there is none */
};

static bool look_at_claim(void *context, const struct value *row)
{
    struct claiming *claiming = context;
    claiming->is_own = row[1].number == claiming->self->epoch &&
                       str_equal(row[0].text, str_from(claiming->self->id));
    return false;
}

bool replica_is_late(struct batch *batch, const struct task *task, size_t claim, bool *is_late)
{
    const struct replica *self = batch->replica;
    struct claiming claiming = {self, true};
    bool done = rows_read(batch->database, STATEMENT_CLAIM_GET, VALUES(TEXT(task->id)),
                          look_at_claim, &claiming);
    *is_late = claim != task_claim(task) || !claiming.is_own;
    return done;
}

/* ---- leases ---- */

bool replica_holds(const struct batch *batch, enum lease lease)
{
    ASSERT_NUMBERS(lease, <, LEASE_COUNT);
    int64_t left_ms = batch->replica->lease_until_ms[lease] - batch->now_ms;
    return !batch->backend->is_shared || (left_ms > 0 && left_ms <= 2 * REPLICA_LEASE_MS);
}

/* ---- the feed ---- */

struct reading {
    struct batch *batch;
    struct feed_place place;
    bool is_there; /* the change read last is */
    bool has_failed;
    size_t count, bytes;
};

static bool replica_is_same(const struct feed_place *place, const struct feed_change *change)
{
    return place->sequence == change->sequence &&
           (!*place->task_id || str_equal(change->task_id, str_from(place->task_id)));
}

/* The own change that the feed has next, as it was then. NULL: nobody was told of it, as after a
 * commit whose answer was lost. The changes before it were never committed. The caller owns it. */
static struct task *take_told(struct batch *batch, struct str id)
{
    const struct told *told = &batch->replica->told;
    for (size_t i = batch->told_read; i < told->count; i++) {
        if (!str_equal(str_from(told->tasks[i]->id), id))
            continue;
        batch->told_read = i + 1;
        return task_ref(told->tasks[i]);
    }
    return NULL;
}

void replica_keep_told(struct replica *replica, const struct batch *batch)
{
    struct told *told = &replica->told;
    forget_told(told, batch->told_read);
    for (size_t i = 0; batch->backend->is_shared && i < batch->event_count; i++) {
        if (batch->events[i].sequence > 0)
            continue;
        if (told->count == told->capacity) {
            told->capacity = told->capacity ? 2 * told->capacity : 64;
            told->tasks = memory_grow_array(told->tasks, told->capacity, sizeof(struct task *));
        }
        told->tasks[told->count++] = task_ref(batch->events[i].task);
    }
}

/* A task that was purged meanwhile has no change to tell. */
static bool add_change(void *context, const struct feed_change *change)
{
    struct reading *reading = context;
    struct batch *batch = reading->batch;
    struct task *task = NULL;
    reading->count++;
    if (change->sequence <= reading->place.sequence) {
        reading->is_there = replica_is_same(&reading->place, change);
        return reading->is_there;
    }
    reading->place.sequence = change->sequence;
    snprintf(reading->place.task_id, sizeof reading->place.task_id, "%.*s",
             STR_ARGS(change->task_id));
    bool is_own = str_equal(change->replica, str_from(batch->replica->id));
    if (str_starts_with(change->task_id, STR(STORE_GRANT_ID_PREFIX)) ||
        str_starts_with(change->task_id, STR(STORE_DEFINITION_ID_PREFIX)) ||
        str_starts_with(change->task_id, STR(STORE_BLOCK_ID_PREFIX))) {
        batch->replica->has_blocks = true; /* maybe: the next look says it */
        if (!is_own)                       /* else it was told when it was done */
            id_list_add(&batch->changed, change->task_id);
        return true;
    }
    enum row_result result = ROW_FOUND;
    bool was_told = is_own && (task = take_told(batch, change->task_id)) != NULL;
    if (!was_told)
        result = task_rows_get(batch->database, change->task_id, &task);
    if (result == ROW_FOUND && !was_told)
        reading->bytes += operation_task_bytes(task);
    if (result == ROW_FOUND)
        batch_add_feed_event(batch, task,
                             &(struct task_event){.created = change->created,
                                                  .is_own = is_own,
                                                  .was_told = was_told,
                                                  .sequence = change->sequence});
    task_unref(task);
    if (!is_own)
        batch->has_notices = true; /* the holder of the outbox's lease may be this one */
    reading->has_failed = result == ROW_FAILED;
    return !reading->has_failed && reading->bytes <= FEED_BYTES;
}

/* Changes are missing of which nobody was notified: rows that are kept in memory are to be read
 * anew. */
static void replica_tell_of_gap(struct batch *batch)
{
    batch->replica->has_blocks = true;
    id_list_add(&batch->changed, STR(STORE_BLOCK_ID_PREFIX));
    id_list_add(&batch->changed, STR(STORE_DEFINITION_ID_PREFIX));
}

/* A change that was read before is not there: the database is another one, such as a standby that
 * lacked the last commits when it took over. */
static bool replica_lose(struct batch *batch)
{
    struct replica *self = batch->replica;
    log_error("The database lacks changes that were committed before, as after a failover that has "
              "lost commits; nothing is decided or executed until somebody has looked and runs "
              "taskgate store accept-timeline",
              LOG_TEXT("replica", self->id), LOG_NUMBER("change", batch->seen.sequence));
    self->has_lost = self->is_held = true;
    batch->told_read = self->told.count; /* the feed does not have them any more */
    batch->seen = (struct feed_place){.at_ms = batch->now_ms};
    replica_tell_of_gap(batch);
    return replica_rows_feed_end(batch->database, &batch->seen.sequence);
}

bool replica_catch_up(struct batch *batch)
{
    struct reading reading = {.batch = batch, .place = batch->seen};
    if (!batch->backend->is_shared)
        return true;
    /* With what was read last, to see that it is still there. */
    int64_t after = reading.place.sequence > 0 ? reading.place.sequence - 1 : 0;
    reading.is_there = reading.place.sequence == 0;
    if (!replica_rows_feed_read(batch->database, after, FEED_LIMIT, add_change, &reading) ||
        reading.has_failed)
        return false;
    bool may_be_purged =
        batch->now_ms - batch->seen.at_ms >= REPLICA_FEED_RETENTION_MS - REPLICA_SILENCE_MS;
    if (batch->backend->look(batch->database, LOOK_LOSS))
        return replica_lose(batch);
    bool has_read = reading.place.sequence > batch->seen.sequence;
    if (!reading.is_there && !(may_be_purged && has_read))
        return replica_lose(batch);
    if (!reading.is_there)
        replica_tell_of_gap(batch);
    batch->has_unread = reading.count >= FEED_LIMIT || reading.bytes > FEED_BYTES;
    batch->replica->has_blocks |= batch->has_unread; /* maybe: there is more to read */
    batch->seen = reading.place;
    batch->seen.at_ms = batch->now_ms;
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
        done = replica_rows_feed_add(batch->database, &change, batch->now_ms);
    }
    return done;
}

bool replica_tell_changed(struct batch *batch, size_t first)
{
    bool done = true;
    for (size_t i = first; batch->backend->is_shared && done && i < batch->changed.count; i++) {
        const struct feed_change change = {
            .task_id = str_from(batch->changed.ids[i]),
            .replica = str_from(batch->replica->id),
        };
        done = replica_rows_feed_add(batch->database, &change, batch->now_ms);
    }
    return done;
}
