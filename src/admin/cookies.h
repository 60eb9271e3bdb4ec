/* Cookies of operators' browsers: RFC 6265, no more of it than two cookies need. */
#pragma once

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"
#include "taskgate/http/server.h"

enum cookie {
    COOKIE_SESSION, /* somebody who has signed in */
    COOKIE_ATTEMPT, /* the browser in which a sign-in has begun */
};

/* 256 random bits in hex: what a cookie holds. */
#define COOKIE_VALUE_BYTES 65
/* The value of the cookie, when it is one of random_hex(). False: there is
 * none, or there are two of that name, of which one is not ours. */
bool cookie_read(const struct http_exchange *exchange, const struct config *config,
                 enum cookie cookie, struct str *value);
/* A Set-Cookie value for this host alone; for the public address by https under a name that no
 * other host can set. Of 0 seconds: takes the cookie away. */
void cookie_write(struct buffer *out, const struct config *config, enum cookie cookie,
                  const char *value, int64_t max_age_s);
