/* Whether the caller of a call is blocked. On the call's loop. */
#pragma once

#include "call/call.h"

/* True when the call is refused; one without an id is dropped. After call_with_facts(). */
bool block_check_refused(struct call *call);
