/*
 * The store: tasks, sessions, the audit trail and the outbox, durable in a database.
 *
 * One thread owns the database. Every call here only queues; the answer comes as a message on the
 * caller's loop, after the commit that holds it (behaviour 1.2). Calls that wait together are
 * committed together. Callable from any loop thread; never blocks.
 *
 * On one loop, answers and notices of observers arrive in the order in which they took effect. So a
 * caller that reads a task and then waits for its next change misses none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/approval/ballot.h"
#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"
#include "taskgate/core/str.h"
#include "taskgate/loop/loop.h"
#include "taskgate/store/chain.h"
#include "taskgate/store/records.h"
#include "taskgate/task/task.h"

struct store;

/* Says how the values of a task are kept. Runs on the store's thread. */
struct store_redaction {
    /* Once it has ended. Writes `value` (JSON text: arguments, meta, other params) as it is to be
     * kept for a task of `workflow`. Returns whether it hid something. */
    bool (*write)(void *context, struct buffer *out, struct str value, const char *workflow);
    /* Writes task->brief of one that begins to wait; NULL: it has none. */
    void (*write_brief)(void *context, struct buffer *out, const struct task *task);
    void *context;
};

/* A kind of database that the store can stand on (taskgate/store/sqlite.h). */
struct store_backend;

/* Opens or creates the database that `place` names for the backend, migrates, ends what a crash
 * left in `executing` as failed "outcome unknown". Blocks: call it before the loops run. NULL on
 * failure; `error` tells a database in use from one that cannot be opened. `replica` names this
 * process among those that use the database; NULL: the system's host name. `redaction` is copied
 * and may already be used here; NULL keeps the values as they are. */
struct store *store_open(const struct store_backend *backend, const char *place,
                         const char *replica, const struct store_redaction *redaction,
                         struct error *error);
/* Whether store_open() failed because another process has the database. */
bool store_is_in_use(const struct error *error);
/* Finishes what is queued, then closes. No loop that has calls under way may be destroyed
 * before. NULL is allowed. */
void store_close(struct store *store);
/* Finishes what is queued and ends the thread; whatever is asked from then on is answered
 * STORE_FAILED. For a process that still delivers answers before it closes. */
void store_stop(struct store *store);
/* false after the database has failed: the calls of that commit have answered STORE_FAILED, and
 * so does every later one that still fails. The store tries again with each call, and by itself
 * every second; true again after a commit that wrote. A database whose file, or whose log, was
 * removed or replaced has failed until it is back. Any thread. */
bool store_is_healthy(const struct store *store);

enum store_status {
    STORE_OK,
    STORE_NOT_FOUND,
    STORE_CONFLICT,              /* the task is in a state that does not allow the change */
    STORE_REFUSED,               /* the vote is refused: see `refusal` */
    STORE_LIMIT_PRINCIPAL,       /* pending tasks of one owner */
    STORE_LIMIT_PRINCIPAL_BYTES, /* bytes of their requests */
    STORE_LIMIT_TOTAL,
    STORE_LIMIT_BYTES, /* bytes in the store */
    STORE_FAILED,      /* the database, or a call that cannot be carried out; nothing was changed,
                        * unless `is_unsure` */
};

struct store_audit_page;
struct store_delivery;

/* An answer. It is freed after the callback, which may take references of tasks. */
struct store_reply {
    enum store_status status;
    bool is_unsure;    /* STORE_FAILED: it is not known whether the change was stored */
    struct task *task; /* get, create, change: the task as it is now (also on conflict) */
    enum ballot_refusal refusal;
    struct task **tasks; /* list: in its order; without request, outcome, and long arguments */
    size_t task_count;
    int64_t *sequences;        /* list: the row number of each task, for the next page */
    bool has_more;             /* list: there are older ones, behind */
    int64_t last_sequence;     /* the last row that was looked at, and */
    int64_t last_decide_by_ms; /* list: its deadline; INT64_MAX where it has none */
    int64_t waiting;           /* list of those that wait: all, whatever the query asks for */
    const struct store_session *session;
    const struct store_sign_in *sign_in;
    const struct store_audit_entry *audit; /* audit list */
    size_t audit_count;
    const struct store_audit_page *audit_page;
    const struct store_delivery *deliveries; /* outbox */
    size_t delivery_count;
    const struct store_message *messages; /* outbox */
    size_t message_count;
    int64_t next_due_ms; /* outbox: when the next delivery is due; INT64_MAX: none waits */
    const struct store_block *blocks; /* blocks.h */
    size_t block_count;
    const struct store_grant *grants; /* grants.h */
    size_t grant_count;
    const struct store_definition *definitions; /* definitions.h */
    size_t definition_count;
    const struct store_home *home;   /* homes.h */
    const struct store_tally *tally; /* tally.h */
    bool has_promised;               /* cancel session: some tasks have a new owner */
};
typedef void (*store_callback)(void *context, const struct store_reply *reply);

