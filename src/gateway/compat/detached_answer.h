/* What the client of a call that takes long is told; for gateway.detached_callbacks. */
#pragma once

#include "run/detached_call.h"

extern const struct detached_callbacks detached_answers;
