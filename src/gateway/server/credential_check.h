/* Whether the server accepts the session and the token of a request. */
#pragma once

#include "call/call.h"

/* Goes on when the server has accepted this session and token within five minutes. Asks it by a
 * ping if need be. Answers the call itself when the server refuses. */
void credential_check_then(struct call *call, call_step next);
/* The same for a request that asks for the owner's own tasks alone. If it names no session, it
 * suffices that the server has accepted its token in any session within five minutes: the token
 * alone says who the owner is. */
void credential_check_owner_then(struct call *call, call_step next);
