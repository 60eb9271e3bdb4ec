/*
 * Asking a server by `server/discover` whether it speaks the modern era. Any answer but a list of
 * versions with 2026-07-28 in it means that it does not; a server that is down, wants a login or is
 * too busy says nothing.
 */
#pragma once

#include "call/call.h"
#include "http.h"

/* Notes what a reply to `server/discover` shows of the source. False: nothing. */
bool era_probe_note(struct gateway *gateway, const struct config_source *source,
                    const struct exchange_reply *reply);
/* The same of the result of one. */
void era_probe_note_result(struct gateway *gateway, const struct config_source *source,
                           struct str result);
/* Asks with the call's own credentials, then goes on with `next`, unless the client has gone
 * meanwhile. */
void era_probe_then(struct call *call, call_step next);
