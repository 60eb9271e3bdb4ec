/*
 * Forwarding a client's request, whatever the era of its server. A modern client whose server knows
 * the legacy era only is answered here, the rest by the relay. On the call's loop.
 */
#pragma once

#include "conversation/relay.h"

/* As relay_start(), of any call: one to a server of the other era goes up in a session. Of the
 * options it uses `silence_ms`, `rewrite`, `recall`, `replace_error` and `failed`. Such a call with
 * a requestState goes on with the call that it was given in. */
void client_forward(struct call *call, const struct relay_options *options);
/* Whether the call goes on with one that is open at the server: its requestState says so, and is
 * this call's. */
bool client_goes_on(const struct call *call);
/* The call that it goes on with may not go on: it is given up, and this one refused. */
void client_refuse_to_go_on(struct call *call);