/* The receiver of the answer. A NULL callback means nobody waits. */
struct store_call {
    struct loop *loop;
    store_callback callback;
    void *context;
};

/* The actor, for the audit trail. */
struct store_actor {
    const char *kind; /* "client", "operator", "gateway" */
    const char *name; /* token name or owner; never a secret */
};

struct store_limits {
    int64_t pending_per_principal, pending_total;
    int64_t store_bytes;
    int64_t pending_bytes_per_principal; /* of requests */
};

/* Inserts `task` (one reference is taken over) unless a limit is reached: on tasks that are
 * undecided (pending, or approved and not yet executing) or run without a decision (accelerated and
 * promoted ones), on the bytes of their requests, or on the bytes that the store holds. At the end
 * of a task its request is deleted and its values are redacted. A task that task_check() refuses is
 * logged and answered STORE_FAILED. */
void store_task_create(struct store *store, struct task *task, const struct store_limits *limits,
                       struct store_call call);
/* Reads one task, whole. A deadline that has passed is applied first, and durably. */
void store_task_get(struct store *store, struct str id, struct store_call call);
/* Compare-and-set: applies `change` (copied) if the table allows it from the state the task is
 * in now, deadlines applied first; else STORE_CONFLICT with the task as it is. A change that
 * lacks what its state needs (task.h) is logged and answered STORE_FAILED. Writes the audit
 * entry in the same transaction. */
void store_task_change(struct store *store, struct str id, const struct task_change *change,
                       const struct store_actor *actor, struct store_call call);
/* Facts of votes that the store cannot know: it asks on its own thread, also of votes that came
 * between a caller's look and its vote. */
struct store_vote;
struct store_electorate {
    /* Whether the vote has the typed value that an approval of this task needs. NULL: none is
     * asked for. */
    enum ballot_typed (*typed)(void *context, const struct store_vote *vote,
                               const struct task *task);
    /* Whether the call is bound to another definition of its tool than the one of now; NULL: it is
     * not known. */
    bool (*definition_changed)(void *context, const struct task *task);
    /* Whether a vote that was given earlier counts now; sets vote->stands, and the groups that its
     * person has now. */
    void (*renew)(void *context, struct ballot_vote *vote);
    /* The terms of a workflow, as ballot_terms_write() has them; NULL: there is no such one. They
     * live as long as the context. */
    const char *(*terms)(void *context, const char *workflow);
    /* How long an approval through this workflow holds. */
    int64_t (*valid_for_ms)(void *context, const char *workflow);
    void (*release)(void *context); /* once, when nobody asks any more */
    void *context;
};
/* The arguments that an approver gives a call. */
struct store_edit {
    char *arguments; /* JSON text */
    char *request;   /* the whole request with them */
    size_t request_length;
    char arguments_digest[65], request_digest[65];
    char before_digest[65]; /* of the request that they were made of, which must be the task's */
};
/* A change that is queued right behind a vote, so that one transaction holds both as a rule. Each
 * stands by itself: whatever becomes of the vote, the change is answered as by
 * store_task_change(). */
struct store_claim {
    struct task_change change;
    struct store_actor actor;
    struct store_call call;
};
struct store_vote {
    struct person voter;
    enum ballot_verb verb;
    const char *reason;            /* or NULL */
    bool is_emergency;             /* an approval by one alone */
    struct ballot_wish grant;      /* the same again, if the other approvals ask for it, too */
    const struct store_edit *edit; /* of an approval that decides alone; NULL: none. Copied */
    bool withdraws;                /* takes their vote back; the three above do not matter */
    const char *reaction; /* mark of the message whose reaction it is, or NULL; such a one withdraws
                             no other vote than its own */
    const char *typed;    /* the value that the voter has typed; or NULL */
    const char *shown_digest; /* of the request that the voter was shown; NULL: not told */
    struct store_electorate electorate; /* taken over */
    const struct store_claim *claim;    /* of the same task, or NULL. Copied */
};
/* The ballot's verdict on a vote on this task, or on taking it back: the question is filled in
 * here for whoever asks, before the vote or with it. The votes are as the electorate renews them.
 * Any thread. */
