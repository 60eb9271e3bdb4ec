/*
 * An exchange: one request at a server, and what returns. It has one of two modes, by the events
 * that its receiver gives:
 *
 * - Bytes: a client's request, which is forwarded. The reply comes as it is, in runs. Those of an
 *   event stream end between two events. That the reply is the request's is checked on the way.
 * - Messages: a request of the gateway's own (pings, lists, executions), and one that the gateway
 *   has taken over from a client. The reply comes whole, with the server's messages before it, and
 *   a stream that ends early is resumed.
 *
 * exchange_read_messages() leads from the first to the second, and none back. All on the worker's
 * loop; no event comes from inside a function of this header. Times are in milliseconds.
 */
#pragma once

#include "call/call.h"
#include "call/call_span.h"
#include "call/headers.h"
#include "taskgate/upstream/upstream.h"

struct exchange;

/* What is sent. Borrowed until exchange_send() returns, unless said otherwise. */
struct sending {
    const struct config_source *source; /* of `snapshot` */
    struct snapshot *snapshot;          /* messages: a reference is taken; bytes: outlives it */
    const char *url; /* NULL: the source's. The reply of another URL is no message. */
    /* Bytes: all that go up. Messages: beside content-type and accept. */
    const struct headers *headers;
    const char *method; /* NULL: "POST" */
    struct str body;    /* copied, unless it */
    bool body_lasts;    /* is there until upstream_call_has_sent() it, or the exchange ends */
    /* JSON text of the body's id; empty: no reply is expected. In bytes mode it lives as long as
     * the exchange has that mode. */
    struct str id;
    int64_t silence_ms; /* 0: no limit */
    int64_t total_ms;   /* messages: 0: no limit but silence */
    /* Bytes that are held. Messages: of the reply; bytes: of an event that is not passed on in
     * parts. */
    size_t most_bytes;
    int64_t reply_bytes;         /* bytes: of the whole reply; 0: no limit */
    struct upstream_trace trace; /* messages; all zeros: it has no span */
    struct span *span;           /* bytes: taken; NULL: it has none */
    /* Bytes: a token that is forgotten where the server refuses it. It lives as long as `id`. */
    struct str authorization;
    size_t own_bytes; /* of exchange_own() */
    bool is_parting;  /* messages: nobody waits for the reply; a shutdown does, for a moment */
};

/* The response has begun. Lives until the event returns. */
struct exchange_head {
    int status;
    /* In bytes mode views, which the receiver may change. */
    struct headers *headers;
    int64_t length; /* of the body, as announced; -1: it is not */
    bool is_stream; /* of events */
    bool is_encoded;
    bool is_checked; /* the reply must be the request's */
    /* Bytes: it must not be passed on: a redirect, too long, or not to be read. This is logged. */
    bool is_refused;
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

/* Why there is no response. */
enum lost_reason {
    LOST_CONNECT,
    LOST_GONE,
    LOST_TIMEOUT,
    LOST_UNREADABLE, /* encoded, too large or not JSON where the reply must be read */
    LOST_STATUS_5XX,
    /* The server has forgotten the session, and not looked at the request, which may be sent once
     * more. */
    LOST_FORGOTTEN,
    /* Of links with a maker (protocol.h): */
    LOST_REPLY,      /* the reply has no JSON-RPC response */
    LOST_ROUND,      /* the server requires input, and not as the protocol has it */
    LOST_ROUNDS,     /* it required input too often */
    LOST_AGAIN,      /* it wanted the request again for too long */
    LOST_UNANSWERED, /* what it required has not come in time */
    LOST_TASK_ID,    /* its task has no id */
    LOST_TASK_STATE, /* its task is in a state that the protocol does not have */
    LOST_TASK_ROUND, /* its task asks too much at once */
    LOST_REASON_COUNT
};
enum lost_reason lost_reason_of(enum upstream_result result);

/* Whether the server does not know the session that the request named, and so has not looked at the
 * request (MCP 2025-11-25, transports: 404). An answer with the request's id is one of its
 * handler, and a reply that breaks off may have been to be one. */
bool exchange_reply_forgets_session(const struct exchange_reply *reply,
                                    const struct headers *request);

/* The mode is bytes if `bytes` is there. Each of the others may be NULL where its mode is not the
 * exchange's; those marked may be NULL always. */
struct exchange_events {
    void (*head)(void *context, const struct exchange_head *head); /* messages: may be NULL */

    /* Bytes. The receiver ends the exchange by exchange_abandon(), at the latest in `end` or
     * `unreadable`; in each event but `bytes` and `part` of an event stream, it may. */

