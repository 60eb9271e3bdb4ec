/* Whether upstream takes the session and the token of a request. */
#pragma once

#include "request/call.h"

/* Goes on once upstream has accepted this session and token within five minutes; asks it by
 * a ping when need be, and answers the call itself when upstream refuses. */
void credential_check_then(struct call *call, call_step next);
