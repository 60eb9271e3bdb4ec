/* Group commit: operations that wait together are committed together. */
#include "commit.h"

#include "pending.h"
#include "replica.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"

#define MOST_REPLY_BYTES ((size_t)16 * 1024 * 1024)
#define CREATES_EXPECTED 128 /* more than a batch takes from the queue */

static bool any_writes(const struct operation *chain)
{
    for (; chain; chain = chain->next) {
        if (chain->kind->writes)
            return true;
    }
    return false;
}

/* The size of a batch before an operation, to come back to. */
struct batch_mark {
    size_t events, changed, anchors;
    struct limited_change limited;
};

/* With what the database can be asked for beforehand, all at once. */
static bool begin(struct store *store, const struct operation *chain, bool may_write)
{
    const struct task *tasks[CREATES_EXPECTED];
    size_t count = 0;
    for (; chain && count < CREATES_EXPECTED; chain = chain->next) {
        if (chain->kind == &operation_task_create)
            tasks[count++] = chain->create.task;
    }
    return store->backend->begin(store->database, may_write) &&
           (count == 0 || !store->backend->expect_inserts ||
            store->backend->expect_inserts(store->database, tasks, count));
}

static bool undo(struct store *store, struct operation *operation, struct batch *batch,
                 const struct batch_mark *before)
{
    struct error error;
    store->backend->describe(store->database, operation->kind->name, &error);
    log_error("A store operation failed", LOG_TEXT("error", error.message));
    operation_clear_reply(operation);
    operation->reply.status = STORE_FAILED;
    batch_drop_events(batch, before->events);
    batch->changed.count = before->changed;
    batch->anchor_count = before->anchors;
    batch->limited = before->limited;
    batch->knows_chain = false;
    batch->replica->has_blocks = true; /* maybe: what it has ended is in force again */
    return store->backend->mark(store->database, MARK_RETURN);
}

static void set_clock(const struct store *store, struct batch *batch)
{
    batch->now_ms = clock_now_ms() + store->backend->look(store->database, LOOK_AHEAD_MS);
}

/* A failing operation must not undo the others, so each has a mark. */
static bool run_operation(struct store *store, struct operation *operation, struct batch *batch)
{
    const struct batch_mark before = {batch->event_count, batch->changed.count, batch->anchor_count,
                                      batch->limited};
    if (!store->backend->mark(store->database, MARK_SET))
        return false;
    set_clock(store, batch);
    if (operation->kind != &operation_task_create)
        batch->used_bytes_most = 0; /* it may write as much as it likes */
    if (operation->kind->run(batch, operation)) {
        if (!store->backend->mark(store->database, MARK_FORGET))
            return false;
    } else if (batch->must_write || !store->backend->can_go_on(store->database) ||
               !undo(store, operation, batch, &before)) {
        return false;
    }
    operation->events_end = batch->event_count;
    return true;
}

/* `is_unsure`: it is not known what became of the commit. */
static void fail_all(struct store *store, struct operation *chain, struct batch *batch,
                     bool is_unsure)
{
    store->backend->rollback(store->database);
    batch_drop_events(batch, 0);
    batch->changed.count = 0;
    batch->replica->has_blocks = true;
    for (; chain; chain = chain->next) {
        operation_clear_reply(chain);
        chain->reply.status = STORE_FAILED;
        chain->reply.is_unsure = is_unsure && chain->kind->writes;
        chain->events_end = 0;
    }
}

/* Each answer holds a copy of the texts that a client made long. */
static bool is_enough(struct batch *batch, const struct store_reply *reply)
{
    if (reply->task)
        batch->reply_bytes += operation_task_bytes(reply->task);
    for (size_t i = 0; i < reply->task_count; i++)
        batch->reply_bytes += operation_task_bytes(reply->tasks[i]);
    return batch->reply_bytes > MOST_REPLY_BYTES;
}

static bool count_pending(struct batch *batch)
{
    struct limited_counts counts;
    bool done = pending_write(batch) && pending_count(batch, "", &counts);
    batch->pending_total = done ? counts.pending : 0;
    return done;
}

static bool run_all(struct store *store, struct operation *chain, struct batch *batch,
                    struct operation **rest)
{
    bool done = begin(store, chain, batch->may_write);
    *rest = NULL;
    set_clock(store, batch);
    done = done && (batch->replica->epoch > 0 || replica_join(batch)) && replica_catch_up(batch);
    size_t own_events = batch->event_count, own_changed = batch->changed.count;
    for (struct operation *operation = chain; done && operation; operation = operation->next) {
        done = run_operation(store, operation, batch);
        if (done && is_enough(batch, &operation->reply)) {
            *rest = operation->next;
            operation->next = NULL;
        }
    }
    return done && replica_tell(batch, own_events) && replica_tell_changed(batch, own_changed) &&
           count_pending(batch);
}

/* As one that writes; what only reads has used up none of its arguments. */
static void begin_anew(struct store *store, struct operation *chain, struct batch *batch)
{
    store->backend->rollback(store->database);
    batch_drop_events(batch, 0);
    batch->changed.count = 0;
    batch->anchor_count = 0;
    batch->replica->has_blocks = true;
    batch->may_write = true;
    batch->must_write = false;
    batch->reply_bytes = 0;
    batch->limited = (struct limited_change){0, 0, 0};
    batch->knows_chain = false;
    batch->used_bytes_most = 0;
    batch->seen = store->replica.seen;
    batch->told_read = 0;
    for (; chain; chain = chain->next)
        operation_clear_reply(chain);
}

/* The files may have been replaced while the disk was written: nobody will read what went there. */
static enum commit_result commit(struct store *store, struct error *error)
{
    enum commit_result result = store->backend->commit(store->database, error);
    if (result != COMMIT_DONE || store->backend->is_in_place(store->database, error))
        return result;
    error_suffix(error, BACKEND_UNSURE);
    return COMMIT_UNSURE;
}

bool commit_batch(struct store *store, struct operation *chain, struct batch *batch,
                  struct operation **rest, struct error *error)
{
    batch->may_write = any_writes(chain) || !store->backend->is_shared || store->replica.epoch == 0;
    bool done = run_all(store, chain, batch, rest);
    if (batch->must_write) {
        begin_anew(store, chain, batch);
        done = run_all(store, chain, batch, rest);
    }
    bool is_in_place = store->backend->is_in_place(store->database, error);
    enum commit_result result = done && is_in_place ? commit(store, error) : COMMIT_NOTHING;
    if (result == COMMIT_DONE)
        return true;
    /* Before the rollback, which has a result of its own. */
    if (*batch->refusal.message)
        *error = batch->refusal;
    else if (!done && is_in_place)
        store->backend->describe(store->database, "the database failed", error);
    fail_all(store, chain, batch, result == COMMIT_UNSURE);
    if (batch->has_joined)
        batch->replica->epoch = 0;
    return false;
}
