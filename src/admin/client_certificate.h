/*
 * Client certificates on the operators' port: who gets in with admin.tls.client_ca, and which
 * person of admin.people shows one.
 */
#pragma once

#include "internal.h"

/* Whether the connection has the certificate that the configuration demands; true when it demands
 * none. OpenSSL lets in clients without a certificate, but none with a wrong one. */
bool client_certificate_suffices(const struct http_exchange *exchange, const struct config *config);
/* The person whose certificate the connection shows; NULL when it is nobody's here. One reference,
 * the caller's. */
struct operator_identity *client_certificate_find(const struct http_exchange *exchange,
                                                  const struct config *config);
