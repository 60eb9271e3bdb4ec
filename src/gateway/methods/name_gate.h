/* `expose` and the rules on the name or URI of a call that nothing can wait for. On the worker's
 * loop.
 */
#pragma once

#include "request/call.h"

/* Relays a call of a method that `methods.allow` lets pass, unless `expose` or a rule refuses its
 * `params.uri` as that of `resources/read`, or its `params.name` as that of `prompts/get` or
 * `tools/call`. */
void name_gate_handle_allowed(struct call *call);
