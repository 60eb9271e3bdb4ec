/*
 * The names of the gateway's own tools among those of a server. Reads the configuration and the
 * catalogue alone. Any thread; functions with a call belong to the call's loop.
 */
#pragma once

#include "call.h"
#include "taskgate/config/config.h"

/* Whether the server has a tool of this name, by the list of the call's owner. Lists of other
 * owners change nothing. After call_identify(). */
bool pseudo_names_has_upstream(const struct call *call, struct str name);
/* Whether clients of the call's era are offered the tool. */
bool pseudo_names_is_of_era(const struct call *call, enum config_pseudo_tool tool);
/* The tool of ours that the call names; PSEUDO_TOOL_COUNT if it names none. A name that upstream
 * has is upstream's. A name with our prefix is always ours. */
enum config_pseudo_tool pseudo_names_find(struct call *call);