enum ballot_refusal store_vote_judge(const struct ballot *ballot, const struct store_vote *vote,
                                     const struct task *task);
/* Gives a vote (copied) on a pending task, under the terms of its creation. The vote that completes
 * the quorum, and any rejection, moves the task in the same transaction. STORE_REFUSED says why by
 * reply->refusal; but a task that does not wait any more is STORE_CONFLICT. */
void store_task_vote(struct store *store, struct str id, const struct store_vote *vote,
                     struct store_call call);
/* Remembers upstream's own task id of an executing task, before it is polled. STORE_CONFLICT
 * when it is not executing. Observers do not hear of it. */
void store_task_set_upstream(struct store *store, struct str id, struct str upstream_task,
                             struct store_call call);

/* Says in the status message of an approved task why it does not run. Observers hear of it.
 * STORE_CONFLICT when it is not approved. */
void store_task_set_message(struct store *store, struct str id, struct str message,
                            struct store_call call);

/* A pending answer is about to name the task to its client. Answers with the task as it is now. */
void store_task_promise(struct store *store, struct str id, struct store_call call);
/* Its client has given up waiting: it executes when the owner comes back. STORE_CONFLICT when it is
 * not pending. */
void store_task_leave(struct store *store, struct str id, struct store_call call);

/* The entries about a question to the user of a client (`approval.NAME.confirm`). The store adds
 * the last one when a task with the first alone ends otherwise than by its client's cancel. */
#define STORE_EVENT_ASKED "confirmation_asked"
#define STORE_EVENT_CONFIRMED "confirmed"
#define STORE_EVENT_UNANSWERED "unconfirmed"
#define STORE_UNANSWERED_REASON "not answered by a person"

/* Adds an entry about an undecided or approved task to the audit trail: `event` (static text),
 * which moves the task nowhere. It is added once for a task. STORE_CONFLICT when the task runs or
 * has ended. Observers do not hear of it. */
void store_task_note(struct store *store, struct str id, const char *event,
                     const struct store_actor *actor, struct str reason, struct store_call call);

enum store_task_order {
    STORE_BY_CREATION,  /* the newest first */
    STORE_BY_DECIDE_BY, /* the nearest deadline first, without one last; then the oldest first */
};
struct store_task_query {
    struct str owner;   /* empty: any (operators); a client's list has no answers (task.h) */
    struct str session; /* also tasks of this session digest, whatever their owner; may be empty */
    struct str source;  /* empty: any */
    struct str tool;    /* exact; empty: any, as the two below */
    struct str workflow, principal;
    unsigned states; /* bit mask 1u << state; 0: any */
    bool without_promoted;
    /* In the order below only rows behind this one; 0: from the first. */
    int64_t behind_sequence, behind_decide_by_ms;
    enum store_task_order order;
    /* All that wait for a decision, in no order and without any long text: for a filter that counts
     * them. Of the members above source, tool, workflow and principal hold. There are
     * limits.pending_total of them at most. */
    bool is_of_waiting;
    size_t limit;
    /* Arguments longer than this are left out: "" in the answer, which no arguments are. So are
     * meta and other_params. */
    size_t most_argument_bytes;
    /* Of all that clients wrote on a page: it ends there, with has_more; 0: 1 MiB. */
    size_t most_bytes;
    /* The filter of the listed tasks, asked on the store's thread; NULL: all. A page ends, with
     * has_more, also when many were looked at. A task that is NULL says that the list begins, maybe
     * once more: what the filter knows of tasks is then of a transaction that was rolled back. */
    bool (*accepts)(void *context, const struct task *task);
    void (*release)(void *context); /* once, when nobody asks any more; NULL: nothing to release */
    void *context;
};
void store_task_list(struct store *store, const struct store_task_query *query,
                     struct store_call call);
