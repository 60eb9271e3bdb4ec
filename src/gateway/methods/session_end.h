/* DELETE: the client ends its session. */
#pragma once

#include "call/call.h"

void session_end_handle(struct call *call);
/* The session of the call has ended: its undecided tasks are cancelled, except those that an
 * Authorization owns, and credentials are dropped. */
void session_end_forget(struct call *call);
