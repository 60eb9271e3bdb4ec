/*
 * The process that handles a request: the home of its task, or of its open call, or of its session
 * (behaviour 16.3). On the call's loop.
 */
#pragma once

#include "call/call.h"

/* The call passes, or goes on with `here`, if it is handled in this process: nothing of it depends
 * on one process, or what it needs is here, or its replica is not reached. Otherwise it is carried
 * to that replica. A session or task whose replica is gone is adopted first. Nothing was begun for
 * the call. */
enum gate_verdict home_then(struct call *call, call_step here);
