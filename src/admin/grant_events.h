/* `event: grant` on open event streams: a grant was given or used, or it has ended. */
#pragma once

#include "internal.h"

/* Before the loops run; until the store closes. */
void grant_events_observe(struct admin *admin);
