/*
 * A request that is carried to another replica, where its session lives, and the response that
 * comes back: the bytes as they are, a stream as it comes. On the call's loop.
 */
#pragma once

#include "request/call.h"
#include "session_homes.h"

/* Carries the call there. When nothing of it has been looked at there (the replica is not reached,
 * or refuses it unread), `here` goes on with it in this process. */
void carry_start(struct call *call, const struct session_home *home, const char *address,
                 call_step here);
