/* The store: its thread takes what is queued, commits it, answers it; sweeps; keeps it up. Opening,
 * closing, observers. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "effects.h"
#include "queue.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

#define BATCH_LIMIT 64
#define SWEEP_INTERVAL_MS 10000
#define RETRY_INTERVAL_MS 1000 /* of a database that has failed */
#define FEED_SOON_MS 10        /* several batches may come together */
/* Hints ask for so many looks at the feed at once, and for one in so long in the long run: a single
 * decision is seen at once, and a stream of creates does not keep every replica reading. */
#define HINT_LOOKS 8
#define HINT_LOOK_EVERY_MS 10
#define LOOK_INTERVAL_MS 1000 /* at the files, when nothing is committed meanwhile */
/* How long the backend's upkeep waits for an idle moment. */
#define UPKEEP_SOON_MS 100
#define UPKEEP_LATER_MS 5000

#define MOST_REPLY_BYTES ((size_t)16 * 1024 * 1024)
#define CREATES_EXPECTED 128 /* more than a batch takes from the queue */

/* ---- group commit: operations that wait together are committed together ---- */

static bool commit_writes(const struct operation *chain)
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
static bool commit_begin(struct store *store, const struct operation *chain, bool may_write)
{
    const struct task *tasks[CREATES_EXPECTED];
    size_t count = 0;
    for (; chain && count < CREATES_EXPECTED; chain = chain->next) {
        if (chain->kind == &operation_task_create)
            tasks[count++] = chain->create.task;
    }
    ASSERT(!chain); /* a batch is never longer */
    return store->backend->begin(store->database, may_write) &&
           (count == 0 || !store->backend->expect_inserts ||
            store->backend->expect_inserts(store->database, tasks, count));
}

