/* `expose` and the rules on the name or URI of a call that nothing can wait for. On the worker's
 * loop.
 */
#pragma once

#include "call/call.h"

/* Relays a call of a method that `methods.allow` lets pass, unless `expose` or a rule refuses its
 * `params.uri` as that of `resources/read`, or its `params.name` as that of `prompts/get` or
 * `tools/call`. */
void name_gate_handle_allowed(struct call *call);

/* Whether `expose` and the rules let the call pass. False: it is answered. */
bool name_gate_passes(struct call *call);
/* For looks.forbidden. */
bool name_gate_forbids_now(struct call *call);

/* A URI that a server's answer names, as if the client had asked to read it. */
enum name_gate_verdict { NAME_GATE_FORWARD, NAME_GATE_HIDDEN, NAME_GATE_DENIED };
enum name_gate_verdict name_gate_judge_uri(const struct call *call, struct str uri);
