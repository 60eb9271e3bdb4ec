/* PEM texts to OpenSSL's values. */
#include "taskgate/tls/pem.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "taskgate/core/memory.h"

static BIO *open_text(struct str text)
{
    BIO *bio = text.length <= INT_MAX
                   ? BIO_new_mem_buf(text.bytes ? text.bytes : "", (int)text.length)
                   : NULL;
    if (bio == NULL)
        memory_exhausted();
    return bio;
}

const char *pem_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    ERR_clear_error();
    return reason ? reason : "unknown";
}

/* OpenSSL would ask on the terminal. */
static int pem_refuse_passphrase(char *buffer, int size, int is_writing, void *was_asked)
{
    *(bool *)was_asked = true;
    return -1;
}

/* Whether what stopped the reading is that there is no more, and not that something is malformed.
 */
static bool is_at_end(void)
{
    unsigned long code = ERR_peek_last_error();
    return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

struct stack_st_X509 *pem_read_certificates(struct str text, struct error *error)
{
    BIO *bio = open_text(text);
    STACK_OF(X509) *certificates = sk_X509_new_null();
    bool was_asked = false;
    X509 *certificate;
    if (certificates == NULL)
        memory_exhausted();
    ERR_clear_error();
    while ((certificate = PEM_read_bio_X509(bio, NULL, pem_refuse_passphrase, &was_asked)) !=
           NULL) {
        if (sk_X509_push(certificates, certificate) <= 0)
            memory_exhausted();
    }
    bool is_whole = is_at_end();
    BIO_free(bio);
    if (is_whole && sk_X509_num(certificates) > 0) {
        ERR_clear_error();
        return certificates;
    }
    if (is_whole)
        error_set(error, "holds no certificate in PEM");
    else
        error_set(error, "holds a certificate that cannot be read: %s", pem_reason());
    ERR_clear_error();
    pem_certificates_free(certificates);
    return NULL;
}

void pem_certificates_free(struct stack_st_X509 *certificates)
{
    sk_X509_pop_free(certificates, X509_free);
}

struct evp_pkey_st *pem_read_key(struct str text, struct error *error)
{
    BIO *bio = open_text(text);
    bool was_asked = false;
    ERR_clear_error();
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, pem_refuse_passphrase, &was_asked);
    BIO_free(bio);
    if (key != NULL)
        return key;
    if (was_asked)
        error_set(error, "is protected by a passphrase, which cannot be asked for");
    else
        error_set(error, "holds no private key in PEM");
    ERR_clear_error();
    return NULL;
}

bool pem_fits(const struct stack_st_X509 *certificates, const struct evp_pkey_st *key,
              struct error *error)
{
    bool fits = X509_check_private_key(sk_X509_value(certificates, 0), key) == 1;
    ERR_clear_error();
    return fits || error_set(error, "is not the key of the certificate");
}
