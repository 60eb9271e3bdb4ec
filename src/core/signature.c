/* Ed25519 through OpenSSL's EVP. */
#include "taskgate/core/signature.h"
#include "taskgate/core/assert.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/memory.h"

#define SIGNATURE_BYTES 64

struct signature_key {
    EVP_PKEY *key;
    bool is_private;
    int references; /* atomic */
};

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- base64url of 64 bytes ---- */

static void signature_write_text(const unsigned char bytes[SIGNATURE_BYTES],
                                 char text[SIGNATURE_TEXT_BYTES])
{
    unsigned held = 0;
    int bits = 0;
    for (size_t i = 0; i < SIGNATURE_BYTES; i++) {
        held = held << 8 | bytes[i];
        for (bits += 8; bits >= 6; bits -= 6)
            *text++ = digits[held >> (bits - 6) & 63];
    }
    *text++ = digits[held << (6 - bits) & 63];
    *text = '\0';
}

static bool signature_read_text(struct str text, unsigned char bytes[SIGNATURE_BYTES])
{
    unsigned held = 0;
    int bits = 0;
    size_t count = 0;
    if (text.length != SIGNATURE_TEXT_BYTES - 1)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        const char *digit = text.bytes[i] ? strchr(digits, text.bytes[i]) : NULL;
        if (!digit)
            return false;
        held = held << 6 | (unsigned)(digit - digits);
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        ASSERT_NUMBERS(count, <, SIGNATURE_BYTES);
        bytes[count++] = (unsigned char)(held >> bits);
    }
    return (held & ((1U << bits) - 1)) == 0;
}

/* ---- keys ---- */

/* OpenSSL would ask on the terminal. */
static int signature_refuse_passphrase(char *buffer, int size, int is_writing, void *context)
{
    (void)buffer, (void)size, (void)is_writing, (void)context;
    return -1;
}

static EVP_PKEY *read_pem(struct str pem, bool *is_private)
{
    BIO *bio = BIO_new_mem_buf(pem.length ? pem.bytes : "", (int)pem.length);
    if (!bio)
        memory_exhausted();
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, signature_refuse_passphrase, NULL);
    *is_private = key != NULL;
    if (!key && BIO_reset(bio) == 1)
        key = PEM_read_bio_PUBKEY(bio, NULL, signature_refuse_passphrase, NULL);
    BIO_free(bio);
    ERR_clear_error();
    return key;
}

struct signature_key *signature_key_read(struct str pem, struct error *error)
{
    bool is_private = false;
    EVP_PKEY *key = pem.length <= INT_MAX ? read_pem(pem, &is_private) : NULL;
    if (key && EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519) {
        struct signature_key *made = memory_alloc(sizeof *made);
        *made = (struct signature_key){key, is_private, 1};
        return made;
    }
    error_set(error, key ? "is not an Ed25519 key" : "holds no key in PEM that can be read");
    EVP_PKEY_free(key);
    return NULL;
}

struct signature_key *signature_key_ref(struct signature_key *key)
{
    __atomic_add_fetch(&key->references, 1, __ATOMIC_RELAXED);
    return key;
}

void signature_key_unref(struct signature_key *key)
{
    if (!key)
        return;
    int before = __atomic_fetch_sub(&key->references, 1, __ATOMIC_ACQ_REL);
    ASSERT_NUMBERS(before, >, 0);
    if (before > 1)
        return;
    EVP_PKEY_free(key->key);
    free(key);
}

bool signature_key_is_private(const struct signature_key *key)
{
    return key->is_private;
}

/* ---- signatures ---- */

void signature_sign(const struct signature_key *key, struct str data,
                    char text[SIGNATURE_TEXT_BYTES])
{
    ASSERT(key->is_private);
    unsigned char bytes[SIGNATURE_BYTES];
    size_t length = sizeof bytes;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context || EVP_DigestSignInit(context, NULL, NULL, NULL, key->key) != 1 ||
        EVP_DigestSign(context, bytes, &length, (const unsigned char *)data.bytes, data.length) !=
            1)
        memory_exhausted(); /* nothing else can be missing */
    EVP_MD_CTX_free(context);
    ASSERT_NUMBERS(length, ==, SIGNATURE_BYTES);
    signature_write_text(bytes, text);
}

bool signature_verify(const struct signature_key *key, struct str data, struct str text)
{
    unsigned char bytes[SIGNATURE_BYTES];
    if (!signature_read_text(text, bytes))
        return false;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key->key) == 1 &&
                EVP_DigestVerify(context, bytes, sizeof bytes, (const unsigned char *)data.bytes,
                                 data.length) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return good;
}
