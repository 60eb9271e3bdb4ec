/* The store's door: opening, closing, observers. */
#include "taskgate/store/store.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "store_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/blocks.h"
#include "taskgate/store/definitions.h"

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
    store->outbox_observer = (struct outbox_observer){.callback = NULL};
    store->yield_observer = (struct yield_observer){.callback = NULL};
    store->grant_observer = (struct grant_observer){.callback = NULL};
    store->block_observer = (struct grant_observer){.callback = NULL};
    store->definition_observer = (struct grant_observer){.callback = NULL};
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
    bool is_reached = backend->is_in_place(store->database, error) &&
                      store_run_alone(store, &operation_join, error);
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
        store_run_alone(store, &operation_leave, &error);
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
    store->outbox_observer = (struct outbox_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_observe_grants(struct store *store, struct loop *loop, store_grant_observer observer,
                          void *context)
{
    pthread_mutex_lock(&store->lock);
    store->grant_observer = (struct grant_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_observe_blocks(struct store *store, struct loop *loop, store_block_observer observer,
                          void *context)
{
    pthread_mutex_lock(&store->lock);
    store->block_observer = (struct grant_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_observe_definitions(struct store *store, struct loop *loop,
                               store_definition_observer observer, void *context)
{
    pthread_mutex_lock(&store->lock);
    store->definition_observer = (struct grant_observer){loop, observer, context};
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
