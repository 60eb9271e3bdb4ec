/* An OpenID provider as `taskgate login` uses it: its metadata, and forms sent to it. Blocking. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/error.h"

struct issuer_client {
    char *issuer, *client_id;
    char *client_secret; /* or NULL */
    char *scope;         /* "openid profile email" */
    /* Of the metadata; NULL where it has none. */
    char *authorization, *token, *device_authorization;
    bool secret_by_post; /* it takes the secret in no other way */
    bool names_itself;   /* its answers carry `iss` (RFC 9207) */
};

void issuer_client_finish(struct issuer_client *client);
/* Fetches the metadata, and refuses that of another issuer. */
bool issuer_client_discover(struct issuer_client *client, struct error *error);
/* Appends "name=value", percent-encoded, behind a "&" where there is something already. */
void issuer_client_add(struct buffer *form, const char *name, const char *value);
/* POSTs the form with the client's id (and secret). The status of the answer, its JSON in `body`;
 * 0 with `error` when there is none. */
long issuer_client_post(const struct issuer_client *client, const char *url,
                        const struct buffer *form, struct buffer *body, struct error *error);
/* A text member of the JSON, which the caller frees; NULL when it is none. */
char *issuer_client_member(const struct buffer *body, const char *name);
