/*
 * A call whose answer takes its time. A client that accepts an event stream is shown signs of life
 * meanwhile, and progress on its token; call_answer() and those that use it then answer on that
 * stream.
 */
#pragma once

#include "call.h"

/* Between two signs of life on any stream of the gateway's. Clients are promised one every 15 s. */
#define SIGN_OF_LIFE_MS 14000

/* Defers the call's response from now on. Progress is related to `task_id` (may be empty, copied).
 * Nothing is sent before the stream is opened. */
void deferred_response_begin(struct call *call, const char *what, struct str task_id);
/* Opens the stream, if the client accepts one and it is not open. */
void deferred_response_open(struct call *call);
/* As deferred_response_open(), but only when the first sign of life is due: what is answered before
 * is plain JSON. */
void deferred_response_open_late(struct call *call);
/* Opens the stream, and shows on it at once that the call is taken up. */
void deferred_response_show_progress(struct call *call);
/* Another room has opened the client's stream and let go of it: the answer goes there. */
void deferred_response_take_stream(struct call *call, const char *what);
/* No progress is shown on the client's token, only comments. */
void deferred_response_be_quiet(struct call *call);
/* The answer comes from the server, so the end of the process waits for it as for any call. */
void deferred_response_await_upstream(struct call *call);
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
/* Answers the call when the process ends, as `stopped` does. NULL: nothing does. */
void deferred_response_on_stop(struct call *call, void (*stopped)(struct call *call));
/* Whether the gateway itself holds the call, so that it may be stopped. Allowed for one that is not
 * deferred. */
bool deferred_response_is_held(const struct call *call);
/* A process ends that the answer goes through. */
void deferred_response_stop(struct call *call);
/* The response is not deferred any more. Allowed for one that is not. */
void deferred_response_end(struct call *call);
