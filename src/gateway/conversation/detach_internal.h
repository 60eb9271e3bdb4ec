/* The detached call itself, for the files that run and answer it. */
#pragma once

#include "call/call.h"
#include "call/client_profile.h"
#include "detach.h"
#include "invocation.h"
#include "taskgate/core/magic.h"

/* How long a call that cannot become a task now stays as it is before the next try. */
#define DETACHED_CALL_AGAIN_MS 1000
/* The message of progress meanwhile. */
#define DETACHED_CALL_WAITS_FOR "Waiting for the tool to answer"

struct detached_rounds;

struct detached_call {
    struct invocation base; /* first; `request_id` is the client's */
    uint32_t magic;         /* DETACHED_CALL_MAGIC */
    struct call_part part;  /* of `call` */
    struct list node;       /* in worker.detached */
    struct call *call;      /* waits for the answer; NULL when nobody does any more */
    char key[CLIENT_KEY_BYTES];
    bool is_executed;               /* by execute_tool */
    bool is_given_up;               /* by its client, while the store was taking its task */
    bool wraps_output;              /* of the tool, by the bridge */
    struct detached_rounds *rounds; /* of a bridged call; NULL of any other */
    int64_t patience_ms;
    uint64_t number;                 /* of the call, for its questions */
    char *end_authorization;         /* of the DELETE of its session; NULL without */
    char repeated[DIGEST_HEX_BYTES]; /* repeated_call_digest_left(), once it is to be a task */
};
#define DETACHED_CALL_MAGIC 0x4757450c

static inline struct detached_call *detached_call_from(void *context)
{
    return MAGIC_CAST(struct detached_call, DETACHED_CALL_MAGIC, context);
}

/* ---- detach.c ---- */
/* A call that runs; its exchange is the caller's to start. */
struct detached_call *detached_call_create(struct call *call, int64_t patience_ms);
/* What it sends, but for a body. */
struct sending detached_call_sending(const struct detached_call *detached);
extern const struct exchange_events detached_call_events;
/* The server's answer. The store may still be taking the call's task. */
void detached_call_take_reply(struct detached_call *detached, const struct exchange_reply *reply);
/* A message of the server's before it. */
void detached_call_take_message(struct detached_call *detached, struct str message);
/* Nothing more is sent or stored. A client that waits for its answer still gets one. */
void detached_call_end(struct detached_call *detached);
/* Whether there is room for one more task; writes the client's key. */
bool detached_task_reserve(const struct call *call, char key[CLIENT_KEY_BYTES]);
/* Makes a task of the call, for which room is reserved, and notifies the client once it is stored.
 * false: it cannot be made, and the room is given back. */
bool detached_task_create(struct detached_call *detached, const struct call *call);
/* The same call made again joins the task. */
void detached_task_remember(const struct detached_call *detached);

/* ---- detached_rounds.c: a modern server, of whose call the client is a legacy one ---- */
extern const struct link_maker detached_maker;
/* Keeps what the server has got of the call. */
void detached_rounds_keep(struct detached_call *detached, const struct call *call);
void detached_rounds_destroy(struct detached_rounds *rounds); /* NULL is allowed */
/* The server required input (JSON object, or empty: none) before there was a task. */
void detached_rounds_keep_asked(struct detached_call *detached, struct str requests);
/* The task is stored: asks what was required meanwhile. */
void detached_rounds_begin(struct detached_call *detached);
/* There is no task: that input was required becomes the outcome. */
void detached_rounds_refuse(struct detached_call *detached);
/* For invocation_class.is_forwarded. */
bool detached_rounds_are_forwarded(const struct invocation *invocation);
