/*
 * Carries one request to the server and its response back. The response is streamed as it comes.
 * The few methods whose reply is rewritten hold it until it is whole.
 */
#pragma once

#include "call/call.h"
#include "call/headers.h"
#include "server/http.h"

/* A response of upstream's that is rewritten. Spans of `message`, which is checked JSON. */
struct relay_reply {
    struct str message, id, result;
    struct str list, next_cursor; /* of the result, where looks.list names a list */
};

/* What is looked at, and changed, in one request and its response on their way: a constant of the
 * request's method. All functions may be NULL: then what they are for passes as it is. */
struct looks {
    /* Appends the result that stands in the place of the reply's; what is before it in the message
     * has been appended. */
    void (*rewrite)(struct call *call, const struct relay_reply *reply, struct buffer *out);
    const char *list; /* the key of the list that `rewrite` wants of a result, or NULL */
    /* Appends the rewritten message when it knows the bytes of this one, which nobody has read. */
    bool (*recall)(struct call *call, struct str message, struct buffer *out);
    /* Writes a whole JSON-RPC response in place of one with this error. false: the error goes down
     * as it is. */
    bool (*replace_error)(struct call *call, struct str error, struct buffer *message);
    /* The same of one with this result. false: the result goes down, or `rewrite` writes it. */
    bool (*replace_result)(struct call *call, const struct relay_reply *reply,
                           struct buffer *message);
    size_t most_bytes; /* that are held of a reply that is read, if more than limits.result_bytes */
    /* There is no response. Answers in the server's place. false: the ordinary error is answered,
     * or the 5xx goes down. */
    bool (*stand_in)(struct call *call, enum lost_reason reason);
    /* Before the request is sent once more: whether the rules in force now forbid it. Then the call
     * is answered. */
    bool (*forbidden)(struct call *call);

    /* ---- of calls that may become tasks ---- */
    /* Called once when the response is not complete after carried.slow_ms, and again after
     * call_carrier.repeat_slow() and relay_wait_for_person(). */
    void (*slow)(struct call *call);
    /* The client has gone before its response was complete. The server's side is dropped unless
     * this takes it (call_carrier.exchange). */
    void (*left)(struct call *call);

    /* ---- where client and server are of one era, and bytes pass ---- */
    /* Whether a request or notification of the server's is taken out of the event stream, where the
     * client's era has requests of servers. */
    bool (*take_message)(struct call *call, struct str message);
    bool takes_all; /* in any era, and responses, too */
    /* Sees the response's status and headers before anything goes down. */
    void (*head)(struct call *call, int status, const struct headers *headers);
    /* The response is an HTTP error of 4xx. True: the call is taken over, and the response dropped.
     */
    bool (*refused)(struct call *call, int status);
    /* The client's stream of notifications, which nothing but the server's end concludes, is open
     * (relay_put()). */
    void (*opened)(struct call *call);
    /* Whether the call goes on without the server. `reply` is its whole reply, or empty at the end
     * of its event stream. Then the relay lets go of the call, and `alone` goes on with it: on the
     * stream that has begun, or from the start. */
    bool (*outlives)(struct call *call, int status, struct str reply);
    void (*alone)(struct call *call, bool has_begun);
};

/* What goes up, and the clocks. */
struct carried {
    int64_t silence_ms; /* 0: none */
    int64_t slow_ms;    /* until looks.slow(); 0: not by itself */
    const char *url;    /* NULL: the source's; as the next of one era only */
    /* The message that goes up in place of the client's, with its id; borrowed until the call has
     * its answer. NULL: the client's goes up. */
    const struct envelope *message;
};

struct server_link;

/* How a call is carried: one constant for each kind of client and server. */
struct call_carrier {
    void (*start)(struct call *call, const struct looks *looks, const struct carried *carried);
    /* Appends a result of the server's in the client's words. NULL: they are the same. */
    void (*write_result)(struct call *call, struct str result, struct buffer *out);

    /* Of calls that may become tasks; NULL, all of them, where none does: */

    /* Whether the call waits for its server, or for a task to ask its client. It does not while its
     * client is asked. */
    bool (*is_under_way)(const struct call *call);
    /* How long ago it was started. */
    int64_t (*age_ms)(const struct call *call);
    /* Calls looks.slow() once more. */
    void (*repeat_slow)(struct call *call, int64_t in_ms);
    /* Another limit; 0: none. A limit that holds already does not begin anew. */
    void (*set_silence)(struct call *call, int64_t silence_ms);
    /* What the server sends is received from it. NULL: the call waits for a task to ask its client.
     */
    struct exchange *(*exchange)(const struct call *call);
    /* What the server sends goes to another link from now on, whose maker answers the call. `asked`
     * gets the requests of a server that requires input. NULL: exchange_read_messages() takes it
     * over, and calls none of the looks; who does so answers the call, on the client's stream if
     * that has begun. */
    void (*hand_over)(struct call *call, struct server_link *to, struct buffer *asked);
};

/* Of calls in one era. */
extern const struct call_carrier relay_carrier;

static inline const struct call_carrier *call_carrier_of(const struct call *call)
{
    return call->carrier ? call->carrier : &relay_carrier;
}

/* Sends the client's own bytes, or carried.message, by the call's carrier. The call is answered by
 * it, or by a look. `carried` NULL: nothing of it. */
void relay_start(struct call *call, const struct looks *looks, const struct carried *carried);
/* Sends down a message that `take_message` took before. It goes between two events, never into one
 * that passes in pieces. The call's response is an event stream that has begun. */
void relay_pass(struct call *call, struct str message);
/* Sends whole events down, as relay_pass() does, on an event stream of a relay or of the gateway's
 * own. */
void relay_put(struct call *call, struct str events);
/* Bytes that wait for a client that does not read, or for the end of a long event. */
size_t relay_backlog(const struct call *call);
/* Answers the call with `message`, in place of a server whose side is dropped: on the event stream
 * that has begun, between two events of it, or as call_answer() does. */
void relay_end_with(struct call *call, struct str message);
/* A person is asked in this call, so the server may be silent: without a limit, until
 * looks.slow(), which is called in the next round, sets one. Nothing happens without a relay. */
void relay_wait_for_person(struct call *call);
/* The process ends: answers 503 to the worker's GET requests whose stream the server has not opened
 * yet. */
void relay_end_opening(struct gateway_worker *worker);
/* The ordinary answer to a failure: -32000, -32001 or -32002 for a request, else 502. */
void relay_answer_failure(struct call *call, enum lost_reason reason);
/* The error that a request is answered with. */
enum jsonrpc_error relay_failure_error(enum lost_reason reason);

/* ---- reading and rewriting a response before the client gets it ---- */

/* Whether responses are read at all; else they stream through. */
bool looks_read(const struct looks *looks);
/* Whether a carrier between two eras honours all of them: none needs the server's own bytes. */
bool looks_cross_eras(const struct looks *looks);
/* Whether these bytes of an event stream may hold a message to be taken out. Requests and
 * notifications name a method. To look for the word costs less than to parse. */
bool looks_may_take(const struct looks *looks, const struct call *call, struct str bytes);
/* Bytes that are held of a reply that is read. */
size_t looks_most_held(const struct looks *looks, const struct call *call);
/* Writes what goes down in place of the whole `message`. false: it is not the response to this
 * call, or an error that goes down as it is. */
bool looks_rewrite(const struct looks *looks, struct call *call, struct str message,
                   struct buffer *out);
