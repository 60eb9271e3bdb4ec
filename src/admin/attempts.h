/*
 * Sign-ins that have begun: what the provider's answer must fit, until it comes.
 *
 * The gateway keeps nothing of them, because anybody may begin one. The `state` that goes to the
 * provider and back is a sealed text, so that any replica with the same state key can read it, also
 * after a restart. It is bound to the cookie of the browser in which the sign-in has begun, and is
 * good for ten minutes. That it is used once is for the provider to say, which takes each code once
 * (RFC 6749 §4.1.2). Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"

#include "cookies.h"

#define ATTEMPT_LIFE_MS 600000

struct state_keys;

struct attempt {
    char nonce[COOKIE_VALUE_BYTES];
    char verifier[COOKIE_VALUE_BYTES]; /* RFC 7636: 64 unreserved characters */
};

/* A new one for the browser with this cookie. Appends its state. */
void attempt_begin(struct attempt *attempt, const struct state_keys *keys, struct str cookie,
                   struct buffer *state);
/* false: it is none of the gateway's, has begun in another browser, or is over. */
bool attempt_read(struct attempt *attempt, const struct state_keys *keys, struct str cookie,
                  struct str state);
