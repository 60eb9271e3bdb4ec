/*
 * Requests that other replicas relay to this one: nothing else is served on the port for them. On
 * the request's loop.
 */
#pragma once

#include "taskgate/http/server.h"

struct gateway_worker;

/* The refusals, in a header of RELAY_SIGNATURE_HEADER. Either way the request was not looked at. */
#define RELAYED_REFUSED "refused"   /* nothing that a replica has signed, or for the second time */
#define RELAYED_NOT_HERE "not-here" /* it is for another life of this replica, or this one ends */

/* The query of a pulse's question (carry.c) from a replica that ends. */
#define RELAYED_LEAVING "leaving"

/* Whether the request was signed by another replica for this one, just now and once. Else it is
 * refused. */
bool relayed_is_good(struct gateway_worker *worker, struct http_exchange *exchange);
/* The sender of this request, which is good, ends: what is held here of its calls is answered now.
 */
void relayed_end_held(struct gateway_worker *worker, struct http_exchange *exchange);
