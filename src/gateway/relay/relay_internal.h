/* The relay itself, for the files that carry one response. */
#pragma once

#include "call/call_part.h"
#include "call/upstream_span.h"
#include "relay.h"
#include "taskgate/core/magic.h"
#include "taskgate/mcp/reply_check.h"

/* A reply whose id comes after more bytes than this goes down before its id is known. If it turns
 * out to be no response to the request, the client's is cut off. */
#define LOOKING_BYTES ((size_t)64 * 1024)

/* A kept reply gets at most so much room by its announced length, which may be a lie. */
#define WHOLE_RESERVED INT64_C(1048576)

/* Bytes kept of either end of the last event that went down, to see whether it was the answer. */
#define GLIMPSE_BYTES 256

enum relay_mode {
    RELAY_WAITING, /* waits for the head */
    RELAY_LOOKING, /* held until the reply's id is known */
    RELAY_BYTES,   /* streamed as they come */
    RELAY_EVENTS,  /* streamed event by event */
    RELAY_WHOLE,   /* held until the end, then rewritten */
};

struct relay {
    uint32_t magic; /* RELAY_MAGIC */
    struct call_part part;
    struct call *call;
    struct relay_options options;
    struct upstream_call *upstream;
    enum relay_mode mode;
    int status;
    struct buffer kept; /* bytes that have not gone down: all so far, or a part of an event */
    struct reply_event_check reply;
    struct sse_splitter splitter;
    struct notification_stream *stream; /* the client's open GET stream */
    int64_t started_ms;
    int64_t received;          /* bytes of the body so far */
    bool inside_event;         /* a long event is passing in pieces */
    struct buffer behind;      /* whole events that go down behind it */
    struct buffer glimpse;     /* first and last bytes of what went down last */
    int64_t content_length;    /* of the response; -1 when it is not announced */
    bool is_encoded;           /* the body has an encoding, so it cannot be read */
    bool is_looked_at;         /* the reply must be the request's: `reply` tells */
    struct loop_timer slow;    /* only with options.slow */
    struct relay_trace *trace; /* relay_span.c; NULL without telemetry */
};
#define RELAY_MAGIC 0x4757420a

static inline struct relay *relay_from(void *context)
{
    return MAGIC_CAST(struct relay, RELAY_MAGIC, context);
}

/* ---- relay.c ---- */
/* The call's relay; NULL without one. */
struct relay *relay_find(const struct call *call);
void relay_send_down(struct relay *relay, struct str bytes);
/* Takes the relay off its call, which is about to be answered. */
struct call *relay_finish(struct relay *relay);

/* ---- relay_reply.c: whether the reply is the response to the request ---- */
bool relay_is_of_request(const struct relay *relay);
/* Whether the response is a stream that has no end of its own, instead of an answer. */
bool relay_lasts(const struct relay *relay);
/* Whether a body of so many bytes is longer than an answer may be, which is counted. */
bool relay_reply_is_too_large(const struct relay *relay, int64_t bytes);
/* That are held of a reply that is read. */
size_t relay_most_held(const struct relay *relay);
/* The head has come. false: the reply must not be passed on. */
bool relay_reply_begin(struct relay *relay, const struct headers *headers);
/* HTTP errors that are no JSON-RPC go down as they are. Their connection is not kept. */
bool relay_reply_is_refused(const struct relay *relay, enum reply_verdict verdict);
/* Ends the call and its connection, on which the next reply may be another request's, too. */
void relay_reply_fail(struct relay *relay, enum reply_verdict verdict);
/* The reply has ended. false: it was none, and the call is answered. */
bool relay_reply_end(struct relay *relay);

/* ---- relay_span.c: only for calls that have a span ---- */
/* Names a new span in the headers, which borrow from it. Returns the body that goes up: that of the
 * message, or the relay's copy that names the span where the client has named its own. */
struct str relay_span_begin(struct relay *relay, const struct envelope *message,
                            struct headers *headers) SPAN_COLD;
void relay_span_end(struct relay *relay, enum upstream_result result) SPAN_COLD;
/* The request upstream goes with the relay. */
void relay_span_give_up(struct relay *relay) SPAN_COLD;
/* Another ends it: NULL without one. */
struct span *relay_span_take(struct relay *relay) SPAN_COLD;

/* ---- relay_failure.c ---- */
/* The error that a request is answered with. */
enum jsonrpc_error relay_failure_error(enum relay_failure failure);
/* Nothing has gone down yet: the call is answered with the failure, or by options.failed. */
void relay_fail(struct relay *relay, enum relay_failure failure);
/* The response is under way and cannot be taken back: its end tells the failure. */
void relay_fail_in_stream(struct relay *relay, enum relay_failure failure);

/* ---- relay_reachable.c ---- */
void relay_note_reachable(struct call *call);
void relay_note_unreachable(struct call *call);
/* Sends the server a ping, whose answer is noted: a stream of the call's broke off. */
void relay_ask_if_reachable(const struct call *call);

/* ---- relay_events.c ---- */
/* Sends whole events down, and keeps the rest. */
void relay_take_events(struct relay *relay, struct str bytes);
/* The response has ended, and with it an event without an empty line. */
void relay_end_events(struct relay *relay);
/* Whether the last event that went down was the answer to this call. The id of a message is near
 * its beginning or its end, so nothing is parsed on the way down. false when in doubt: clients
 * ignore a second answer, but wait for a missing one. */
bool relay_is_answered(const struct relay *relay);
/* The `id` of the last event that went down, or an earlier one's. The server then repeats events,
 * which does no harm. */
void relay_find_last_id(const struct relay *relay, struct buffer *id);
