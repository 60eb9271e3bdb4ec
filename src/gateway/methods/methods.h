/* What the handlers of the methods share. */
#pragma once

#include "call/handlers.h"

/* A request that is no message (verb.c). */
void verb_handle(struct call *call);

/* For looks.rewrite of a GET stream that goes on where another ended: what is on it may be
 * the answer to any request, a list among them. */
struct relay_reply;
void lists_rewrite_resumed(struct call *call, const struct relay_reply *reply, struct buffer *out);

/* ---- of modern requests ---- */
/* Whether requestState and inputResponses have the right types. False when the call is answered. */
bool methods_have_good_rounds(struct call *call);

/* Of what needs no look but for what the server asks. */
extern const struct looks looks_at_questions;

/* Answers -32601. */
void methods_refuse_unknown(struct call *call);
