/* The two ways in which `taskgate login` gets a token from the issuer. */
#pragma once

#include "issuer_client.h"

/* Has the person sign in elsewhere with a code that is printed (RFC 8628). Returns the ID token,
 * which the caller frees; NULL with `error`. */
char *login_by_device(const struct issuer_client *client, struct error *error);
/* Has a browser of this machine sign in and come back to a port of it (RFC 8252 §7.3). The same. */
char *login_by_browser(const struct issuer_client *client, struct error *error);
