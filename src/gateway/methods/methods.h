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

/* ---- `expose` and the rules on the name or URI of a call that nothing can wait for (name_gate.c)
 * ---- */

/* Whether `expose` and the rules let the call pass. False: it is answered. */
bool name_gate_passes(struct call *call);
/* For looks.forbidden. */
bool name_gate_forbids_now(struct call *call);

/* A URI that a server's answer names, as if the client had asked to read it. */
enum name_gate_verdict { NAME_GATE_FORWARD, NAME_GATE_HIDDEN, NAME_GATE_DENIED };
enum name_gate_verdict name_gate_judge_uri(const struct call *call, struct str uri);
