/* The things that a request needs and that one process alone may have. On the call's loop. */
#pragma once

#include "call/call.h"
#include "session_homes.h"

/* Whether the request is about a task of the gateway's whose home has what it needs: the
 * credentials of the call, and what its server asks. */
bool needs_task(struct call *call, char id[TASK_ID_BYTES]);
/* Whether it names a process: the one with an open call at a server, or with the question that it
 * answers. */
bool needs_process(const struct call *call, struct session_home *home);
/* Whether it needs what the home of its session has. */
bool needs_session(const struct call *call);
/* Whether its answer tells its client events, which the home of the session has. */
bool needs_events(const struct call *call);
