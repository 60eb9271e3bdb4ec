/*
 * An issuer's metadata (RFC 8414, OpenID Connect Discovery). Immutable and reference-counted; any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

struct issuer_metadata {
    unsigned references; /* issuer_metadata_ref() and _unref() alone touch it */
    /* URLs that secure_url_check() allows, plain http only of an issuer that is itself reached by
     * plain http; NULL where the issuer names none. */
    char *jwks_url;
    char *authorization_endpoint, *token_endpoint, *device_authorization_endpoint;
    char *userinfo_endpoint, *end_session_endpoint;
    bool secret_in_body; /* it takes client_secret_post and not client_secret_basic */
    bool names_itself;   /* `iss` stands in authorization responses (RFC 9207) */
    bool has_s256;       /* PKCE by S256 is announced */
};

/* NULL when it is no metadata, or that of an issuer other than `issuer` (byte for byte). */
struct issuer_metadata *issuer_metadata_parse(struct str document, const char *issuer,
                                              struct error *error);
struct issuer_metadata *issuer_metadata_ref(struct issuer_metadata *metadata);
void issuer_metadata_unref(struct issuer_metadata *metadata); /* NULL is allowed */

/* The addresses at which metadata may be: RFC 8414 first, then OpenID as RFC 8414 would have it,
 * then OpenID. */
#define ISSUER_METADATA_PLACES 3
/* The URL of a place, which the caller frees; NULL for one that is the same as that before. */
char *issuer_metadata_url(const char *issuer, unsigned place);
