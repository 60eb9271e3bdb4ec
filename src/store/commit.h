/* One transaction for many operations. */
#pragma once

#include "store_internal.h"

/* Runs the operations of a chain in one transaction; but cuts it, and leaves the `rest`, where the
 * replies would hold too much memory at once. Afterwards each has its reply, and the batch holds
 * the events to tell; when the transaction failed, every reply is STORE_FAILED, there are no
 * events, and `error` says why. */
bool commit_batch(struct store *store, struct operation *chain, struct batch *batch,
                  struct operation **rest, struct error *error);
