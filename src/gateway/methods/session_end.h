/* DELETE of a session: upstream ends it, then what the gateway keeps for it goes too. */
#pragma once

#include "request/call.h"

void session_end_handle(struct call *call);
