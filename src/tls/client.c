/* The texts, once they are known to fit. */
#include "taskgate/tls/client.h"

#include <openssl/evp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

struct holder {
    struct tls_client tls;
    atomic_size_t references;
};

static struct holder *client_holder_of(struct tls_client *tls)
{
    return (struct holder *)(void *)((char *)tls - offsetof(struct holder, tls));
}

static bool check_authorities(struct str ca, struct error *error)
{
    struct stack_st_X509 *certificates = ca.bytes ? pem_read_certificates(ca, error) : NULL;
    bool is_good = !ca.bytes || certificates != NULL;
    pem_certificates_free(certificates);
    return is_good;
}

static bool check_pair(struct str cert, struct str key, enum tls_part *part, struct error *error)
{
    if (!cert.bytes && !key.bytes)
        return true;
    *part = cert.bytes ? TLS_PART_KEY : TLS_PART_CERT;
    if (!cert.bytes || !key.bytes)
        return error_set(error, "is missing: a certificate and its key belong together");
    *part = TLS_PART_CERT;
    struct stack_st_X509 *certificates = pem_read_certificates(cert, error);
    if (certificates == NULL)
        return false;
    *part = TLS_PART_KEY;
    EVP_PKEY *read_key = pem_read_key(key, error);
    bool fits = read_key != NULL && pem_fits(certificates, read_key, error);
    EVP_PKEY_free(read_key);
    pem_certificates_free(certificates);
    return fits;
}

static struct str client_copy(struct str text)
{
    return text.bytes ? str_slice(memory_copy_str(text), text.length) : text;
}

struct tls_client *tls_client_create(struct str ca, struct str cert, struct str key,
                                     enum tls_part *part, struct error *error)
{
    *part = TLS_PART_CA;
    if (!check_authorities(ca, error) || !check_pair(cert, key, part, error))
        return NULL;
    struct holder *holder = memory_alloc(sizeof *holder);
    atomic_init(&holder->references, 1);
    holder->tls = (struct tls_client){client_copy(ca), client_copy(cert), client_copy(key)};
    return &holder->tls;
}

struct tls_client *tls_client_ref(struct tls_client *tls)
{
    if (tls)
        atomic_fetch_add_explicit(&client_holder_of(tls)->references, 1, memory_order_relaxed);
    return tls;
}

void tls_client_unref(struct tls_client *tls)
{
    if (!tls)
        return;
    size_t before =
        atomic_fetch_sub_explicit(&client_holder_of(tls)->references, 1, memory_order_acq_rel);
    ASSERT_NUMBERS(before, >, 0);
    if (before != 1)
        return;
    if (tls->key.bytes)
        explicit_bzero((char *)tls->key.bytes, tls->key.length);
    free((char *)tls->ca.bytes);
    free((char *)tls->cert.bytes);
    free((char *)tls->key.bytes);
    free(client_holder_of(tls));
}
