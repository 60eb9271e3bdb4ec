/* What the handlers of the methods share. */
#pragma once

#include "call/handlers.h"

/* A request that is no message (verb.c). */
void verb_handle(struct call *call);

/* For relay_options.rewrite of a GET stream that goes on where another ended: what is on it may be
 * the answer to any request, a list among them. */
struct relay_reply;
void lists_rewrite_resumed(struct call *call, const struct relay_reply *reply, struct buffer *out);

/* ---- of modern requests ---- */
/* Whether requestState and inputResponses have the right types. False when the call is answered. */
bool methods_have_good_rounds(struct call *call);

/* For relay_options.take_message: takes requests of the server's out of the stream, in an era in
 * which there are some. */
bool (*methods_taker(const struct call *call))(struct call *call, struct str message);

/* Answers -32601. */
void methods_refuse_unknown(struct call *call);
