/* What a relay does to a response that it must read before the client gets it. */
#pragma once

#include "relay.h"

/* Whether responses are read at all; else they stream through. */
bool relay_rewrites(const struct relay_options *options);
/* Whether a message may be taken out of these bytes of an event stream: what upstream asks or
 * says of its own accord names a method, which costs less to look for than to read it all. */
bool relay_may_take(const struct relay_options *options, struct str bytes);
/* Writes what goes down in place of `message`, which came whole; false when it is not the response
 * to this call, or an error that goes down as it is. */
bool relay_rewrite(struct call *call, const struct relay_options *options, struct str message,
                   struct buffer *out);
