/* The store's door: opening, closing, and the queue that every call goes into. */
#include "taskgate/store/store.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "store_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/homes.h"

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

static void release(struct store *store)
{
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
static bool start_thread(struct store *store, struct error *error)
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
    if (!start_thread(store, error))
        goto opened;
    log_info(is_reached ? "Store opened" : "Store will be opened", LOG_TEXT("path", store->place),
             LOG_NUMBER("pending", store_pending_count(store)));
    return store;

opened:
    error_prefix(error, store->place);
    backend->close(store->database);
failed:
    release(store);
    return NULL;
}

static void refuse(struct operation *operation)
{
    operation->reply.status = STORE_FAILED;
    store_answer(operation);
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
    pthread_mutex_lock(&store->lock);
    store->stopped = true;
    struct operation *late = store->first;
    store->first = NULL;
    pthread_mutex_unlock(&store->lock);
    while (late) {
        struct operation *operation = late;
        late = operation->next;
        refuse(operation);
    }
}

void store_close(struct store *store)
{
    if (!store)
        return;
    struct error error;
    store_stop(store);
    /* Their loops are gone, and saying goodbye may read what others have committed. */
    forget_observers(store);
    if (store->backend->is_shared && store->replica.epoch > 0)
        store_run_alone(store, &operation_leave, &error);
    store->backend->close(store->database);
    release(store);
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

void store_queue(struct store *store, struct operation *operation)
{
    struct operation **end = &operation->next;
    while (*end)
        end = &(*end)->next;
    pthread_mutex_lock(&store->lock);
    bool stopped = store->stopped, was_empty = !store->first;
    if (!stopped) {
        *store->end = operation;
        store->end = end;
    }
    pthread_mutex_unlock(&store->lock);
    if (was_empty)
        eventfd_write(store->wake_fd, 1);
    while (stopped && operation) {
        struct operation *next = operation->next;
        refuse(operation);
        operation = next;
    }
}

/* ---- tasks ---- */

void store_task_create(struct store *store, struct task *task, const struct store_limits *limits,
                       struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_create, call);
    operation->task = task;
    operation->limits = *limits;
    store_queue(store, operation);
}

void store_task_get(struct store *store, struct str id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_get, call);
    operation->id = memory_copy_str(id);
    store_queue(store, operation);
}

static struct operation *create_change(struct str id, const struct task_change *change,
                                       const struct store_actor *actor, struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_change, call);
    operation->id = memory_copy_str(id);
    operation_set_change(operation, change);
    operation->actor_kind = memory_copy_text(actor->kind);
    operation->actor_name = memory_copy_text(actor->name);
    return operation;
}

void store_task_change(struct store *store, struct str id, const struct task_change *change,
                       const struct store_actor *actor, struct store_call call)
{
    store_queue(store, create_change(id, change, actor, call));
}

void store_task_vote(struct store *store, struct str id, const struct store_vote *vote,
                     struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_vote, call);
    operation->id = memory_copy_str(id);
    operation->vote = vote_copy(vote);
    if (vote->claim)
        operation->next =
            create_change(id, &vote->claim->change, &vote->claim->actor, vote->claim->call);
    store_queue(store, operation);
}

void store_task_set_upstream(struct store *store, struct str id, struct str upstream_task,
                             struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_set_upstream, call);
    operation->id = memory_copy_str(id);
    operation->upstream_task = memory_copy_str(upstream_task);
    store_queue(store, operation);
}

void store_task_note(struct store *store, struct str id, const char *event,
                     const struct store_actor *actor, struct str reason, struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_note, call);
    operation->id = memory_copy_str(id);
    operation->event = event;
    operation->actor_kind = memory_copy_text(actor->kind);
    operation->actor_name = memory_copy_text(actor->name);
    operation->reason = memory_copy_str(reason);
    store_queue(store, operation);
}

void store_task_set_message(struct store *store, struct str id, struct str message,
                            struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_set_message, call);
    operation->id = memory_copy_str(id);
    operation->reason = memory_copy_str(message);
    store_queue(store, operation);
}

void store_task_promise(struct store *store, struct str id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_promise, call);
    operation->id = memory_copy_str(id);
    store_queue(store, operation);
}

void store_task_leave(struct store *store, struct str id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_leave, call);
    operation->id = memory_copy_str(id);
    store_queue(store, operation);
}

static struct str keep(char **field, struct str text)
{
    *field = memory_copy_str(text);
    return str_slice(*field, text.length);
}