static bool commit_undo(struct store *store, struct operation *operation, struct batch *batch,
                        const struct batch_mark *before)
{
    struct error error;
    ASSERT_NUMBERS(before->changed, <=, batch->changed.count);
    ASSERT_NUMBERS(before->anchors, <=, batch->anchor_count);
    store->backend->describe(store->database, operation->kind->name, &error);
    if (!store->backend->mark(store->database, MARK_RETURN))
        return false;
    log_error("A store operation failed", LOG_TEXT("error", error.message));
    operation_clear_reply(operation);
    operation->reply.status = STORE_FAILED;
    batch_drop_events(batch, before->events);
    batch->changed.count = before->changed;
    batch->anchor_count = before->anchors;
    batch->limited = before->limited;
    batch->knows_chain = false;
    batch->replica->has_blocks = true; /* maybe: what it has ended is in force again */
    return true;
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
    ASSERT(batch->may_write || !operation->kind->writes);
    if (!store->backend->mark(store->database, MARK_SET))
        return false;
    set_clock(store, batch);
    if (operation->kind != &operation_task_create)
        batch->used_bytes_most = 0; /* it may write as much as it likes */
    if (operation->kind->run(batch, operation)) {
        if (!store->backend->mark(store->database, MARK_FORGET))
            return false;
    } else if (batch->must_write || !commit_undo(store, operation, batch, &before)) {
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
    bool done = commit_begin(store, chain, batch->may_write);
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
static enum commit_result commit_now(struct store *store, struct error *error)
{
    enum commit_result result = store->backend->commit(store->database, error);
    if (result != COMMIT_DONE || store->backend->is_in_place(store->database, error))
        return result;
    error_suffix(error, BACKEND_UNSURE);
    return COMMIT_UNSURE;
}

/* Runs the operations of a chain in one transaction; but cuts it, and leaves the `rest`, where the
 * replies would hold too much memory at once. Afterwards each has its reply, and the batch holds
 * the events to tell; when the transaction failed, every reply is STORE_FAILED, there are no
 * events, and `error` says why. */
static bool commit_batch(struct store *store, struct operation *chain, struct batch *batch,
                         struct operation **rest, struct error *error)
{
    batch->may_write =
        commit_writes(chain) || !store->backend->is_shared || store->replica.epoch == 0;
    bool done = run_all(store, chain, batch, rest);
    if (batch->must_write) {
        begin_anew(store, chain, batch);
        done = run_all(store, chain, batch, rest);
        ASSERT(!batch->must_write); /* it may write */
    }
    bool is_in_place = store->backend->is_in_place(store->database, error);
    enum commit_result result = done && is_in_place ? commit_now(store, error) : COMMIT_NOTHING;
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

/* ---- notices ---- */

struct notice {
    const struct observer *observer; /* it lives as long as the store */
    struct task *task;
    bool created, is_own;
    int64_t sequence;
};

static void thread_notify(void *context)
{
    struct notice *notice = context;
    const struct observer *observer = notice->observer;
    if (observer->feed)
        observer->feed(observer->context,
                       &(struct store_feed_event){notice->task, notice->created, notice->is_own,
                                                  notice->sequence});
    else
        observer->callback(observer->context, notice->task, notice->created);
    task_unref(notice->task);
    free(notice);
}

static void post_event(struct store *store, const struct task_event *event)
{
    pthread_mutex_lock(&store->lock);
    for (const struct observer *observer = store->observers; observer; observer = observer->next) {
        if (observer->feed ? event->sequence == 0 : event->was_told)
            continue;
        struct notice *notice = memory_alloc(sizeof *notice);
        *notice = (struct notice){observer, task_ref(event->task), event->created, event->is_own,
                                  event->sequence};
        loop_post(observer->loop, thread_notify, notice);
    }
    pthread_mutex_unlock(&store->lock);
}

struct id_notice {
    struct id_observer observer;
    char id[TASK_ID_BYTES];
};

static void notify_of_id(void *context)
{
    struct id_notice *notice = context;
    notice->observer.callback(notice->observer.context, str_from(notice->id));
    free(notice);
}

static enum store_id_kind kind_of_id(struct str id)
{
    if (str_starts_with(id, STR(STORE_GRANT_ID_PREFIX)))
        return STORE_GRANT;
    return str_starts_with(id, STR(STORE_BLOCK_ID_PREFIX)) ? STORE_BLOCK : STORE_DEFINITION;
}

static void tell_of_changed(struct store *store, const struct id_list *changed)
{
    struct id_observer observers[STORE_ID_KINDS];
    pthread_mutex_lock(&store->lock);
    memcpy(observers, store->id_observers, sizeof observers);
    pthread_mutex_unlock(&store->lock);
    ASSERT(changed->ids || changed->count == 0);
    for (size_t i = 0; i < changed->count; i++) {
        const struct id_observer *observer = &observers[kind_of_id(str_from(changed->ids[i]))];
        if (!observer->callback)
            continue;
        struct id_notice *notice = memory_alloc(sizeof *notice);
        notice->observer = *observer;
        memcpy(notice->id, changed->ids[i], sizeof notice->id);
        loop_post(observer->loop, notify_of_id, notice);
    }
}

static void tell_of_notices(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    const struct signal_observer observer = store->outbox_observer;
    pthread_mutex_unlock(&store->lock);
    if (observer.callback)
        loop_post(observer.loop, observer.callback, observer.context);
}

/* Notices and answers leave in the order in which they took effect. So a caller that reads a task
 * and then waits for its next change misses none. */
static void publish(struct store *store, struct operation *chain, const struct batch *batch)
{
    size_t told = 0;
    while (chain) {
        struct operation *operation = chain;
        chain = operation->next;
        ASSERT_NUMBERS(operation->events_end, <=, batch->event_count);
        while (told < operation->events_end)
            post_event(store, &batch->events[told++]);
        operation_answer(operation);
    }
}

/* ---- batches ---- */

static void note_health(struct store *store, bool done, bool wrote, const struct error *error)
{
    bool healthy = atomic_load(&store->healthy);
    if (!done) {
        if (healthy)
            log_error("The store has failed; nothing that needs it is allowed until it works",
                      LOG_TEXT("path", store->place), LOG_TEXT("error", error->message));
        atomic_store(&store->healthy, false);
    } else if (!healthy && wrote) {
        log_info("The store works again", LOG_TEXT("path", store->place));
        atomic_store(&store->healthy, true);
    }
}

/* Of a time of the store's clock. */
static int64_t monotonic_of(const struct store *store, int64_t wall_ms)
{
    return clock_monotonic_ms() + wall_ms - clock_now_ms() -
           store->backend->look(store->database, LOOK_AHEAD_MS);
}

static void sweep_no_later_than(struct store *store, int64_t at_ms)
{
    if (at_ms < store->sweep_at_ms)
        store->sweep_at_ms = at_ms;
}

static void thread_plan(struct store *store, const struct batch *batch)
{
    int64_t sweep_ms = batch->sweep_again_ms;
    for (size_t i = 0; i < batch->event_count; i++) {
        int64_t deadline_ms = task_next_deadline_ms(batch->events[i].task);
        if (deadline_ms < sweep_ms)
            sweep_ms = deadline_ms;
    }
    if (sweep_ms != INT64_MAX)
        sweep_no_later_than(store, monotonic_of(store, sweep_ms));
    int64_t wanted = store->backend->look(store->database, LOOK_UPKEEP);
    if (wanted != BACKEND_UPKEEP_NONE)
        store->upkeep_at_ms = clock_monotonic_ms() +
                              (wanted == BACKEND_UPKEEP_LATER ? UPKEEP_LATER_MS : UPKEEP_SOON_MS);
}

static void log_anchors(const struct batch *batch)
{
    for (size_t i = 0; i < batch->anchor_count; i++) {
        const struct store_anchor *anchor = &batch->anchors[i];
        log_info_at(anchor->at_ms, "Audit anchor", LOG_NUMBER("sequence", anchor->place.sequence),
                    LOG_TEXT("hash", anchor->place.hash), LOG_TEXT("signature", anchor->signature));
    }
}

/* With a reference of the key. */
static struct store_audit_settings audit_settings(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    struct store_audit_settings settings = store->audit;
    if (settings.key)
        signature_key_ref(settings.key);
    pthread_mutex_unlock(&store->lock);
    return settings;
}

/* ---- replicas ---- */

static void tell_of_yield(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    const struct signal_observer observer = store->yield_observer;
    bool is_new = !store->has_yielded && observer.callback;
    store->has_yielded = store->has_yielded || is_new;
    pthread_mutex_unlock(&store->lock);
    if (is_new)
        loop_post(observer.loop, observer.callback, observer.context);
}

/* Shows other threads the state of this replica. */
static void show_replica(struct store *store, struct batch *batch)
{
    const struct replica *replica = &store->replica;
    ASSERT_NUMBERS(replica->epoch, <=, replica->last_epoch);
    atomic_store(&store->is_held, replica->is_held);
    atomic_store(&store->was_reached, replica->was_reached);
    atomic_store(&store->epoch, replica->epoch);
    if (batch->has_peers) {
        pthread_mutex_lock(&store->lock);
        struct peers old = store->peers;
        store->peers = batch->peers;
        batch->peers = old;
        pthread_mutex_unlock(&store->lock);
    }
    if (replica->yields)
        tell_of_yield(store);
    if (replica->has_lost && atomic_load(&store->healthy))
        store->heartbeat_at_ms = 0; /* tells the database */
}

static void catch_up_no_later_than(struct store *store, int64_t at_ms)
{
    if (at_ms < store->catch_up_at_ms)
        store->catch_up_at_ms = at_ms;
}

/* The generic cell rate algorithm: each look takes HINT_LOOK_EVERY_MS of the time, up to the end at
 * `hint_paid_ms`. */
static int64_t hinted_look_ms(const struct store *store)
{
    return store->hint_paid_ms - (int64_t)(HINT_LOOKS - 1) * HINT_LOOK_EVERY_MS;
}

static void pay_for_look(struct store *store, int64_t now_ms)
{
    if (store->hint_paid_ms < now_ms)
        store->hint_paid_ms = now_ms;
    store->hint_paid_ms += HINT_LOOK_EVERY_MS;
}

/* A batch reads the feed at its beginning. So what is left are the own changes that were just told
 * there; the next batch may read them before that. */
static void plan_catch_up(struct store *store, const struct batch *batch)
{
    bool has_hints = store->backend->look(store->database, LOOK_WAKE_FD) >= 0;
    int64_t now_ms = clock_monotonic_ms();
    store->catch_up_at_ms = now_ms + (has_hints ? REPLICA_CATCH_UP_SLOW_MS : REPLICA_CATCH_UP_MS);
    if (store->replica.told.count > 0 || batch->has_unread)
        catch_up_no_later_than(store, now_ms + FEED_SOON_MS);
    if (store->backend->look(store->database, LOOK_HINT)) /* it came meanwhile */
        catch_up_no_later_than(store, hinted_look_ms(store));
}

/* A copy; NULL: nowhere. */
static char *copy_address(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    char *address = memory_copy_text(store->address);
    pthread_mutex_unlock(&store->lock);
    return address;
}

/* One transaction. */
static bool run_batch(struct store *store, struct operation *chain, struct operation **rest,
                      struct error *error)
{
    struct store_audit_settings settings = audit_settings(store);
    OWNED char *address = copy_address(store);
    struct batch batch = {.backend = store->backend,
                          .database = store->database,
                          .redaction = &store->redaction,
                          .audit = &settings,
                          .electorate = &store->electorate,
                          .replica = &store->replica,
                          .seen = store->replica.seen,
                          .address = address,
                          .sweep_again_ms = INT64_MAX};
    int64_t written_before = store->backend->look(store->database, LOOK_WRITTEN);
    bool done = commit_batch(store, chain, &batch, rest, error);
    bool wrote = store->backend->look(store->database, LOOK_WRITTEN) != written_before;
    note_health(store, done, wrote, error);
    if (done) {
        atomic_store(&store->pending_count, batch.pending_total);
        store->replica.seen = batch.seen;
        store->replica.was_reached = true;
        replica_keep_told(&store->replica, &batch);
        if (store->backend->is_shared)
            plan_catch_up(store, &batch);
        thread_plan(store, &batch);
        log_anchors(&batch);
    } else {
        store->replica.watching_since_ms = 0; /* silence of others counts from the return */
        sweep_no_later_than(store, clock_monotonic_ms() + RETRY_INTERVAL_MS);
    }
    if (done && batch.has_notices)
        tell_of_notices(store);
    if (done)
        tell_of_changed(store, &batch.changed);
    publish(store, chain, &batch);
    show_replica(store, &batch);
    batch_drop_events(&batch, 0);
    free(batch.events);
    free(batch.changed.ids);
    peers_finish(&batch.peers);
    signature_key_unref(settings.key);
    return done;
}

static bool run_chain(struct store *store, struct operation *chain, struct error *error)
{
    bool done = true;
    while (chain) {
        struct operation *rest;
        done = run_batch(store, chain, &rest, error) && done;
        chain = rest;
    }
    return done;
}

static bool run_alone(struct store *store, const struct operation_kind *kind, struct error *error)
{
    return run_chain(store, operation_create(kind, (struct store_call){NULL, NULL, NULL}), error);
}

/* ---- the thread ---- */

static void thread_sweep(struct store *store)
{
    struct error error;
    const struct operation_kind *kind =
        atomic_load(&store->healthy) ? &operation_sweep : &operation_probe;
    store->sweep_at_ms = clock_monotonic_ms() + SWEEP_INTERVAL_MS; /* or earlier, by plan() */
    if (run_alone(store, kind, &error) && kind == &operation_probe)
        store->sweep_at_ms = 0; /* to catch up with the deadlines meanwhile */
}

static void keep_up(struct store *store)
{
    store->backend->upkeep(store->database);
    /* A reader may hinder it for a while. */
    bool is_done = store->backend->look(store->database, LOOK_UPKEEP) == BACKEND_UPKEEP_NONE;
    store->upkeep_at_ms = is_done ? INT64_MAX : clock_monotonic_ms() + UPKEEP_LATER_MS;
}

/* An idle store learns here that its files have gone. A batch tells everybody. */
static void look_at_files(struct store *store)
{
    struct error error;
    store->look_at_ms = clock_monotonic_ms() + LOOK_INTERVAL_MS;
    if (atomic_load(&store->healthy) && !store->backend->is_in_place(store->database, &error))
        store->sweep_at_ms = 0;
}

static int64_t next_wake_ms(const struct store *store)
{
    const int64_t times_ms[] = {store->sweep_at_ms, store->upkeep_at_ms, store->heartbeat_at_ms,
                                store->catch_up_at_ms};
    int64_t at_ms = store->look_at_ms;
    for (size_t i = 0; i < sizeof times_ms / sizeof *times_ms; i++) {
        if (times_ms[i] < at_ms)
            at_ms = times_ms[i];
    }
    return at_ms;
}

/* A replica's duties toward a shared database. */
static void take_part(struct store *store, int64_t now_ms)
{
    struct error error;
    if (store->backend->look(store->database, LOOK_LATE_COMMIT))
        store->replica.epoch = 0;
    if (store->replica.epoch == 0 && atomic_load(&store->healthy) &&
        !run_alone(store, &operation_join, &error))
        return;
    pthread_mutex_lock(&store->lock);
    bool beats_now = store->beats_now && store->heartbeat_at_ms != INT64_MAX;
    store->beats_now = false;
    pthread_mutex_unlock(&store->lock);
    if (beats_now || now_ms >= store->heartbeat_at_ms) {
        store->heartbeat_at_ms = now_ms + REPLICA_HEARTBEAT_MS;
        run_alone(store, &operation_heartbeat, &error);
    }
    if (now_ms >= store->catch_up_at_ms) {
        store->catch_up_at_ms = now_ms + REPLICA_CATCH_UP_MS; /* if it fails */
        pay_for_look(store, now_ms);
        if (atomic_load(&store->healthy))
            run_alone(store, &operation_catch_up, &error);
    }
}

/* Until something is queued, or the database has a hint, or `until_ms`. */
static void wait(struct store *store, int64_t until_ms)
{
    struct pollfd look[] = {
        {.fd = store->wake_fd, .events = POLLIN},
        {.fd = (int)store->backend->look(store->database, LOOK_WAKE_FD), .events = POLLIN},
    };
    eventfd_t count;
    int64_t left_ms = until_ms - clock_monotonic_ms();
    poll(look, 2, left_ms <= 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX);
    if (look[0].revents != 0)
        eventfd_read(store->wake_fd, &count);
    if (look[1].revents != 0 && store->backend->look(store->database, LOOK_HINT))
        catch_up_no_later_than(store, hinted_look_ms(store));
}

/* Up to BATCH_LIMIT operations; NULL when none came before `until_ms`. */
static struct operation *thread_take(struct store *store, int64_t until_ms, bool *stopping)
{
    pthread_mutex_lock(&store->lock);
    bool must_wait = !store->first && !store->stopping && !store->beats_now;
    pthread_mutex_unlock(&store->lock);
    if (must_wait)
        wait(store, until_ms);
    return store_dequeue(store, BATCH_LIMIT, stopping);
}

static void *store_thread(void *context)
{
    struct store *store = store_from(context);
    struct error error;
    for (;;) {
        bool stopping;
        struct operation *chain = thread_take(store, next_wake_ms(store), &stopping);
        if (!chain && stopping)
            return NULL;
        int64_t now_ms = clock_monotonic_ms();
        bool idle = !chain;
        if (now_ms >= store->look_at_ms)
            look_at_files(store);
        if (store->backend->is_shared)
            take_part(store, now_ms);
        if (now_ms >= store->sweep_at_ms)
            thread_sweep(store);
        if (chain)
            run_chain(store, chain, &error);
        bool must = store->backend->look(store->database, LOOK_UPKEEP) == BACKEND_UPKEEP_NOW;
        if (must || (idle && now_ms >= store->upkeep_at_ms))
            keep_up(store);
    }
}

/* ---- opening and closing ---- */

static struct store *allocate(void)
{
    struct store *store = memory_alloc(sizeof *store);
    MAGIC_SET(store, STORE_MAGIC);
    atomic_init(&store->healthy, true);
    atomic_init(&store->pending_count, 0);
    atomic_init(&store->epoch, 0);
    pthread_mutex_init(&store->lock, NULL);
    store->wake_fd = -1;
    store->end = &store->first;
    store->sweep_at_ms = 0; /* deadlines that passed while the process did not run */
    store->upkeep_at_ms = INT64_MAX;
    store->heartbeat_at_ms = store->catch_up_at_ms = INT64_MAX;
    return store;
}

/* Nobody hears of anything from here on. */
static void forget_observers(struct store *store)
{
    while (store->observers) {
        struct observer *observer = store->observers;
        store->observers = observer->next;
        free(observer);
    }
    memset(store->id_observers, 0, sizeof store->id_observers);
    store->outbox_observer = store->yield_observer = (struct signal_observer){.callback = NULL};
}

static void store_release(struct store *store)
{
    ASSERT(!store->first); /* each operation was answered */
    forget_observers(store);
    replica_finish(&store->replica);
    free(store->place);
    free(store->address);
    peers_finish(&store->peers);
    if (store->electorate.release)
        store->electorate.release(store->electorate.context);
    signature_key_unref(store->audit.key);
    if (store->wake_fd >= 0)
        close(store->wake_fd);
    pthread_mutex_destroy(&store->lock);
    MAGIC_CLEAR(store);
    free(store);
}

static bool open_wake_fd(struct store *store, struct error *error)
{
    store->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return store->wake_fd >= 0 ||
           error_set(error, "cannot wake the store's thread: %s", strerror(errno));
}

/* Signals belong to the thread that opens the store. */
static bool store_start_thread(struct store *store, struct error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&store->thread, NULL, store_thread, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return error_set(error, "cannot start the store's thread: %s", strerror(code));
    return true;
}

struct store *store_open(const struct store_backend *backend, const char *place,
                         const char *replica, const struct store_redaction *redaction,
                         struct error *error)
{
    struct store *store = allocate();
    replica_init(&store->replica, replica);
    store->backend = backend;
    store->place = backend->title(place);
    if (redaction)
        store->redaction = *redaction;
    if (!open_wake_fd(store, error))
        goto failed;
    store->database = backend->open(place, error);
    if (!store->database)
        goto failed;
    bool is_reached =
        backend->is_in_place(store->database, error) && run_alone(store, &operation_join, error);
    if (!is_reached && !backend->is_shared)
        goto opened;
    atomic_store(&store->healthy, is_reached);
    if (backend->is_shared)
        store->heartbeat_at_ms = store->catch_up_at_ms = 0;
    if (!store_start_thread(store, error))
        goto opened;
    log_info(is_reached ? "Store opened" : "Store will be opened", LOG_TEXT("path", store->place),
             LOG_NUMBER("pending", store_pending_count(store)));
    return store;

opened:
    error_prefix(error, store->place);
    backend->close(store->database);
failed:
    store_release(store);
    return NULL;
}

void store_stop(struct store *store)
{
    if (!store || store->stopped)
        return;
    pthread_mutex_lock(&store->lock);
    store->stopping = true;
    pthread_mutex_unlock(&store->lock);
    eventfd_write(store->wake_fd, 1);
    pthread_join(store->thread, NULL);
    store_refuse_queued(store);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    struct error error;
    store_stop(store);
    ASSERT(store->stopped);
    /* Their loops are gone, and saying goodbye may read what others have committed. */
    forget_observers(store);
    if (store->backend->is_shared && store->replica.epoch > 0)
        run_alone(store, &operation_leave, &error);
    store->backend->close(store->database);
    store_release(store);
}

bool store_is_healthy(const struct store *store)
{
    return atomic_load(&store->healthy);
}

int64_t store_pending_count(const struct store *store)
{
    return atomic_load(&store->pending_count);
}

void store_observe(struct store *store, struct loop *loop, store_observer callback, void *context)
{
    struct observer *observer = memory_alloc(sizeof *observer);
    *observer = (struct observer){NULL, loop, callback, NULL, context};
    pthread_mutex_lock(&store->lock);
    observer->next = store->observers;
    store->observers = observer;
    pthread_mutex_unlock(&store->lock);
}

void store_outbox_observe(struct store *store, struct loop *loop, loop_callback observer,
                          void *context)
{
    pthread_mutex_lock(&store->lock);
    store->outbox_observer = (struct signal_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_observe_ids(struct store *store, enum store_id_kind kind, struct loop *loop,
                       store_id_observer observer, void *context)
{
    ASSERT_NUMBERS(kind, <, STORE_ID_KINDS);
    pthread_mutex_lock(&store->lock);
    store->id_observers[kind] = (struct id_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_audit_configure(struct store *store, const struct store_audit_settings *settings)
{
    if (settings->key)
        signature_key_ref(settings->key);
    pthread_mutex_lock(&store->lock);
    struct signature_key *before = store->audit.key;
    store->audit = *settings;
    pthread_mutex_unlock(&store->lock);
    signature_key_unref(before);
    /* Rows that are too old under the new settings go at once. */
    store_queue(store, operation_create(&operation_sweep, (struct store_call){NULL, NULL, NULL}));
}
