/* The answers to calls that take long; for gateway.detached_callbacks. */
#pragma once

#include "conversation/detach.h"

extern const struct detached_callbacks detached_answers;
