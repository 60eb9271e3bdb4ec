/*
 * The home replica of each session. Several replicas serve the clients of a session, but what lives
 * in one process alone (open questions, events, waiting calls) is at one of them, the session's
 * home. Behaviour 16.3, 16.4.
 *
 * A home is a replica in one of its epochs. Once that epoch is over, the session is adopted by the
 * first replica that settles it, and never goes back. Any thread; the answer comes on the loop of
 * the call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/store/store.h"

/* Finds out where the session lives; where it lives nowhere yet, or its home is gone, it lives here
 * from now on. STORE_NOT_FOUND: the store does not know the session. Only where other processes may
 * use the database (store_is_shared()). */
void store_session_settle(struct store *store, struct str source, struct str digest,
                          struct store_call call);

/* The same for a task that has not ended: who has created it has the credentials for it, and who
 * runs it has what the server asks meanwhile. If that replica is gone, an undecided or approved
 * task lives with `heir` from now on (copied; NULL: here), whose address is not told then. One that
 * was executing ends with an unknown outcome. STORE_NOT_FOUND: no such task lives anywhere, because
 * it has ended, or is not known. */
void store_task_settle(struct store *store, struct str id, const struct store_heir *heir,
                       struct store_call call);
