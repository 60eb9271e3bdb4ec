/*
 * An operation: one call on its way to the store's thread and back. It owns copies of all its
 * arguments, which its kind says, and later the reply.
 */
#pragma once

#include "backend.h"
#include "replica_rows.h"
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
    bool has_unread;        /* the feed had more than one look reads */
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

#define OPERATION_TEXTS_MOST 10

struct operation {
    uint32_t magic; /* OPERATION_MAGIC */
    struct operation *next;
    const struct operation_kind *kind;
    struct store_call call;
    struct store_reply reply;
    size_t events_end; /* in batch.events: where this operation's end */
    /* The texts that the arguments name, by operation_keep(). */
    char *texts[OPERATION_TEXTS_MOST];
    size_t text_count;
    /* The task, grant, block, definition, target, or digest that it is about. */
    const char *id;
    /* The further arguments, by the kind. */
    union {
        struct {
            struct task *task; /* one reference */
            struct store_limits limits;
        } create;
        struct {
            struct task_change to;
            struct store_actor actor;
        } change;
        struct store_vote *vote; /* a copy; it holds the electorate */
        const char *text;        /* of a task */
        struct {
            const char *event; /* static */
            struct store_actor actor;
            const char *reason;
        } note;
        struct store_task_query query; /* holds its filter */
        struct {
            const char *source, *owner, *heir;
        } ended;
        struct store_heir heir;        /* its replica is NULL: this one */
        struct store_session *session; /* a copy */
        struct {
            const char *source, *session, *token;
            int64_t accepted_ms;
        } pair;                        /* or its session only */
        struct store_sign_in *sign_in; /* a copy */
        int64_t keep_ms;               /* of a note */
        struct store_audit_note audit;
        struct {
            int64_t from; /* the sequence behind which it begins */
            size_t limit;
            bool in_force_only, with_arguments;
        } page;
        struct {
            struct store_outbox_target *items; /* owned */
            size_t count;
        } targets;
        struct {
            int64_t sequence, due_ms;
            const char *text; /* the reference, or the reason */
        } delivery;
        struct {
            const char *target, *seen;
        } message;
        struct store_electorate electorate; /* holds it */
        struct {
            const char *person, *reason;
        } end;
        struct {
            const char *scope, *person, *reason;
            int64_t for_ms;
        } block;
        struct record_list definitions;
        struct {
            const char *source, *kind, *name;
            bool changed_only, flagged_only;
            int64_t from;
            size_t limit;
        } definition_page;
        struct {
            const char *digest, *person;
        } accept;
    };
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
    /* Lets go of what the arguments hold beside texts; NULL: nothing. */
    void (*finish)(struct operation *operation);
};

/* Those that other files run; the others are queued where they are defined. */
extern const struct operation_kind operation_task_create, operation_sweep, operation_probe,
    operation_join, operation_heartbeat, operation_catch_up, operation_leave;

struct operation *operation_create(const struct operation_kind *kind, struct store_call call);
/* Empties the reply, for an answer that takes its place. */
void operation_clear_reply(struct operation *operation);
/* `list` has a page of rows, or one more: then has_more is set, and that row goes. */
void operation_end_page(struct operation *operation, struct record_list *list, size_t limit);
/* The bytes of the task that a client wrote. They may be as many as a body has. */
size_t operation_task_bytes(const struct task *task);
/* Copies of the operation's own; NULL stays NULL. */
const char *operation_keep(struct operation *operation, struct str text);
const char *operation_keep_text(struct operation *operation, const char *text);
/* Sends the reply to the loop of the caller. Takes the operation over. */
void operation_answer(struct operation *operation);

static inline void batch_sweep_no_later_than(struct batch *batch, int64_t at_ms)
{
    if (at_ms < batch->sweep_again_ms)
        batch->sweep_again_ms = at_ms;
}
/* Takes a reference of its own. */
void batch_add_event(struct batch *batch, struct task *task, bool created);
/* The same for a change that was read in the feed. */
void batch_add_feed_event(struct batch *batch, struct task *task, const struct task_event *event);
void batch_drop_events(struct batch *batch, size_t keep);
