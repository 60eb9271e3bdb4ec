/*
 * Sign-ins that have begun: what the provider's answer must fit, until it comes.
 *
 * Each belongs to the browser in which it began, is used once, and is forgotten after ten minutes;
 * of more than 1,000 the oldest go. They do not survive a restart. On the admin's loop.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

#include "cookies.h"

#define ATTEMPT_LIFE_MS 600000

struct attempts;

struct attempt {
    char state[COOKIE_VALUE_BYTES];
    char nonce[COOKIE_VALUE_BYTES];
    char verifier[COOKIE_VALUE_BYTES]; /* RFC 7636: 64 unreserved characters */
    char browser[65];                  /* SHA-256 hex of its cookie */
    int64_t begun_ms;                  /* monotonic */
};

struct attempts *attempts_create(void);
void attempts_destroy(struct attempts *attempts); /* NULL is allowed */
/* A new one for the browser with this cookie; valid until the next call of the module. */
const struct attempt *attempts_begin(struct attempts *attempts, struct str cookie, int64_t now_ms);
/* Takes out the one with this state. False when there is none, or it has begun in another browser,
 * in which case it stays, or it is over. */
bool attempts_take(struct attempts *attempts, struct str state, struct str cookie, int64_t now_ms,
                   struct attempt *attempt);
