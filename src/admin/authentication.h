/*
 * The sender of a request, known by a token, by a token of the issuer of admin.oidc, by the cookie
 * of a session, or by the connection's client certificate.
 */
#pragma once

#include "internal.h"

#include "reply.h"

struct authentication {
    struct operator_identity *who; /* one reference, the receiver's; NULL: refused */
    enum reply_error error;        /* of a refusal */
    const char *message;
};
typedef void (*authentication_callback)(void *context, const struct authentication *result);

/* Answers once, at once or on the loop later. The request outlives the answer; its exchange need
 * not. */
void authentication_find(const struct request *request, authentication_callback callback,
                         void *context);
