/*
 * What upstream says or asks while a call runs whose client has only its task: passed on to whoever
 * waits or listens, answered where somebody can (contract "Tasks").
 */
#pragma once

#include "ask.h"

/* The call that runs; all borrowed. */
struct interim_origin {
    struct gateway_worker *worker;
    struct snapshot *snapshot;
    const struct config_source *source; /* of it */
    struct task *task;
    const struct headers *headers; /* that an answer to upstream needs: session and credentials */
    unsigned *refusals;            /* of upstream's requests so far */
};

/* Takes a request or notification. */
void interim_take(const struct interim_origin *origin, struct str message);
