/* Signing by OpenSSL. A test that cannot sign aborts. */
#include "signer.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <stdlib.h>
#include <string.h>

#include "jose.h"
#include "taskgate/core/memory.h"

struct signer {
    EVP_PKEY *key;
    const char *kid;
    const char *type, *curve;
    size_t number_bytes;
};

static void must(bool condition)
{
    if (!condition)
        abort();
}

struct signer *signer_create_rsa(unsigned bits, const char *kid)
{
    struct signer *signer = memory_alloc(sizeof(*signer));
    *signer = (struct signer){.key = EVP_RSA_gen(bits), .kid = kid, .type = "RSA"};
    must(signer->key);
    return signer;
}

struct signer *signer_create(const char *algorithm, const char *kid)
{
    if (strcmp(algorithm, "RS256") == 0 || strcmp(algorithm, "PS256") == 0)
        return signer_create_rsa(2048, kid);
    struct signer *signer = memory_alloc(sizeof(*signer));
    if (strcmp(algorithm, "EdDSA") == 0)
        *signer =
            (struct signer){EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), kid, "OKP", "Ed25519", 32};
    else if (strcmp(algorithm, "ES256") == 0)
        *signer = (struct signer){EVP_EC_gen("P-256"), kid, "EC", "P-256", 32};
    else if (strcmp(algorithm, "ES512") == 0)
        *signer = (struct signer){EVP_EC_gen("P-521"), kid, "EC", "P-521", 66};
    else
        *signer = (struct signer){EVP_EC_gen("P-384"), kid, "EC", "P-384", 48};
    must(signer->key);
    return signer;
}

void signer_destroy(struct signer *signer)
{
    if (!signer)
        return;
    EVP_PKEY_free(signer->key);
    free(signer);
}

static void write_number(const struct signer *signer, const char *parameter, const char *member,
                         size_t bytes, struct buffer *out)
{
    unsigned char number[1024];
    BIGNUM *value = NULL;
    must(EVP_PKEY_get_bn_param(signer->key, parameter, &value));
    size_t length = bytes ? bytes : (size_t)BN_num_bytes(value);
    must(BN_bn2binpad(value, number, (int)length) >= 0);
    BN_free(value);
    buffer_append_format(out, ",\"%s\":\"", member);
    base64url_encode(str_slice((char *)number, length), out);
    buffer_append_char(out, '"');
}

void signer_write_jwk(const struct signer *signer, const char *more, struct buffer *out)
{
    buffer_append_format(out, "{\"kty\":\"%s\"%s", signer->type, more);
    if (signer->kid)
        buffer_append_format(out, ",\"kid\":\"%s\"", signer->kid);
    if (strcmp(signer->type, "RSA") == 0) {
        write_number(signer, OSSL_PKEY_PARAM_RSA_N, "n", 0, out);
        write_number(signer, OSSL_PKEY_PARAM_RSA_E, "e", 0, out);
    } else {
        buffer_append_format(out, ",\"crv\":\"%s\"", signer->curve);
    }
    if (strcmp(signer->type, "EC") == 0) {
        write_number(signer, OSSL_PKEY_PARAM_EC_PUB_X, "x", signer->number_bytes, out);
        write_number(signer, OSSL_PKEY_PARAM_EC_PUB_Y, "y", signer->number_bytes, out);
    } else if (strcmp(signer->type, "OKP") == 0) {
        unsigned char raw[32];
        size_t length = sizeof raw;
        must(EVP_PKEY_get_raw_public_key(signer->key, raw, &length));
        buffer_append_text(out, ",\"x\":\"");
        base64url_encode(str_slice((char *)raw, length), out);
        buffer_append_char(out, '"');
    }
    buffer_append_char(out, '}');
}

/* OpenSSL writes ASN.1, JOSE the two numbers one behind the other. */
static size_t flatten(const struct signer *signer, unsigned char *signature, size_t length)
{
    const unsigned char *at = signature;
    size_t half = signer->number_bytes;
    ECDSA_SIG *parsed = d2i_ECDSA_SIG(NULL, &at, (long)length);
    must(parsed);
    must(BN_bn2binpad(ECDSA_SIG_get0_r(parsed), signature, (int)half) >= 0);
    must(BN_bn2binpad(ECDSA_SIG_get0_s(parsed), signature + half, (int)half) >= 0);
    ECDSA_SIG_free(parsed);
    return 2 * half;
}

void signer_write_token(const struct signer *signer, const char *algorithm, struct str header,
                        struct str claims, struct buffer *out)
{
    size_t start = out->length;
    base64url_encode(header, out);
    buffer_append_char(out, '.');
    base64url_encode(claims, out);
    unsigned char signature[2048];
    size_t length = sizeof signature;
    const char *digest = strcmp(signer->type, "OKP") == 0  ? NULL
                         : strcmp(algorithm, "ES384") == 0 ? "SHA384"
                                                           : "SHA256";
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *parameters = NULL;
    must(EVP_DigestSignInit_ex(context, &parameters, digest, NULL, NULL, signer->key, NULL) == 1);
    if (strcmp(algorithm, "PS256") == 0) {
        must(EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) == 1);
        must(EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) == 1);
    }
    must(EVP_DigestSign(context, signature, &length, (unsigned char *)out->bytes + start,
                        out->length - start) == 1);
    EVP_MD_CTX_free(context);
    if (strcmp(signer->type, "EC") == 0)
        length = flatten(signer, signature, length);
    buffer_append_char(out, '.');
    base64url_encode(str_slice((char *)signature, length), out);
}
