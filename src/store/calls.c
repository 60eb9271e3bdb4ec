/* The store's door: its calls, which queue operations. */
#include <stdlib.h>
#include <string.h>

#include "store_internal.h"
#include "taskgate/core/memory.h"
#include "taskgate/store/blocks.h"
#include "taskgate/store/definitions.h"
#include "taskgate/store/homes.h"

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
    operation->session_value = record_copy(&session_record, session);
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
    operation->sign_in = record_copy(&sign_in_record, sign_in);
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

/* ---- the outbox ---- */

void store_outbox_observe(struct store *store, struct loop *loop, loop_callback observer,
                          void *context)
{
    pthread_mutex_lock(&store->lock);
    store->outbox_observer = (struct outbox_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_outbox_configure(struct store *store, const struct store_outbox_target *targets,
                            size_t count, struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_configure, call);
    operation->targets = memory_alloc_array(count, sizeof *operation->targets);
    operation->target_count = count;
    if (count > 0)
        memcpy(operation->targets, targets, count * sizeof *targets);
    store_queue(store, operation);
}

void store_outbox_due(struct store *store, struct str target, size_t limit, struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_due, call);
    operation->id = memory_copy_str(target);
    operation->limit = limit;
    store_queue(store, operation);
}

static struct operation *create_of_delivery(const struct operation_kind *kind, int64_t sequence,
                                            struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->sequence = sequence;
    return operation;
}

void store_outbox_delivered(struct store *store, int64_t sequence, struct store_call call)
{
    store_queue(store, create_of_delivery(&operation_outbox_delivered, sequence, call));
}

void store_outbox_posted(struct store *store, int64_t sequence, const char *reference,
                         struct store_call call)
{
    struct operation *operation = create_of_delivery(&operation_outbox_delivered, sequence, call);
    operation->reason = memory_copy_text(reference);
    store_queue(store, operation);
}

void store_outbox_messages(struct store *store, struct str target, size_t limit,
                           struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_messages, call);
    operation->id = memory_copy_str(target);
    operation->limit = limit;
    store_queue(store, operation);
}

void store_outbox_messages_of(struct store *store, struct str task_id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_messages_of, call);
    operation->id = memory_copy_str(task_id);
    store_queue(store, operation);
}

void store_outbox_see(struct store *store, struct str target, struct str task_id, struct str seen,
                      struct store_call call)
{
    struct operation *operation = operation_create(&operation_outbox_see, call);
    operation->id = memory_copy_str(task_id);
    operation->source = memory_copy_str(target);
    operation->reason = memory_copy_str(seen);
    store_queue(store, operation);
}

void store_outbox_postpone(struct store *store, int64_t sequence, int64_t due_ms,
                           struct store_call call)
{
    struct operation *operation = create_of_delivery(&operation_outbox_postpone, sequence, call);
    operation->time_ms = due_ms;
    store_queue(store, operation);
}

void store_outbox_give_up(struct store *store, int64_t sequence, const char *reason,
                          struct store_call call)
{
    struct operation *operation = create_of_delivery(&operation_outbox_give_up, sequence, call);
    operation->reason = memory_copy_text(reason);
    store_queue(store, operation);
}

/* ---- grants and blocks: a person gives them, and they end by age or by a person ---- */

static void queue_list(struct store *store, const struct operation_kind *kind, bool in_force_only,
                       int64_t before_sequence, size_t limit, struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->in_force_only = in_force_only;
    operation->sequence = before_sequence;
    operation->limit = limit;
    store_queue(store, operation);
}

static void queue_get(struct store *store, const struct operation_kind *kind, struct str id,
                      struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->id = memory_copy_str(id);
    store_queue(store, operation);
}

static void queue_end(struct store *store, const struct operation_kind *kind, struct str id,
                      const char *person, const char *reason, struct store_call call)
{
    struct operation *operation = operation_create(kind, call);
    operation->id = memory_copy_str(id);
    operation->actor_name = memory_copy_text(person);
    operation->reason = memory_copy_text(reason);
    store_queue(store, operation);
}

