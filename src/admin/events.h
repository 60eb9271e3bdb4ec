/* Open event streams, GET /api/v1/events. */
#pragma once

#include "internal.h"

/* Ends the streams of everybody who may no longer read them, after a reload. */
void events_renew_all(struct admin *admin);
/* Those that were opened with the token or cookie of this digest. */
void events_end_of(struct admin *admin, const char *sha256);
/* The digest of the cookie of each one that was opened in a session. `visit` changes nothing. */
void events_visit_sessions(struct admin *admin,
                           void (*visit)(struct admin *admin, const char *sha256));
/* Writes a whole event without a number to every stream that may still be read. */
void events_send(struct admin *admin, struct str event);
/* Ends every stream; no new one is opened once the server shuts down. */
void events_end_all(struct admin *admin);
