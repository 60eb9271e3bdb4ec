/*
 * A request that is carried to another replica, where its session or task lives, and the response
 * that comes back: the bytes as they are, a stream as it comes. On the call's loop.
 */
#pragma once

#include "request/call.h"
#include "session_homes.h"

/* Nothing of the call was looked at there: the replica is not reached, or has refused it unread. Or
 * it is gone, and the call is one that may be handled twice. */
typedef void (*carry_untaken)(struct call *call, call_step here);

/* Carries the call there. `is_repeatable`: it may be handled twice. `here`, the way on in this
 * process, is for `untaken` alone. */
void carry_start(struct call *call, const struct session_home *home, const char *address,
                 bool is_repeatable, carry_untaken untaken, call_step here);
/* The process ends: streams of notifications end, and who waits for a task's result is told to come
 * again. Other calls may be answered. */
void carry_end_all(struct gateway_worker *worker);
