/* Open event streams, GET /api/v1/events. */
#pragma once

#include "internal.h"

/* Ends every stream; no new one is opened once the server shuts down. */
void events_end_all(struct admin *admin);
