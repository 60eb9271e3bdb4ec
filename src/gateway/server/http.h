/*
 * A JSON-RPC request of the gateway's own to a server, and its whole answer: pings, lists,
 * executions. The answer comes as JSON, or on an SSE stream with other messages before it.
 */
#pragma once

#include "call/call.h"
#include "call/headers.h"
#include "call/upstream_span.h"
#include "taskgate/mcp/sse.h"
#include "taskgate/upstream/upstream.h"

struct exchange;

struct sending {
    const struct config_source *source; /* of `snapshot` */
    struct snapshot *snapshot;          /* a reference is taken */
    const struct headers *headers;      /* beside content-type and accept; copied */
    const char *method;                 /* NULL: "POST" */
    struct str body;                    /* copied */
    struct str id;                      /* JSON text of the body's id; empty: a notification */
    int64_t silence_ms;
    int64_t total_ms; /* 0: no limit but silence */
    size_t most_bytes;
    struct upstream_trace trace; /* all zeros: it has no span */
};

struct exchange_reply {
    enum upstream_result result;
    int status; /* 0 without a response, and with an HTTP error of another request's */
    const struct headers *headers;
    struct str message; /* the JSON-RPC response with our id, or a JSON-RPC error without one */
    struct str body;    /* the reply, when it was no event stream */
    bool too_large;
    bool unreadable; /* an encoding, a successful response that is no JSON-RPC, or another's */
    const char *detail;
};

/* Whether the server does not know the session that the request named, and so has not looked at the
 * request (MCP 2025-11-25, transports: 404). An answer with the request's id is one of its
 * handler, and a reply that breaks off may have been to be one. */
bool exchange_reply_forgets_session(const struct exchange_reply *reply,
                                    const struct headers *request);

struct exchange_events {
    void (*reply)(void *context,
                  const struct exchange_reply *reply); /* once; the exchange is freed then */
    /* The response has begun. May be NULL. */
    void (*head)(void *context, int status, const struct headers *headers);
    /* A request or notification of the server's before the answer. May be NULL. */
    void (*server_message)(void *context, struct str message);
    /* Called in place of `reply` by exchange_abandon_all(): frees `context`. May be NULL. */
    void (*dropped)(void *context);
};

struct exchange *exchange_send(struct gateway_worker *worker, const struct sending *sending,
                               const struct exchange_events *events, void *context);
/* A request that others have sent, whose answer a call of the gateway's own takes. */
struct exchange_begun {
    struct upstream_call *upstream;
    int status;                   /* 0: there is no response yet */
    bool is_stream;               /* an event stream has begun, and has been passed on so far; */
    struct buffer received;       /* but for these bytes; the taker's */
    struct sse_splitter splitter; /* that has seen them */
    struct buffer last_id;        /* of what went down last, if that had one; the taker's */
    int64_t started_ms;
    struct span *span; /* the taker's; NULL without telemetry */
};
/* Takes over a request that a relay has sent. No body is sent. The silence limit is the sending's
 * from now on. */
struct exchange *exchange_adopt(struct gateway_worker *worker, struct exchange_begun *taken,
                                const struct sending *sending, const struct exchange_events *events,
                                void *context);
/* Another has taken the request over: what comes from now on is told to it. */
void exchange_hand_over(struct exchange *exchange, const struct exchange_events *events,
                        void *context);
void exchange_abandon(struct exchange *exchange); /* without a reply; NULL is allowed */
/* Another silence limit from now on; 0: none. */
void exchange_set_silence(struct exchange *exchange, int64_t silence_ms);
/* Cancels every exchange of the worker: the process ends. */
void exchange_abandon_all(struct gateway_worker *worker);
/* Sends a message whose answer nobody waits for. */
void exchange_notify(struct gateway_worker *worker, const struct sending *sending);

/* A request of the gateway's own for a call, to the call's source. */
struct exchange_question {
    const struct headers *headers;
    struct str body, id; /* as struct sending has them */
    int64_t limit_ms;    /* of silence, and in all */
    size_t most_bytes;
};
struct exchange *exchange_ask(const struct call *call, const struct exchange_question *question,
                              const struct exchange_events *events, void *context);

/* Asks for one page of a list with the client's own credentials: `method` as "tools/list", `cursor`
 * JSON text or empty, `most_bytes` of the reply. The context of the callbacks is the call. */
struct exchange *exchange_ask_page(struct call *call, const char *method, struct str cursor,
                                   size_t most_bytes, const struct exchange_events *events);

/* {"jsonrpc":"2.0","id":"tg:<uuid>","method":…,"params":…}; `params` may be empty. `id` gets
 * the JSON text of the id. */
void exchange_write_request(struct buffer *body, struct buffer *id, const char *method,
                            struct str params);