/* ---- grants ---- */

void store_observe_grants(struct store *store, struct loop *loop, store_grant_observer observer,
                          void *context)
{
    pthread_mutex_lock(&store->lock);
    store->grant_observer = (struct grant_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_grants_configure(struct store *store, const struct store_electorate *electorate)
{
    struct operation *operation =
        operation_create(&operation_grants_configure, (struct store_call){NULL, NULL, NULL});
    operation->electorate = *electorate;
    store_queue(store, operation);
}

void store_grant_list(struct store *store, bool in_force_only, int64_t before_sequence,
                      size_t limit, struct store_call call)
{
    queue_list(store, &operation_grant_list, in_force_only, before_sequence, limit, call);
}

void store_grant_get(struct store *store, struct str id, struct store_call call)
{
    queue_get(store, &operation_grant_get, id, call);
}

void store_grant_revoke(struct store *store, struct str id, const char *person, const char *reason,
                        struct store_call call)
{
    queue_end(store, &operation_grant_revoke, id, person, reason, call);
}

/* ---- blocks ---- */

void store_observe_blocks(struct store *store, struct loop *loop, store_block_observer observer,
                          void *context)
{
    pthread_mutex_lock(&store->lock);
    store->block_observer = (struct grant_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_block_create(struct store *store, const struct store_block_wish *wish,
                        struct store_call call)
{
    struct operation *operation = operation_create(&operation_block_create, call);
    operation->id = memory_copy_str(wish->task_id);
    operation->workflow = memory_copy_text(store_block_scope_name(wish->scope));
    operation->time_ms = wish->for_ms;
    operation->reason = memory_copy_text(wish->reason);
    operation->actor_name = memory_copy_text(wish->person);
    store_queue(store, operation);
}

void store_block_list(struct store *store, bool in_force_only, int64_t before_sequence,
                      size_t limit, struct store_call call)
{
    queue_list(store, &operation_block_list, in_force_only, before_sequence, limit, call);
}

void store_block_get(struct store *store, struct str id, struct store_call call)
{
    queue_get(store, &operation_block_get, id, call);
}

void store_block_lift(struct store *store, struct str id, const char *person, const char *reason,
                      struct store_call call)
{
    queue_end(store, &operation_block_lift, id, person, reason, call);
}

/* ---- definitions ---- */

void store_observe_definitions(struct store *store, struct loop *loop,
                               store_definition_observer observer, void *context)
{
    pthread_mutex_lock(&store->lock);
    store->definition_observer = (struct grant_observer){loop, observer, context};
    pthread_mutex_unlock(&store->lock);
}

void store_definitions_see(struct store *store, struct store_definition *items, size_t count,
                           struct store_call call)
{
    struct operation *operation = operation_create(&operation_definitions_see, call);
    operation->definitions = (struct record_list){&definition_record, items, count, count};
    store_queue(store, operation);
}

void store_definition_list(struct store *store, const struct store_definition_query *query,
                           struct store_call call)
{
    struct operation *operation = operation_create(&operation_definition_list, call);
    operation->source = memory_copy_str(query->source);
    operation->workflow = memory_copy_str(query->kind);
    operation->tool = memory_copy_str(query->name);
    operation->changed_only = query->changed_only;
    operation->flagged_only = query->flagged_only;
    operation->sequence = query->after_sequence;
    operation->limit = query->limit;
    store_queue(store, operation);
}

void store_definition_get(struct store *store, struct str id, struct store_call call)
{
    struct operation *operation = operation_create(&operation_definition_get, call);
    operation->id = memory_copy_str(id);
    store_queue(store, operation);
}

void store_definition_accept(struct store *store, struct str id, struct str digest,
                             const char *person, struct store_call call)
{
    struct operation *operation = operation_create(&operation_definition_accept, call);
    operation->id = memory_copy_str(id);
    operation->token_digest = memory_copy_str(digest);
    operation->actor_name = memory_copy_text(person);
    store_queue(store, operation);
}
