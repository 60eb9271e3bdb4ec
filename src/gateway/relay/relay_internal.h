/* The relay itself, for the files that carry one response. */
#pragma once

#include "relay.h"
#include "request/call_part.h"
#include "taskgate/mcp/reply_check.h"

/* A reply whose id comes after more than this goes down before the id is known. When it turns out
 * to be another's, the client gets no end of it. */
#define LOOKING_BYTES ((size_t)64 * 1024)

/* Of what went down last this much is kept at both ends, to see whether it was the answer. */
#define GLIMPSE_BYTES 256

enum relay_mode {
    RELAY_WAITING, /* for the head */
    RELAY_LOOKING, /* nothing goes down before it is known whose reply it is */
    RELAY_BYTES,   /* streamed as they come */
    RELAY_EVENTS,  /* streamed event by event */
    RELAY_WHOLE,   /* held until the end, then rewritten */
};

struct relay {
    struct call_part part;
    struct call *call;
    struct relay_options options;
    struct upstream_call *upstream;
    struct headers headers; /* of a response that has not gone down: copies */
    enum relay_mode mode;
    int status;
    struct buffer kept; /* what has not gone down: all so far, or the part of an event */
    struct reply_event_check reply;
    struct sse_splitter splitter;
    struct notification_stream *stream; /* the client's open GET stream */
    int64_t started_ms;
    bool inside_event;      /* a long event is passing in pieces */
    struct buffer behind;   /* whole events that go down behind it */
    struct buffer glimpse;  /* first and last bytes of what went down last */
    int64_t content_length; /* of the response; -1 when it is not announced */
    bool is_encoded;        /* what comes cannot be read */
    bool is_looked_at;      /* a reply by its id, with `reply` */
    struct loop_timer slow; /* only with options.slow_ms */
};

/* ---- relay.c ---- */
/* The call's relay; NULL without one. */
struct relay *relay_find(const struct call *call);
void relay_send_down(struct relay *relay, struct str bytes);
/* Takes the relay off its call, which is about to be answered. */
struct call *relay_finish(struct relay *relay);

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
/* Sends down what is whole, and keeps the rest. */
void relay_take_events(struct relay *relay, struct str bytes);
/* Upstream has ended: so does an event that had no empty line. */
void relay_end_events(struct relay *relay);
/* Whether what went down last was the answer to this call. Members of a message stand at its
 * ends, around a result of any size: a look there tells, and nothing need be parsed on the
 * way down. When in doubt it was not: a second answer is ignored by clients, none is waited
 * for. */
bool relay_is_answered(const struct relay *relay);
/* The `id` of what went down last, as far as a look there tells; an earlier event's is as good,
 * for behind it upstream says more again than is needed. */
void relay_find_last_id(const struct relay *relay, struct buffer *id);
