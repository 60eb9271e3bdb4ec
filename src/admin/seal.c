/* OpenSSL's AES-256-GCM: 12 bytes of nonce, the text, 16 bytes of tag. */
#include "seal.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/digest.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"

#define NONCE_BYTES 12
#define TAG_BYTES 16
/* Apart from the digest of the secret itself, which the store has. */
#define LABEL "taskgate sealed text 1\n"

struct key {
    unsigned char bytes[32];
};

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(struct str text, unsigned char *bytes)
{
    for (size_t i = 0; i < text.length / 2; i++) {
        int high = digit_value(text.bytes[2 * i]), low = digit_value(text.bytes[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return text.length % 2 == 0;
}

static char *write_hex(const unsigned char *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    char *text = memory_alloc(2 * length + 1);
    for (size_t i = 0; i < length; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    return text;
}

static struct key derive(struct str secret)
{
    struct key key = {{0}};
    char hex[DIGEST_HEX_BYTES];
    OWNED char *input = memory_format(LABEL "%.*s", STR_ARGS(secret));
    digest_sha256_hex(str_from(input), hex);
    read_hex(str_from(hex), key.bytes);
    explicit_bzero(input, strlen(input));
    explicit_bzero(hex, sizeof hex);
    return key;
}

static EVP_CIPHER_CTX *seal_begin(struct str secret, const unsigned char *nonce, int encrypts)
{
    struct key key = derive(secret);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (!context ||
        EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, key.bytes, nonce, encrypts) != 1)
        memory_exhausted(); /* nothing else can be missing */
    explicit_bzero(&key, sizeof key);
    return context;
}

char *seal_close(struct str secret, struct str text)
{
    size_t length = NONCE_BYTES + text.length + TAG_BYTES;
    unsigned char *bytes = memory_alloc(length);
    int written = 0, last = 0;
    random_bytes(bytes, NONCE_BYTES);
    EVP_CIPHER_CTX *context = seal_begin(secret, bytes, 1);
    if (EVP_EncryptUpdate(context, bytes + NONCE_BYTES, &written, (const unsigned char *)text.bytes,
                          (int)text.length) != 1 ||
        EVP_EncryptFinal_ex(context, bytes + NONCE_BYTES + written, &last) != 1 ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_BYTES,
                            bytes + NONCE_BYTES + text.length) != 1)
        memory_exhausted();
    EVP_CIPHER_CTX_free(context);
    char *sealed = write_hex(bytes, length);
    free(bytes);
    return sealed;
}

char *seal_open(struct str secret, struct str sealed)
{
    size_t length = sealed.length / 2;
    if (length < NONCE_BYTES + TAG_BYTES)
        return NULL;
    unsigned char *bytes = memory_alloc(length);
    size_t text_length = length - NONCE_BYTES - TAG_BYTES;
    char *text = memory_alloc(text_length + 1);
    int written = 0, last = 0;
    bool is_hex = read_hex(sealed, bytes);
    EVP_CIPHER_CTX *context = seal_begin(secret, bytes, 0);
    bool is_good = is_hex &&
                   EVP_DecryptUpdate(context, (unsigned char *)text, &written, bytes + NONCE_BYTES,
                                     (int)text_length) == 1 &&
                   EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG_BYTES,
                                       bytes + NONCE_BYTES + text_length) == 1 &&
                   EVP_DecryptFinal_ex(context, (unsigned char *)text + written, &last) == 1;
    EVP_CIPHER_CTX_free(context);
    free(bytes);
    if (is_good)
        return text;
    explicit_bzero(text, text_length);
    free(text);
    return NULL;
}
