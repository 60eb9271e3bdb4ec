/*
 * Memory for calls, kept for the next one: a call is larger than what malloc() keeps for a thread,
 * and each would go the slow way through it. Each thread has its own.
 */
#pragma once

#include "call.h"

/* Zeroed. */
struct call *call_pool_take(void);
/* Keeps it, or frees it where enough are kept. */
void call_pool_give(struct call *call);
