/* One `subscriptions/listen`, for the files that serve it. */
#pragma once

#include "call/call.h"
#include "server/listen.h"
#include "taskgate/mcp/subscription.h"

/* A task of the gateway's own that the client hears of. */
struct listened_task {
    char id[TASK_ID_BYTES];
    struct task *task; /* as it was last seen; NULL until it has been read */
    char told[DIGEST_HEX_BYTES];
    /* The questions of its server at another replica, which has told of them. */
    struct buffer asked; /* JSON object; empty: nothing */
    int64_t asked_ms, asked_sequence;
};

#define LISTENING_ADDRESS_BYTES 48

struct listening {
    uint32_t magic; /* LISTENING_MAGIC */
    struct list node;
    struct call_part part;
    struct call *call;
    struct listener *listener;             /* NULL: the server's stream passes, or there is none */
    char address[LISTENING_ADDRESS_BYTES]; /* of a client that is not known; "" */
    struct loop_timer end;  /* when the token ends that the request was let in with */
    struct loop_timer life; /* the next sign of life on a stream of the server's */
    bool wants_tools;
    bool is_open;     /* the client has its acknowledgement */
    bool server_left; /* the server serves nothing of it: the gateway goes on by itself */
    struct listened_task *tasks;
    size_t task_count, read_count;
    call_step tasks_read; /* the next step with the tasks that are the client's */
};
#define LISTENING_MAGIC 0x4757580e

static inline struct listening *listening_from(void *context)
{
    return MAGIC_CAST(struct listening, LISTENING_MAGIC, context);
}

/* ---- listening.c ---- */
/* Takes a place for the call's stream, for `address` too if the client is not known; else "".
 * false: its owner or address has as many streams as allowed, or all have. */
bool listening_takes_place(const struct call *call, char address[LISTENING_ADDRESS_BYTES]);
/* The call owns it from now on, with its tasks and the place. */
void listening_add(struct call *call, struct listening *listening);
/* The call's; NULL without one. */
struct listening *listening_find(const struct call *call);

/* ---- listen_tasks.c ---- */
/* Takes the ids of the gateway's own tasks out of the filter's list, each once. */
void listen_tasks_init(struct listening *listening, struct str task_ids);
/* Reads the tasks; those that are not the client's are left out. Then goes on with `next`, unless
 * the store is down: then the call is answered. */
void listen_tasks_read(struct call *call, call_step next);
/* Appends the ids as JSON strings with commas between them. */
void listen_tasks_write_ids(const struct listening *listening, struct buffer *out);
/* Tells the client where each task stands. */
void listen_tasks_tell(struct listening *listening);
