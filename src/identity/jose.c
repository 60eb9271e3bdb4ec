/* libcjose's types, and those of OpenSSL's Ed25519, stay in this file. */
#include <cjose/cjose.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>

#include "jose.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"

/* Base64url, strictly. */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* -1 for what is not in the alphabet. */
static int jose_value_of(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '-')
        return 62;
    return c == '_' ? 63 : -1;
}

bool base64url_decode(struct str text, struct buffer *out)
{
    size_t before = out->length;
    if (text.length % 4 == 1)
        return false;
    buffer_reserve(out, text.length / 4 * 3 + 3);
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < text.length; i++) {
        int value = jose_value_of((unsigned char)text.bytes[i]);
        if (value < 0) {
            out->length = before;
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            buffer_append_char(out, (char)(bits >> held & 0xff));
        }
    }
    if (bits & ((1U << held) - 1)) {
        out->length = before;
        return false;
    }
    return true;
}

void base64url_encode(struct str bytes, struct buffer *out)
{
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < bytes.length; i++) {
        bits = bits << 8 | (unsigned char)bytes.bytes[i];
        for (held += 8; held >= 6; held -= 6)
            buffer_append_char(out, alphabet[bits >> (held - 6) & 63]);
    }
    if (held)
        buffer_append_char(out, alphabet[bits << (6 - held) & 63]);
}

#define RSA_MIN_BITS 2048
#define RSA_MAX_BITS 8192
#define RSA_MAX_EXPONENT_BYTES 4

struct jose_key {
    enum jose_key_type type;
    size_t signature_bytes;
    cjose_jwk_t *jwk;  /* of all but Ed25519 */
    EVP_PKEY *ed25519; /* or NULL */
};

static const struct {
    const char *name;
    enum jose_key_type type;
} algorithms[JOSE_ALGORITHM_COUNT] = {
    [JOSE_RS256] = {"RS256", JOSE_KEY_RSA},     [JOSE_PS256] = {"PS256", JOSE_KEY_RSA},
    [JOSE_ES256] = {"ES256", JOSE_KEY_P256},    [JOSE_ES384] = {"ES384", JOSE_KEY_P384},
    [JOSE_EDDSA] = {"EdDSA", JOSE_KEY_ED25519},
};

bool jose_algorithm_parse(struct str name, enum jose_algorithm *algorithm)
{
    for (unsigned i = 0; i < JOSE_ALGORITHM_COUNT; i++) {
        if (str_equal(name, str_from(algorithms[i].name))) {
            *algorithm = (enum jose_algorithm)i;
            return true;
        }
    }
    return false;
}

enum jose_key_type jose_algorithm_key_type(enum jose_algorithm algorithm)
{
    ASSERT_NUMBERS(algorithm, <, JOSE_ALGORITHM_COUNT);
    return algorithms[algorithm].type;
}

enum jose_key_type jose_key_type(const struct jose_key *key)
{
    return key->type;
}

/* OpenSSL keeps errors by thread, and a TLS connection of this thread would take them for its own.
 */
static void forget_errors(void)
{
    ERR_clear_error();
}

static struct jose_key *key_create(enum jose_key_type type, size_t signature_bytes,
                                   cjose_jwk_t *jwk, EVP_PKEY *ed25519)
{
    if (!jwk && !ed25519) {
        forget_errors();
        return NULL;
    }
    struct jose_key *key = memory_alloc(sizeof(*key));
    key->type = type;
    key->signature_bytes = signature_bytes;
    key->jwk = jwk;
    key->ed25519 = ed25519;
    return key;
}

/* The library's interface takes bytes that it only reads without saying so. */
static uint8_t *jose_writable(struct str s)
{
    return (uint8_t *)(uintptr_t)s.bytes;
}

static struct str without_zeros(struct str number)
{
    while (number.length && number.bytes[0] == '\0') {
        number.bytes++;
        number.length--;
    }
    return number;
}

struct jose_key *jose_key_create_rsa(struct str modulus, struct str exponent)
{
    struct str n = without_zeros(modulus), e = without_zeros(exponent);
    size_t bits = n.length * 8;
    for (unsigned top = n.length ? (unsigned char)n.bytes[0] : 0x80; !(top & 0x80); top <<= 1)
        bits--;
    if (bits < RSA_MIN_BITS || bits > RSA_MAX_BITS)
        return NULL;
    if (e.length == 0 || e.length > RSA_MAX_EXPONENT_BYTES || !(e.bytes[e.length - 1] & 1) ||
        (e.length == 1 && e.bytes[0] == 1))
        return NULL;
    cjose_jwk_rsa_keyspec spec = {
        .n = jose_writable(n), .nlen = n.length, .e = jose_writable(e), .elen = e.length};
    return key_create(JOSE_KEY_RSA, n.length, cjose_jwk_create_RSA_spec(&spec, NULL), NULL);
}

struct jose_key *jose_key_create_ec(enum jose_key_type type, struct str x, struct str y)
{
    size_t bytes = type == JOSE_KEY_P256 ? 32 : 48;
    if (x.length != bytes || y.length != bytes)
        return NULL;
    cjose_jwk_ec_keyspec spec = {.crv = type == JOSE_KEY_P256 ? CJOSE_JWK_EC_P_256
                                                              : CJOSE_JWK_EC_P_384,
                                 .x = jose_writable(x),
                                 .xlen = x.length,
                                 .y = jose_writable(y),
                                 .ylen = y.length};
    return key_create(type, 2 * bytes, cjose_jwk_create_EC_spec(&spec, NULL), NULL);
}

struct jose_key *jose_key_create_ed25519(struct str x)
{
    if (x.length != 32)
        return NULL;
    return key_create(JOSE_KEY_ED25519, 64, NULL,
                      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
                                                  (const unsigned char *)x.bytes, x.length));
}

void jose_key_destroy(struct jose_key *key)
{
    if (!key)
        return;
    cjose_jwk_release(key->jwk);
    EVP_PKEY_free(key->ed25519);
    free(key);
}

static bool verify_ed25519(const struct jose_key *key, struct str input, struct str signature)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context)
        memory_exhausted();
    bool is_good =
        EVP_DigestVerifyInit(context, NULL, NULL, NULL, key->ed25519) == 1 &&
        EVP_DigestVerify(context, (const unsigned char *)signature.bytes, signature.length,
                         (const unsigned char *)input.bytes, input.length) == 1;
    EVP_MD_CTX_free(context);
    if (!is_good)
        forget_errors();
    return is_good;
}

bool jose_verify(const struct jose_key *key, enum jose_algorithm algorithm, struct str token,
                 struct str signature_text, struct str signature)
{
    /* The library takes an algorithm for a key of any curve, and halves a signature of any
     * length. */
    if (key->type != algorithms[algorithm].type || signature.length != key->signature_bytes)
        return false;
    if (key->ed25519) {
        struct str input = str_slice(token.bytes, token.length - signature_text.length - 1);
        return verify_ed25519(key, input, signature);
    }
    cjose_jws_t *jws = cjose_jws_import(token.bytes, token.length, NULL);
    bool is_good = jws && cjose_jws_verify(jws, key->jwk, NULL);
    cjose_jws_release(jws);
    if (!is_good)
        forget_errors();
    return is_good;
}
