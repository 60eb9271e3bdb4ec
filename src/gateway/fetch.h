/*
 * Filling the catalogue: every page of every source's tools/list, with the gateway's own
 * session or, where upstream wants a login, with the first client's (seed 002 F-007, §10.1).
 */
#pragma once

#include "internal.h"

/* Starts a fetch for every enabled source whose tools are not yet known. A loop_callback:
 * `worker` is a struct gateway_worker. Tries again later where upstream cannot be reached. */
void fetch_missing(void *worker);
/* A client has been given a page: fetches what follows it with the client's own session, if
 * the source's tools are not yet known. */
void fetch_rest(struct call *call, struct str next_cursor);
/* Forgets the next try; for the end. */
void fetch_stop(struct gateway_worker *worker);
