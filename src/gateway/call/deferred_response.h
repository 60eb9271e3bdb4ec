/*
 * A call whose answer takes its time. A client that accepts an event stream is shown signs of life
 * meanwhile, and progress on its token; call_answer() and those that use it then answer on that
 * stream.
 */
#pragma once

#include "call.h"

/* Between two signs of life on any stream of the gateway's. Clients are promised one every 15 s. */
#define SIGN_OF_LIFE_MS 14000

struct deferred_options {
    const char *what;     /* it waits for, as progress says it */
    struct str task_id;   /* progress is related to it; copied, may be empty */
    bool is_quiet;        /* no progress is shown on the client's token, only comments */
    bool awaits_upstream; /* the answer comes from the server, so the end of the process waits for
                           * it as for any call */
    bool has_stream; /* another room has opened the client's stream and let go of it: the answer
                      * goes there; quiet */
    /* Answers the call when the process ends. NULL: nothing does. */
    void (*stopped)(struct call *call);
};
/* Defers the call's response from now on. Nothing is sent before the stream is opened. */
void deferred_response_begin(struct call *call, const struct deferred_options *options);
/* Opens the stream, if the client accepts one and it is not open. */
void deferred_response_open(struct call *call);
/* As deferred_response_open(), but only when the first sign of life is due: what is answered before
 * is plain JSON. */
void deferred_response_open_late(struct call *call);
/* Opens the stream, and shows on it at once that the call is taken up. */
void deferred_response_show_progress(struct call *call);
bool deferred_response_awaits_upstream(const struct call *call);
bool deferred_response_is_stream(const struct call *call);
/* Whether it could become one. */
bool deferred_response_may_stream(const struct call *call);
/* Passes a message on the open stream, unless the client does not read; it counts as progress of
 * upstream's own, so that none of ours follows. */
void deferred_response_pass_progress(struct call *call, struct str message);
/* Passes any other message on the open stream, unless the client does not read. */
void deferred_response_pass(struct call *call, struct str message);
bool deferred_response_is(const struct call *call);
/* Whether the gateway itself holds the call, so that it may be stopped. Allowed for one that is not
 * deferred. */
bool deferred_response_is_held(const struct call *call);
/* A process ends that the answer goes through. */
void deferred_response_stop(struct call *call);
/* The response is not deferred any more. Allowed for one that is not. */
void deferred_response_end(struct call *call);

/* ---- the end of the client's token while its response is an event stream: the stream ends with it
 * (behaviour 13.5) ---- */

/* A wait of the client's, at the latest to two seconds before the end of its token: so it gets an
 * answer while it can still ask again. 0 when less is left. */
int64_t token_clock_bound_ms(const struct call *call, int64_t wait_ms);
/* From now on, unless it has begun; nothing for a call without a verified token. A request is
 * answered with an error first, where `may_write` says that an event may begin; NULL: always. A
 * call that goes on without its client does so. */
void token_clock_start(struct call *call, bool (*may_write)(const struct call *call));
