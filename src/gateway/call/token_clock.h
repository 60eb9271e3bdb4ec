/*
 * The end of a client's token while its response is an event stream: the stream ends with it
 * (behaviour 13.5). On the call's loop.
 */
#pragma once

#include "call.h"

/* A wait of the client's, at the latest to two seconds before the end of its token: so it gets an
 * answer while it can still ask again. 0 when less is left. */
int64_t token_clock_bound_ms(const struct call *call, int64_t wait_ms);
/* From now on, unless it has begun; nothing for a call without a verified token. A request is
 * answered with an error first, where `may_write` says that an event may begin; NULL: always. A
 * call that goes on without its client does so. */
void token_clock_start(struct call *call, bool (*may_write)(const struct call *call));
