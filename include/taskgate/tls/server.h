/*
 * TLS as a port offers it: a certificate with its key, and the clients that are let in.
 *
 * A value that never changes, and is reference-counted: a reload makes another. Session tickets
 * are sealed with keys that live and die with it, so that a session is resumed only by the process
 * and under the settings that began it. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"
#include "taskgate/tls/pem.h"

enum tls_version { TLS_VERSION_1_2, TLS_VERSION_1_3 };

struct tls_server_settings {
    struct str cert;      /* PEM: the server's certificate, then those that lead to its root */
    struct str key;       /* PEM, without a passphrase */
    struct str client_ca; /* PEM; bytes == NULL: clients are asked for no certificate */
    /* With client_ca: a client without a certificate is let in all the same. One with a
     * certificate of somebody else never is. */
    bool lets_strangers_in;
    enum tls_version min_version;
};

struct tls_server;
struct ssl_ctx_st;
struct ssl_st;

/* NULL with `error`, and in `*part` what it is about. The caller holds one reference; the texts
 * are not needed afterwards. */
struct tls_server *tls_server_create(const struct tls_server_settings *settings,
                                     enum tls_part *part, struct error *error);
struct tls_server *tls_server_ref(struct tls_server *tls); /* NULL is allowed */
void tls_server_unref(struct tls_server *tls);             /* NULL is allowed */

/* Whether the two differ in nothing that a client sees. NULL is a port without TLS. */
bool tls_server_equal(const struct tls_server *a, const struct tls_server *b);
/* Whether the same clients may connect to both: the same client_ca, the same versions. */
bool tls_server_admit_alike(const struct tls_server *a, const struct tls_server *b);
/* When the server's certificate begins and ceases to hold, in seconds since 1970. */
int64_t tls_server_begins_s(const struct tls_server *tls);
int64_t tls_server_expires_s(const struct tls_server *tls);
/* OpenSSL's SSL_CTX of it, which lives as long. */
struct ssl_ctx_st *tls_server_native(const struct tls_server *tls);
/* Has OpenSSL tell `progress` of each handshake (SSL_CTX_set_info_callback()); before the first,
 * and the same for all who use the value. */
void tls_server_watch(struct tls_server *tls,
                      void (*progress)(const struct ssl_st *ssl, int where, int result));
