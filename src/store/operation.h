/*
 * An operation: one call on its way to the store's thread and back. It owns copies of all its
 * arguments, and later the reply.
 */
#pragma once

#include "backend.h"
#include "peers.h"
#include "row.h"
#include "task_rows.h"
#include "taskgate/core/magic.h"
#include "taskgate/store/store.h"

/* A change of a task by a committed operation; the observers are told. */
struct task_event {
    struct task *task; /* one reference */
    bool created;
    bool is_own;      /* of this process */
    bool was_told;    /* when it was done */
    int64_t sequence; /* in the feed, as it was read there; 0: it was not read, but done now */
};

/* The last place read of the feed of changes. It stays there, unless the database has lost commits.
 */
struct feed_place {
    int64_t sequence; /* 0: nothing was read yet */
    char task_id[TASK_ID_BYTES];
    int64_t at_ms; /* the store's clock: when it was the last one */
};

/* The state of one batch: the database, and the effects that hold once it is committed. */
struct batch {
    const struct store_backend *backend;
    struct database *database;
    const struct store_redaction *redaction;
    const struct store_audit_settings *audit;
    struct store_electorate *electorate; /* by which grants are judged */
    struct replica *replica;
    struct feed_place seen; /* how far the feed was read, once this is committed */
    size_t told_read;       /* so many of the own changes that were told were read there */
    bool has_joined;        /* in this transaction */
    const char *address;    /* the address of this replica for others; NULL: none */
    struct peers peers;     /* the others, where has_peers says that this was looked at */
    bool has_peers;
    struct error refusal; /* why the replica may not take part; "" where it may */
    bool may_write;       /* the transaction; one of a shared database that only reads need not */
    bool must_write;      /* it only reads, and there is something to write: once more */
    int64_t now_ms;
    int64_t pending_total;         /* tasks that wait for a decision, once this is committed */
    struct limited_change limited; /* of the counts of all tasks, which it writes at its end */
    struct store_chain chain; /* the end of the audit trail with what this batch has appended */
    bool knows_chain;
    int64_t used_bytes_most;   /* the most that store_bytes can count; 0: not known */
    size_t reply_bytes;        /* of what is answered */
    int64_t sweep_again_ms;    /* when the next sweep has work; INT64_MAX: not known */
    struct task_event *events; /* in the order they took effect */
    size_t event_count, event_capacity;
    struct id_list changed; /* grants and definitions, also by others; one may stand twice */
    struct store_anchor anchors[2]; /* made by a sweep: told once they are committed */
    size_t anchor_count;
    bool has_notices; /* something was noted for the outbox */
};

struct operation {
    uint32_t magic; /* OPERATION_MAGIC */
    struct operation *next;
    const struct operation_kind *kind;
    struct store_call call;
    struct store_reply reply;
    size_t events_end; /* in batch.events: where this operation's end */
    /* Arguments; which are set depends on the kind. */
    struct task *task;
    struct store_limits limits;
    struct task_change change; /* its texts are owned */
    char *actor_kind, *actor_name;
    struct store_vote *vote; /* a copy; it holds the electorate */
    struct store_electorate electorate;
    bool in_force_only;
    bool changed_only, flagged_only;
    struct record_list definitions;
    struct store_task_query *query; /* a copy; its texts are views of the fields below */
    char *id, *owner, *session, *source, *tool, *workflow, *principal;
    char *token_digest;
    char *upstream_task;
    char *heir; /* a replica, or NULL */
    int64_t heir_epoch;
    int64_t time_ms;
    struct store_session *session_value;
    struct store_sign_in *sign_in;
    struct store_outbox_target *targets;
    size_t target_count;
    int64_t sequence;
    size_t limit;
    bool with_arguments;
    char *reason;
    const char *event; /* static */
};
#define OPERATION_MAGIC 0x53544f02

static inline struct operation *operation_from(void *context)
{
    return MAGIC_CAST(struct operation, OPERATION_MAGIC, context);
}

struct operation_kind {
    const char *name;
    bool writes; /* read-only batches need no write lock */
    /* Fills the reply. false: the database failed, or the operation is not possible at all;
     * whatever it wrote is undone. */
    bool (*run)(struct batch *batch, struct operation *operation);
};

extern const struct operation_kind operation_block_create, operation_block_list,
    operation_block_get, operation_block_lift, operation_task_create, operation_task_get,
    operation_task_change, operation_task_tally, operation_task_vote, operation_task_set_upstream,
    operation_task_set_message, operation_task_promise, operation_task_leave, operation_task_note,
    operation_task_list, operation_task_cancel_session, operation_session_put,
    operation_session_get, operation_session_delete, operation_pair_put, operation_pair_get,
    operation_sign_in_put, operation_sign_in_get, operation_sign_in_delete, operation_note_once,
    operation_audit_list, operation_audit_page, operation_audit_note, operation_outbox_configure,
    operation_outbox_due, operation_outbox_delivered, operation_outbox_postpone,
    operation_outbox_give_up, operation_outbox_messages, operation_outbox_messages_of,
    operation_outbox_see, operation_definitions_see, operation_definition_list,
    operation_definition_get, operation_definition_accept, operation_grants_configure,
    operation_grant_list, operation_grant_get, operation_grant_revoke, operation_sweep,
    operation_probe, operation_session_settle, operation_task_settle, operation_join,
    operation_heartbeat, operation_catch_up, operation_leave, operation_feed_after;

struct operation *operation_create(const struct operation_kind *kind, struct store_call call);
void operation_destroy(struct operation *operation);
/* Empties the reply, for an answer that takes its place. */
void operation_clear_reply(struct operation *operation);
/* The bytes of the task that a client wrote. They may be as many as a body has. */
size_t operation_task_bytes(const struct task *task);
void operation_set_change(struct operation *operation, const struct task_change *change);

/* Takes a reference of its own. */
/* The same for a change that was read in the feed. */
void batch_add_feed_event(struct batch *batch, struct task *task, const struct task_event *event);
void batch_add_event(struct batch *batch, struct task *task, bool created);
void batch_drop_events(struct batch *batch, size_t keep);

struct store_vote *vote_copy(const struct store_vote *vote);
void home_destroy(struct store_home *home); /* NULL is allowed */
void vote_destroy(struct store_vote *vote); /* NULL is allowed */
