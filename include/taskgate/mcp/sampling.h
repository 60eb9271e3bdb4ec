/*
 * Sampling (2025-11-25): a server's request for a message of a model. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* Whether `params` of sampling/createMessage are a conversation and say how long the answer may be.
 * false: `error` names the member. */
bool sampling_check_request(struct str params, struct error *error);
