/* Whether the server accepts the session and the token of a request. */
#pragma once

#include "request/call.h"

/* Goes on when the server has accepted this session and token within five minutes. Asks it by a
 * ping if need be. Answers the call itself when the server refuses. */
void credential_check_then(struct call *call, call_step next);
