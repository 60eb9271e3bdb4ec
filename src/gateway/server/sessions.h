/*
 * The sessions at legacy servers that a worker has open for modern clients (MCP 2026-07-28 before
 * 2025-11-25). A session is of one source, owner, clientInfo and set of clientCapabilities, because
 * a legacy server learns the last two once. A call that the server may ask something has a session
 * alone, so that what the server asks on the session's own stream can only belong to that call. So
 * has a call with a log level. Calls without credentials get a session each, which ends with them.
 *
 * A session that nobody uses ends after ten minutes. On the worker's loop.
 */
#pragma once

#include "call/call.h"
#include "http.h"

struct opened_session;

/* The server's notification stream (GET). */
enum session_stream {
    SESSION_STREAM_UNTRIED,
    SESSION_STREAM_ASKED,   /* no head has come yet */
    SESSION_STREAM_OPEN,    /* or it was, and may be opened again */
    SESSION_STREAM_REFUSED, /* the server has none */
};

/* A session at a legacy server that the gateway has opened for modern clients: with the
 * capabilities and the name that they declare, and with their credentials. On its worker's loop.
 * Source: MCP 2025-11-25, basic/lifecycle. */
struct opened_session {
    uint32_t magic;   /* OPENED_SESSION_MAGIC */
    struct list node; /* in worker.opened_sessions */
    struct gateway_worker *worker;
    struct snapshot *snapshot;          /* under which it was opened */
    const struct config_source *source; /* of it */
    int64_t limit_ms, total_ms;         /* of the opening: silence, and in all; 0: none */
    size_t most_bytes;                  /* of each reply to a request of its own */
    struct upstream_session base;       /* owned texts; empty before it is open */
    struct headers headers;             /* headers of its own requests */
    struct buffer initialized;          /* the result of `initialize`; empty before it is open */
    struct buffer level;                /* JSON text of the log level that was set last, or empty */
    struct server_budget budget;        /* for the server's requests that belong to no call */
    struct exchange *exchange;          /* of the opening */
    struct exchange *stream;            /* the GET stream, while it is there */
    enum session_stream stream_state;
    struct loop_timer patience; /* while the stream has no head yet */
    void (*opened)(struct opened_session *session, const struct exchange_reply *refusal);
    void (*stream_known)(struct opened_session *session);
    /* The receiver of the stream's messages; NULL: nobody. */
    void (*listener)(void *context, struct str message);
    void (*listener_ended)(void *context); /* the stream has ended; NULL: nobody is told */
    void *listener_context;

    /* ---- of the pool ---- */
    char *holder;                  /* it counts for: an owner, or an address */
    char *key;                     /* the owner of its calls; NULL: of one call alone */
    size_t users;                  /* calls that have checked it out */
    bool is_alone;                 /* checked out by one call that shares it with none */
    bool is_lost;                  /* the server does not know it any more */
    struct loop_timer idle;        /* its end, while nobody has it */
    struct session_lease *waiting; /* of the call that waits for it to be ready */
};
#define OPENED_SESSION_MAGIC 0x47574253

static inline struct opened_session *opened_session_from(void *context)
{
    return MAGIC_CAST(struct opened_session, OPENED_SESSION_MAGIC, context);
}

/* Borrowed until the function returns, but for the last. */
struct session_opening {
    struct gateway_worker *worker;
    struct snapshot *snapshot; /* a reference is taken */
    const struct config_source *source;
    const struct headers *headers; /* copied; those of a session are left out */
    struct str params;             /* of `initialize` */
    struct upstream_trace trace;
    int64_t limit_ms, total_ms; /* as in struct opened_session */
    size_t most_bytes;
    /* Comes later; with the reply that was no result, or with NULL once it is open. May destroy
     * the session. */
    void (*opened)(struct opened_session *session, const struct exchange_reply *refusal);
    void *context; /* of the listener, which the caller may set */
};

/* Opens a session: `initialize`, then `notifications/initialized`. The session is its caller's, and
 * of no pool. */
struct opened_session *opened_session_begin(const struct session_opening *opening);
/* Opens the GET stream unless it is open or the server has none. `known` comes later, once it is
 * known whether there is one, or after a second; not at all when false is returned: it is known
 * already. */
bool opened_session_want_stream(struct opened_session *session,
                                void (*known)(struct opened_session *session));
/* Ends the GET stream. */
void opened_session_close_stream(struct opened_session *session);
/* The options that the session's own requests share; `body` and `id` are the caller's to set. */
struct sending opened_session_sending(const struct opened_session *session);
/* Sends a message whose answer nobody waits for. */
void opened_session_notify(struct opened_session *session, struct str body);
/* Answers a request of the server's: a ping with {}, any other with -32601. A notification is
 * ignored. */
void opened_session_answer_stray(struct opened_session *session, struct str message);
/* Sends the response to a request of the server's: `member` is "result" or "error". */
void opened_session_respond(struct opened_session *session, struct str id, const char *member,
                            struct str value);
/* Frees it, and ends it at the server, which has opened it and still knows it. */
void opened_session_destroy(struct opened_session *session);
/* The same, once the server has taken this message (`id` as in struct sending). */
void opened_session_leave(struct opened_session *session, struct str body, struct str id);

/* ---- the pool ---- */

/* So many sessions all workers have open together. When all are in use, calls are refused. */
#define SESSION_POOL_MOST 1000

/* Checks a session out for a bridged call, which keeps it until its end, then goes on; at once if
 * the call has one. Answers the call itself when the server opens none. */
void session_pool_then(struct call *call, call_step next);
/* The call's session; NULL without one. */
struct opened_session *session_pool_of(const struct call *call);
/* Takes the session off the call: the caller gives it back. */
struct opened_session *session_pool_take(struct call *call);
/* The session is not used any more: by the call that had it alone, or by one of several. */
void session_pool_give_back(struct opened_session *session);
/* Nobody else gets the session: it ends when it is given back. */
void session_pool_retire(struct opened_session *session);
/* Whether a call of this method may be asked something by the server meanwhile. */
bool session_pool_may_be_asked(const struct call *call);
/* Ends all sessions that nobody uses: the process ends. */
void session_pool_end_idle(struct gateway_worker *worker);
/* Ends all of them, and what is under way at servers. */
void session_pool_close(struct gateway_worker *worker);
