/*
 * Certificates for tests: each with a key of its own, signed by itself.
 */
#pragma once

#include "taskgate/tls/server.h"

/* PEM texts; the caller frees both. */
struct pair {
    char *cert, *key;
};
struct pair make_pair(const char *name);
void free_pair(struct pair *pair);

/* A port's side of TLS; with `client_ca` (PEM, may be NULL) it demands certificates of these. The
 * caller holds one reference. */
struct tls_server *make_tls(const char *client_ca);
