/*
 * Certificates and keys as files hold them. Each function says in `error` what is wrong with a
 * text, never what stands in it. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"

/* The text that is at fault. */
enum tls_part { TLS_PART_CERT, TLS_PART_KEY, TLS_PART_CA };

struct stack_st_X509;
struct evp_pkey_st;

/* All certificates of the text, at least one, in its order. The caller frees with
 * pem_certificates_free(). NULL on failure. */
struct stack_st_X509 *pem_read_certificates(struct str text, struct error *error);
void pem_certificates_free(struct stack_st_X509 *certificates); /* NULL is allowed */
/* The caller frees with EVP_PKEY_free(). NULL on failure, a key with a passphrase among it. */
struct evp_pkey_st *pem_read_key(struct str text, struct error *error);
/* Whether the key is that of the first certificate. */
bool pem_fits(const struct stack_st_X509 *certificates, const struct evp_pkey_st *key,
              struct error *error);
/* The first reason in OpenSSL's queue, which is emptied; never NULL, static. */
const char *pem_reason(void);