/* Of the tasks that this session's digest owns (owner "session:<digest>"): those that are promised
 * get the owner `heir`, and execute at a tasks/result only unless they have begun; the answer has
 * has_promised. The other undecided (pending or approved) and promoted ones are cancelled. Tasks
 * owned by an Authorization stay. Behaviour 4.6. */
void store_task_cancel_session(struct store *store, struct str source, struct str session,
                               struct str heir, struct store_call call);

/* ---- changes, as they are committed ---- */
typedef void (*store_observer)(void *context, struct task *task, bool created);
/* `observer` runs on `loop` for every task created or changed, in the order of commits, also by
 * another replica, or by this one in a commit whose answer was lost; it may take a reference.
 * Subscribe before the loops run; there is no end but store_close(). */
void store_observe(struct store *store, struct loop *loop, store_observer observer, void *context);
/* A change of a task in the feed that all replicas write, in the order of its commits. */
struct store_feed_event {
    struct task *task; /* of another replica's change: as it is when this one reads of it */
    bool created;
    bool is_own;      /* this replica has made the change */
    int64_t sequence; /* the same at every replica; rises */
};
typedef void (*store_feed_observer)(void *context, const struct store_feed_event *event);
/* What has an id and is observed by it. */
enum store_id_kind { STORE_GRANT, STORE_BLOCK, STORE_DEFINITION, STORE_ID_KINDS };
typedef void (*store_id_observer)(void *context, struct str id);
/* `observer` runs on `loop` after each commit that has changed one of the kind (as a grant that was
 * given or used, or has ended), at least once for each, before the answers of that commit. Of a
 * shared database it is notified of other replicas' commits as well; the prefix of the ids alone:
 * changes were missed, so all are to be read anew. There is one observer of a kind. Subscribe
 * before the loops run; there is no end but store_close(). */
void store_observe_ids(struct store *store, enum store_id_kind kind, struct loop *loop,
                       store_id_observer observer, void *context);
/* Deadlines are swept at least every 10 s, and at each deadline that is nearer. */

/* ---- sessions: what survives a restart of what upstream's sessions negotiated. Forgotten when
 * neither the session nor a token in it was seen for 30 days. ---- */
/* The most sessions that are remembered. A quarter of it may be of one owner. */
#define STORE_SESSIONS_MAX 10000

void store_session_put(struct store *store, const struct store_session *session,
                       struct store_call call);
void store_session_get(struct store *store, struct str source, struct str id_digest,
                       struct store_call call);
/* With what is known of its tokens. */
void store_session_delete(struct store *store, struct str source, struct str id_digest,
                          struct store_call call);
/* A (session, token) pair that upstream has accepted; digests only. */
void store_pair_put(struct store *store, struct str source, struct str session_digest,
                    struct str token_digest, int64_t accepted_ms, struct store_call call);
/* STORE_OK when the pair was accepted at some time, else STORE_NOT_FOUND. */
void store_pair_get(struct store *store, struct str source, struct str session_digest,
                    struct str token_digest, struct store_call call);

/* ---- operators who have signed in: what survives a restart of their sessions ---- */
/* Keeps the latest 10,000. The audit trail gets a row in the same transaction, as it does when a
 * session that there was is deleted. */
void store_sign_in_put(struct store *store, const struct store_sign_in *sign_in,
                       struct store_call call);
void store_sign_in_get(struct store *store, struct str digest, struct store_call call);
/* STORE_OK, also when there was none. */
void store_sign_in_delete(struct store *store, struct str digest, struct store_call call);
/* Remembers a digest for `keep_ms`, for all replicas. STORE_CONFLICT when it is remembered already:
 * what it is of has been taken before. It is kept among the sign-ins, with nobody's name. */
void store_note_once(struct store *store, struct str digest, int64_t keep_ms,
                     struct store_call call);

/* ---- audit: append-only ---- */
/* A row that is about no task. Texts of the code's own, and a person; NULL is as "". */
struct store_audit_note {
    const char *event;  /* "sign_in", "sign_out", "sign_in_refused", "operator_refused" */
    const char *person; /* or NULL: not known */
    const char *via;    /* "oidc", "token", "certificate" */
    const char *reason; /* or NULL */
};
void store_audit_note(struct store *store, const struct store_audit_note *note,
                      struct store_call call);
/* Of one task, oldest first. */
void store_audit_list(struct store *store, struct str task_id, struct store_call call);