void store_task_list(struct store *store, const struct store_task_query *query,
                     struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_list, call);
    struct store_task_query *copy = operation->query = memory_alloc(sizeof *copy);
    *copy = *query;
    copy->owner = keep(&operation->owner, query->owner);
    copy->session = keep(&operation->session, query->session);
    copy->source = keep(&operation->source, query->source);
    copy->tool = keep(&operation->tool, query->tool);
    copy->workflow = keep(&operation->workflow, query->workflow);
    copy->principal = keep(&operation->principal, query->principal);
    store_queue(store, operation);
}

void store_task_cancel_session(struct store *store, struct str source, struct str session,
                               struct str heir, struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_cancel_session, call);
    operation->heir = memory_copy_str(heir);
    operation->source = memory_copy_str(source);
    operation->owner = memory_format("session:%.*s", STR_ARGS(session));
    store_queue(store, operation);
}

/* ---- sessions ---- */

void store_session_put(struct store *store, const struct store_session *session,
                       struct store_call call)
{
    struct operation *operation = operation_create(&operation_session_put, call);
    operation->session_value = session_copy(session);
    store_queue(store, operation);
}

static struct operation *create_of_session(const struct operation_kind *kind, struct str source,
                                           struct str session_digest, struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->source = memory_copy_str(source);
    operation->session = memory_copy_str(session_digest);
    return operation;
}

void store_session_get(struct store *store, struct str source, struct str id_digest,
                       struct store_call call)
{
    store_queue(store, create_of_session(&operation_session_get, source, id_digest, call));
}

void store_session_delete(struct store *store, struct str source, struct str id_digest,
                          struct store_call call)
{
    store_queue(store, create_of_session(&operation_session_delete, source, id_digest, call));
}

void store_session_settle(struct store *store, struct str source, struct str digest,
                          struct store_call call)
{
    store_queue(store, create_of_session(&operation_session_settle, source, digest, call));
}

void store_task_settle(struct store *store, struct str id, const struct store_heir *heir,
                       struct store_call call)
{
    struct operation *operation = operation_create(&operation_task_settle, call);
    operation->id = memory_copy_str(id);
    if (heir) {
        operation->heir = memory_copy_text(heir->replica);
        operation->heir_epoch = heir->epoch;
    }
    store_queue(store, operation);
}

void store_pair_put(struct store *store, struct str source, struct str session_digest,
                    struct str token_digest, int64_t accepted_ms, struct store_call call)
{
    struct operation *operation =
        create_of_session(&operation_pair_put, source, session_digest, call);
    operation->token_digest = memory_copy_str(token_digest);
    operation->time_ms = accepted_ms;
    store_queue(store, operation);
}

void store_pair_get(struct store *store, struct str source, struct str session_digest,
                    struct str token_digest, struct store_call call)
{
    struct operation *operation =
        create_of_session(&operation_pair_get, source, session_digest, call);
    operation->token_digest = memory_copy_str(token_digest);
    store_queue(store, operation);
}

/* ---- sign-ins ---- */

void store_sign_in_put(struct store *store, const struct store_sign_in *sign_in,
                       struct store_call call)
{
    struct operation *operation = operation_create(&operation_sign_in_put, call);
    operation->sign_in = sign_in_copy(sign_in);
    store_queue(store, operation);
}

void store_sign_in_get(struct store *store, struct str digest, struct store_call call)
{
    struct operation *operation = operation_create(&operation_sign_in_get, call);
    operation->id = memory_copy_str(digest);
    store_queue(store, operation);
}

void store_sign_in_delete(struct store *store, struct str digest, struct store_call call)
{
    struct operation *operation = operation_create(&operation_sign_in_delete, call);
    operation->id = memory_copy_str(digest);
    store_queue(store, operation);
}

void store_note_once(struct store *store, struct str digest, int64_t keep_ms,
                     struct store_call call)
{
    struct operation *operation = operation_create(&operation_note_once, call);
    operation->id = memory_copy_str(digest);
    operation->time_ms = keep_ms;
    store_queue(store, operation);
}

/* ---- audit ---- */

void store_audit_note(struct store *store, const struct store_audit_note *note,
                      struct store_call call)
{
    struct operation *operation = operation_create(&operation_audit_note, call);
    operation->source = memory_copy_text(note->event);
    operation->owner = memory_copy_text(note->person);
    operation->session = memory_copy_text(note->via);
    operation->reason = memory_copy_text(note->reason);
    store_queue(store, operation);
}

void store_audit_list(struct store *store, struct str task_id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_audit_list, call);
    operation->id = memory_copy_str(task_id);
    store_queue(store, operation);
}

void store_audit_page(struct store *store, int64_t after, size_t limit, bool with_arguments,
                      struct store_call call)
{
    struct operation *operation = operation_create(&operation_audit_page, call);
    operation->sequence = after;
    operation->limit = limit;
    operation->with_arguments = with_arguments;
    store_queue(store, operation);
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
