/* The answers to calls that take long; for gateway.detached_callbacks. */
#pragma once

#include "run/detached_call.h"

extern const struct detached_callbacks detached_answers;
