/*
 * One call of a tool that the gateway runs: what an approved call (execute.h) and one that goes
 * on without its client (detach.h) both are. Each embeds it as its first member `base`.
 *
 * conversation_where() alone answers where a call is. The moves are the table in states.h.
 * Everything belongs to the thread of the worker's loop.
 */
#pragma once

#include "call/call.h"
#include "call/headers.h"
#include "question.h"
#include "server/http.h"
#include "server/protocol.h"
#include "states.h"
#include "taskgate/core/magic.h"

#define CONVERSATION_STATE(state, name) CONVERSATION_##state,
enum conversation_state { CONVERSATION_STATES(CONVERSATION_STATE) CONVERSATION_STATE_COUNT };
#undef CONVERSATION_STATE

/* The change of a task that the server's answer to its call makes (behaviour 7.12, 7.14). Zeroed
 * memory is an empty one. */
struct outcome {
    struct task_change change; /* its texts are in the two below; see outcome_change() */
    struct buffer text;        /* JSON text of the result or error */
    struct buffer message;     /* for statusMessage */
};
void outcome_finish(struct outcome *outcome);
/* The server's result. One with isError fails the task, and its first text is the reason. */
void outcome_of_result(struct outcome *outcome, struct str result);
/* Upstream's JSON-RPC error. */
void outcome_of_error(struct outcome *outcome, struct str error);
/* An error of the gateway's own. */
void outcome_of_failure(struct outcome *outcome, struct str tool, enum jsonrpc_error error,
                        const char *details);
/* A reply that holds no JSON-RPC answer. */
void outcome_of_no_answer(struct outcome *outcome, struct str tool,
                          const struct exchange_reply *reply);
/* Ready for the store; valid as long as the outcome. */
const struct task_change *outcome_change(struct outcome *outcome);
/* Tells the client by the result's _meta that an approver has changed the arguments. */
void outcome_mark_edited(struct outcome *outcome);

enum conversation_kind { CONVERSATION_APPROVED = 1 << 0, CONVERSATION_DETACHED = 1 << 1 };

struct invocation;

/* One constant for each kind. */
struct invocation_class {
    enum conversation_kind kind;
    void (*end)(struct invocation *invocation);     /* the store has taken its outcome */
    void (*destroy)(struct invocation *invocation); /* frees the object around it */
    /* The client of its task has answered something that the server asks (conversation/rounds.h).
     */
    void (*answered)(struct invocation *invocation);
    /* Nobody gives what the server requires: the call ends, and its outcome says why. */
    void (*give_up)(struct invocation *invocation, enum jsonrpc_error error, const char *why);
    /* Before a modern server gets the call again: whether the rules in force forward it. NULL: they
     * are not asked. */
    bool (*is_forwarded)(const struct invocation *invocation);
    const struct link_maker *maker; /* of `up` */
};

struct invocation {
    const struct invocation_class *class;
    uint32_t magic;                /* INVOCATION_MAGIC */
    enum conversation_state state; /* written by conversation_move() alone */
    int references;                /* its maker's until it has ended, and each message under way */
    struct gateway_worker *worker;
    char id[TASK_ID_BYTES]; /* the task's; "" before it is one */
    struct task *task;      /* NULL before it is one, and before an execution is begun */
    struct snapshot *snapshot;
    const struct config_source *source;
    struct headers headers; /* owned copies of what the server gets; never stored, or logged */
    char session[DIGEST_HEX_BYTES];    /* of the request that brought them */
    struct question_audience audience; /* the clients that answer the server's questions */
    struct server_budget budget;       /* for the requests of the server */
    struct server_link up;
    struct buffer request_id; /* JSON text of the id that the server sees; set once it is sent */
    char *server_task;        /* the server's own task, when the tool requires one */
    struct outcome outcome;
    struct loop_timer timer; /* the next look, poll or try to store; of a detached call at first the
                                end of its client's patience */
};
#define INVOCATION_MAGIC 0x4757560e

static inline struct invocation *invocation_from(void *context)
{
    return MAGIC_CAST(struct invocation, INVOCATION_MAGIC, context);
}

/* Zeroed memory becomes an invocation with one reference. */
void invocation_init(struct invocation *invocation, const struct invocation_class *class,
                     enum conversation_state state, struct gateway_worker *worker);
void invocation_ref(struct invocation *invocation);
void invocation_unref(struct invocation *invocation);
/* The worker's invocation of a task; NULL without one. */
struct invocation *invocation_of_task(const struct gateway_worker *worker, struct str id);
/* Takes a reference to the task, in place of an earlier one. NULL: the call is no task. */
void invocation_set_task(struct invocation *invocation, struct task *task);
/* The options that all messages to the server share. */
struct sending invocation_sending(const struct invocation *invocation);
/* The origin of a message of the server's. The caller sets its key, task and number. */
struct question_origin invocation_origin(struct invocation *invocation);
/* The outcome that the server's reply makes. */
void invocation_take_reply(struct invocation *invocation, const struct exchange_reply *reply);
/* The outcome that the result of the call makes. */
void invocation_take_result(struct invocation *invocation, struct str result);
/* Stores the outcome, and tries again until the disk takes it, for it exists only here; then ends.
 * The invocation is at STORING or REFUSED. */
void invocation_store(struct invocation *invocation);

/* ---- its states ---- */
enum conversation_state conversation_where(const struct invocation *invocation);
const char *conversation_state_name(enum conversation_state state); /* "offered" … */
/* NULL when there is no such move. */
const char *conversation_move_name(enum conversation_kind kind, enum conversation_state from,
                                   enum conversation_state to);
/* Whether what must hold in `state` holds now. false: `error` says what does not. */
bool conversation_check(const struct invocation *invocation, enum conversation_state state,
                        struct error *error);
/* Moves, if the table allows it and what must hold there holds already. false: it stays where it
 * is, the log has an error, and the caller must not do what the move was for; a debug build, as the
 * tests use it, aborts instead. */
bool conversation_move(struct invocation *invocation, enum conversation_state to);
/* Between its beginning and its end: checked, committed, run or stored. */
bool conversation_is_under_way(const struct invocation *invocation);
/* The call has been sent, or is about to be. */
bool conversation_has_begun(const struct invocation *invocation);
