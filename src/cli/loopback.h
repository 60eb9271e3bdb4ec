/* A port of this machine that a browser is sent back to, once. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"

struct loopback {
    int listener;
    char address[64]; /* "http://127.0.0.1:PORT/callback" */
};

struct loopback_wanted {
    const char *state, *issuer;
    bool must_name_issuer;
};

bool loopback_open(struct loopback *loopback, struct error *error);
void loopback_close(struct loopback *loopback);
/* Waits up to five minutes for the answer with this state, and answers the browser. Other requests
 * are answered 404 and passed over. The code, which the caller frees; NULL with `error`. */
char *loopback_wait(struct loopback *loopback, const struct loopback_wanted *wanted,
                    struct error *error);
