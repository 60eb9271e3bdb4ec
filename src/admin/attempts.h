/*
 * Sign-ins that have begun: what the provider's answer must fit, until it comes.
 *
 * Each belongs to the browser in which it began, is used once, and is forgotten after ten minutes;
 * of more than 1,000 the oldest go. They are in the store, so that the browser may come back to
 * another replica, or after a restart. An attempt tells nothing without the browser's cookie. On
 * the admin's loop.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"
#include "taskgate/store/store.h"

#include "cookies.h"

#define ATTEMPT_LIFE_MS STORE_ATTEMPT_LIFE_MS

struct admin;

struct attempt {
    char state[COOKIE_VALUE_BYTES];
    char nonce[COOKIE_VALUE_BYTES];
    char verifier[COOKIE_VALUE_BYTES]; /* RFC 7636: 64 unreserved characters */
};

enum attempt_result {
    ATTEMPT_OK,
    ATTEMPT_NONE, /* there is none, or it has begun in another browser, or it is over */
    ATTEMPT_UNAVAILABLE,
};
/* `attempt` is valid during the call, and only with ATTEMPT_OK. */
typedef void (*attempt_callback)(void *context, enum attempt_result result,
                                 const struct attempt *attempt);

/* A new one for the browser with this cookie, once it is kept. */
void attempts_begin(struct admin *admin, struct str cookie, attempt_callback callback,
                    void *context);
/* Takes out the one with this state; one that has begun in another browser stays. */
void attempts_take(struct admin *admin, struct str state, struct str cookie,
                   attempt_callback callback, void *context);
