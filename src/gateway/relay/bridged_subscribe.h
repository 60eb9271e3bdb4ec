/* resources/subscribe and resources/unsubscribe of a bridged client, which modern servers have not:
 * its URIs are a part of what its streams listen to. */
#pragma once

#include "call/call.h"

/* The rules have let it pass. Answers once the server has said that it tells of the URI. */
void bridged_subscribe(struct call *call);
void bridged_unsubscribe(struct call *call);
