/* Mcp-Param-*: headers that repeat arguments of a modern call (SEP-2243). */
#pragma once

#include "call/call.h"

/* Whether they say what the arguments say, where the owner was told of the tool and its schema
 * names some; the server judges others. False when the call is answered. */
bool parameter_check_passes(struct call *call);
