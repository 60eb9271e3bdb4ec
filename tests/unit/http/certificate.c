#include "certificate.h"

#include <check.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>

#include "taskgate/core/memory.h"

static char *take_text(BIO *bio)
{
    char *bytes;
    long length = BIO_get_mem_data(bio, &bytes);
    char *text = memory_copy_str(str_slice(bytes, (size_t)length));
    BIO_free(bio);
    return text;
}

struct pair make_pair(const char *name)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    BIO *cert_text = BIO_new(BIO_s_mem()), *key_text = BIO_new(BIO_s_mem());
    X509_NAME *subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1,
                               0);
    X509_set_issuer_name(certificate, subject);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    ck_assert_int_gt(X509_sign(certificate, key, EVP_sha256()), 0);
    ck_assert_int_eq(PEM_write_bio_X509(cert_text, certificate), 1);
    ck_assert_int_eq(PEM_write_bio_PrivateKey(key_text, key, NULL, NULL, 0, NULL, NULL), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return (struct pair){take_text(cert_text), take_text(key_text)};
}

void free_pair(struct pair *pair)
{
    free(pair->cert);
    free(pair->key);
}

struct tls_server *make_tls(const char *client_ca)
{
    struct pair pair = make_pair("server");
    const struct tls_server_settings settings = {
        .cert = str_from(pair.cert),
        .key = str_from(pair.key),
        .client_ca = client_ca ? str_from(client_ca) : STR_EMPTY,
    };
    enum tls_part part;
    struct error error = {""};
    struct tls_server *tls = tls_server_create(&settings, &part, &error);
    ck_assert_msg(tls != NULL, "%s", error.message);
    free_pair(&pair);
    return tls;
}
