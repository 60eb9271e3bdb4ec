/*
 * Memory for what a call has under way while it waits, in what its request has left over: thousands
 * of calls may wait, and the heap has only what does not fit there. On the call's loop.
 */
#pragma once

#include "call.h"

/* Cleared, and aligned for any object. To be given back, and not to be read any more, by the time
 * when the call's exchange ends: when its parts are dropped, at the latest. */
void *call_memory_take(struct call *call, size_t size);
/* A copy that ends with NUL. */
char *call_memory_copy(struct call *call, struct str text);
/* NULL is allowed. Of a call whose exchange has ended, too. */
void call_memory_give(struct call *call, void *memory);
