/*
 * Clients that give up a request that the gateway itself holds: a call that waits for approval, a
 * wait for a task or for activity. Calls that upstream runs are conversation/detach.h's, or
 * the relay's.
 */
#pragma once

#include "call/call.h"
#include "replicas/news.h"

/* The client's notifications/cancelled: ends the wait that it names, on whichever worker of
 * whichever replica. A wait of another owner goes on (behaviour 3.13). */
void cancelled_notify(struct call *call);
/* The call has ended its session: the same for all that its owner waits for there. */
void cancelled_notify_all(struct call *call);
/* Another replica has told of it (WAIT_OVER): ends the wait on this worker. */
void cancelled_take_news(struct gateway_worker *worker, const struct news *news);
