/*
 * Requests of modern clients at servers that know the legacy era alone. On the call's loop.
 */
#pragma once

#include "conversation/relay.h"

/* Of such calls, which go up in a session. Of the options it uses `silence_ms`, `rewrite`,
 * `recall`, `replace_error` and `failed`; they never become tasks. A call with a requestState goes
 * on with the call that it was given in. */
extern const struct call_carrier modern_client_carrier;
/* Whether the call goes on with one that is open at the server: its requestState says so, and is
 * this call's. */
bool client_goes_on(const struct call *call);
/* The call that it goes on with may not go on: it is given up, and this one refused. */
void client_refuse_to_go_on(struct call *call);
