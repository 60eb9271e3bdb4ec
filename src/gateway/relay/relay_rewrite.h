/* How a relay reads and rewrites a response before the client gets it. */
#pragma once

#include "relay.h"

/* Whether responses are read at all; else they stream through. */
bool relay_rewrites(const struct relay_options *options);
/* Whether these bytes of an event stream may hold a message to be taken out. Requests and
 * notifications name a method. To look for the word costs less than to parse. */
bool relay_may_take(const struct relay_options *options, struct str bytes);
/* Writes what goes down in place of the whole `message`. false: it is not the response to this
 * call, or an error that goes down as it is. */
bool relay_rewrite(struct call *call, const struct relay_options *options, struct str message,
                   struct buffer *out);