    /* The next of the reply. `is_whole`: an event stream is now between two events. */
    void (*bytes)(void *context, struct str bytes, bool is_whole);
    /* An event is too long to be held. true: its bytes so far have been passed on. */
    bool (*part)(void *context, struct str bytes);
    /* What comes is no response to the request, or too long a one, which is logged. */
    void (*unreadable)(void *context);
    /* The response has ended, or there is none. `is_response`: as far as could be checked. */
    void (*end)(void *context, enum upstream_result result, bool is_response, const char *detail);

    /* Messages. */

    void (*reply)(void *context, const struct exchange_reply *reply); /* once; frees the exchange */
    /* A request or notification of the server's before the answer. May be NULL. */
    void (*server_message)(void *context, struct str message);
    /* Called in place of `reply` by exchange_abandon_all(): frees `context`. May be NULL. */
    void (*dropped)(void *context);

    /* Another receives what comes from now on: frees what belongs to this receiver, but for the
     * exchange. Needed where exchange_read_messages() may be called later. */
    void (*released)(void *context);
};

/* `context` is exchange_own() where sending.own_bytes is set. Ends itself after `reply`. */
struct exchange *exchange_send(struct gateway_worker *worker, const struct sending *sending,
                               const struct exchange_events *events, void *context);
/* Memory of the receiver's, zeros at first, which ends with the exchange. */
void *exchange_own(struct exchange *exchange);
void exchange_abandon(struct exchange *exchange); /* no event follows; NULL is allowed */
/* Ends every exchange of the worker that reads messages: the process ends. */
void exchange_abandon_all(struct gateway_worker *worker);

/* Whether exchange_read_messages() is allowed now: the request has gone out whole, and the response
 * has not begun, or is an event stream between two events, of which none is the answer. */
bool exchange_may_read_messages(const struct exchange *exchange);
/* From now on messages are read, and go to another receiver. Of `sending`, what an exchange of
 * messages needs beside a body; of an exchange that reads messages already, the limit of silence.
 */
void exchange_read_messages(struct exchange *exchange, const struct sending *sending,
                            const struct exchange_events *events, void *context);

/* Whether an event stream has begun. */
bool exchange_is_stream(const struct exchange *exchange);
/* Bytes: whether the reply is known to be the request's, or is not checked. */
bool exchange_is_known(const struct exchange *exchange);
/* Bytes: whether an event that was passed on was the answer. */
bool exchange_is_answered(const struct exchange *exchange);
/* Since it was sent. */
int64_t exchange_age_ms(const struct exchange *exchange);
/* Back-pressure of bytes. Nothing happens once the response has ended. */
void exchange_pause(struct exchange *exchange);
void exchange_resume(struct exchange *exchange);
/* Another silence limit from now on; 0: none. */
void exchange_set_silence(struct exchange *exchange, int64_t silence_ms);

/* Sends a message whose answer nobody waits for. */
void exchange_notify(struct gateway_worker *worker, const struct sending *sending);
/* The response to a request of the server's; JSON texts, of which one is empty. */
struct server_response {
    struct str result, error;
};
/* Sends it. The server's answer to it goes to `events`; NULL: nobody waits for that. `id`: JSON
 * text of the server's. */
void server_respond(struct gateway_worker *worker, const struct sending *sending, struct str id,
                    const struct server_response *response, const struct exchange_events *events,
                    void *context);

/* A request of the gateway's own for a call, to the call's source with its own credentials. */
struct exchange_question {
    const struct headers *headers;
    struct str body, id; /* as struct sending has them */
    int64_t limit_ms;    /* of silence, and in all */
    size_t most_bytes;
    /* Not called when the call has ended before. `next` is that of the question. */
    void (*answered)(struct call *call, const struct exchange_reply *reply, call_step next);
    call_step next; /* NULL: `answered` knows how to go on */
};
/* A call has one question at a time. */
void server_ask(struct call *call, const struct exchange_question *question);
/* Asks for one page of a list: `method` as "tools/list", `cursor` JSON text or empty, `most_bytes`
 * of the reply. */
void server_ask_page(struct call *call, const char *method, struct str cursor, size_t most_bytes,
                     void (*answered)(struct call *call, const struct exchange_reply *reply,
                                      call_step next));

/* A new id, JSON text: "tg:<uuid>". */
void server_write_id(struct buffer *id);
/* {"jsonrpc":"2.0","id":"tg:<uuid>","method":…,"params":…}; `params` may be empty. `id` gets
 * the JSON text of the id. */
void exchange_write_request(struct buffer *body, struct buffer *id, const char *method,
                            struct str params);
