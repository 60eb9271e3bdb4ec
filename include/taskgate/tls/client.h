/*
 * The settings of a connection to a server that has certificates of its own: the authorities for
 * the server, and the certificate that the gateway shows. A value that never changes, and is
 * reference-counted. Any thread.
 */
#pragma once

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"
#include "taskgate/tls/pem.h"

struct tls_client {
    /* PEM; bytes == NULL: not given. With `ca` the system's own authorities do not count. */
    struct str ca, cert, key;
};

/* NULL with `error`, and in `*part` what it is about; a certificate and its key are given together
 * or not at all. Copies. The caller holds one reference. */
struct tls_client *tls_client_create(struct str ca, struct str cert, struct str key,
                                     enum tls_part *part, struct error *error);
struct tls_client *tls_client_ref(struct tls_client *tls); /* NULL is allowed */
void tls_client_unref(struct tls_client *tls);             /* NULL is allowed */
