/*
 * The open calls at legacy servers whose modern clients were asked something, and have to come
 * back with the answer. A handle stands in the sealed `requestState`. It is known to this process
 * alone, and to all its workers: each round of it can be taken once. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/str.h"

struct bridge_handles;

#define BRIDGE_HANDLE_PREFIX "up_"

struct bridge_handles *bridge_handles_create(void);
void bridge_handles_destroy(struct bridge_handles *handles); /* NULL is allowed */

/* The client is asked in this round, and may answer it once. */
void bridge_handles_open(struct bridge_handles *handles, struct str handle, int64_t round);
/* The call has ended. */
void bridge_handles_forget(struct bridge_handles *handles, struct str handle);

enum bridge_claim {
    BRIDGE_CLAIMED,  /* the answer may go up: nobody else can claim the round any more */
    BRIDGE_ANSWERED, /* the round has been answered */
    BRIDGE_LOST,     /* there is no such call, or no more */
};
enum bridge_claim bridge_handles_claim(struct bridge_handles *handles, struct str handle,
                                       int64_t round);