/* Rows of the whole trail as canonical JSON. */
struct store_audit_page {
    char *rows; /* objects, with commas between them */
    size_t rows_length;
    char *kept;            /* members of an object, a row's number to its kept arguments; or NULL */
    int64_t last_sequence; /* of the last row; what was asked for where there is none */
    bool has_more;
    bool has_start;            /* older rows were removed: */
    struct store_anchor start; /* the chain goes on from here */
};
/* At most `limit` rows behind the row `after`, oldest first; fewer where they are long. */
void store_audit_page(struct store *store, int64_t after, size_t limit, bool with_arguments,
                      struct store_call call);

struct store_audit_settings {
    int64_t keep_arguments_ms; /* 0: not at all */
    int64_t keep_ms;           /* 0: for ever */
    int64_t anchor_every_ms;   /* 0: never */
    struct signature_key *key; /* signs anchors, or NULL; the store takes a reference of its own */
};
/* From now on. Without this call nothing is kept beside the rows, and they are kept for ever. */
void store_audit_configure(struct store *store, const struct store_audit_settings *settings);

/* ---- outbox: what operators' endpoints are to be told, noted in the transaction of the change
 * itself and kept until it is delivered or given up. src/notify delivers. ---- */
/* After this long a delivery is given up. */
#define STORE_NOTICE_LIFETIME_MS INT64_C(86400000)

struct store_outbox_target {
    char key[65];    /* SHA-256 hex of its URL, which may hold credentials and is not stored */
    unsigned events; /* NOTIFY_… bits of config.h, those that `events` cannot name among them */
    bool with_arguments;
};
/* From this commit on changes are noted for these targets (copied), also after a restart.
 * Deliveries that wait for other targets are dropped soon after; the log says how many. */
void store_outbox_configure(struct store *store, const struct store_outbox_target *targets,
                            size_t count, struct store_call call);
struct store_delivery {
    int64_t sequence;
    char id[33];       /* stable over all attempts */
    unsigned event;    /* one NOTIFY_… bit: the first of the change's that the target wants */
    int64_t attempts;  /* that have failed */
    int64_t at_ms;     /* of the change */
    char *reference;   /* the text that store_outbox_posted() has kept of the task, or NULL */
    bool is_emergency; /* the task was approved by one person alone */
    char *anchor;      /* JSON object: it is about this, and about no task; else NULL */
    struct task *task; /* as it was then: what operators see of it; `arguments`, `meta` and
                          `other_params` are "" unless some target wanted them */
};
/* `observer` runs on `loop` after each commit that has noted something for the targets. There is
 * one such observer. Subscribe before the loops run; there is no end but store_close(). */
void store_outbox_observe(struct store *store, struct loop *loop, loop_callback observer,
                          void *context);
/* Lists the deliveries that are due for one target, longest due first. A delivery waits for the
 * earlier ones of its task, so that a target hears of each task in order. */
void store_outbox_due(struct store *store, struct str target, size_t limit, struct store_call call);
void store_outbox_delivered(struct store *store, int64_t sequence, struct store_call call);
/* The same; `reference` is where the target keeps what it was told. Its later deliveries of this
 * task have it, until the task has ended. */
void store_outbox_posted(struct store *store, int64_t sequence, const char *reference,
                         struct store_call call);
/* Those of one endpoint, of the newest tasks first. */
void store_outbox_messages(struct store *store, struct str target, size_t limit,
                           struct store_call call);
/* Those of one task, at whatever endpoint. */
void store_outbox_messages_of(struct store *store, struct str task_id, struct store_call call);
/* Keeps beside the message what was seen of it. */
void store_outbox_see(struct store *store, struct str target, struct str task_id, struct str seen,
                      struct store_call call);
/* The attempt has failed; the next is due at `due_ms` (wall clock). */
void store_outbox_postpone(struct store *store, int64_t sequence, int64_t due_ms,
                           struct store_call call);
/* Forgets the delivery and says so, with the reason, in the task's audit trail. */
void store_outbox_give_up(struct store *store, int64_t sequence, const char *reason,
                          struct store_call call);

/* ---- counts for metrics and readiness; the store keeps them current; any thread ---- */
/* Tasks that wait for a decision. */
int64_t store_pending_count(const struct store *store);
