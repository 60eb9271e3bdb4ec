/* A session's row in the store. */
#pragma once

#include "call.h"

/* Stores call->facts under the session (a digest), with what a bridged client has said in it. */
void session_store_put(const struct call *call, const char *session, struct store_call then);
/* The same of the call's own session; then the call is answered by an empty result. */
void session_store_put_and_answer(struct call *call);
