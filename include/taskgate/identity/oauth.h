/*
 * Requests to an issuer's token endpoint (RFC 6749 §3.2 and whatever builds on it).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"
#include "taskgate/identity/fetch.h"

struct oauth_client {
    const char *id;
    const char *secret;  /* or NULL: a public client, which says its id in the body */
    bool secret_in_body; /* issuer_metadata.secret_in_body; else HTTP Basic (RFC 6749 §2.3.1) */
};

struct oauth_parameter {
    const char *name;
    struct str value; /* bytes == NULL: the parameter is left out */
};

/* As fetch_start(), a POST of a form. Nothing of it is logged. */
struct fetch *oauth_post(struct fetcher *fetcher, const char *url,
                         const struct oauth_client *client,
                         const struct oauth_parameter *parameters, size_t count, struct loop *loop,
                         fetch_callback callback, void *context);

/* The code of an error response ("invalid_grant"), or "" when there is none that RFC 6749 §5.2
 * would have: letters, digits and underscores, cut at 63 of them. Fit for a log. */
#define OAUTH_ERROR_BYTES 64
void oauth_error_code(struct str body, char code[OAUTH_ERROR_BYTES]);
