/* SHA-256 and HMAC-SHA-256 as text. */
#include "taskgate/core/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <pthread.h>
#include <string.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/owned.h"

static EVP_MD *sha256;
static pthread_key_t contexts;

static void drop_context(void *context)
{
    EVP_MD_CTX_free(context);
}

static void digest_fetch(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!sha256 || pthread_key_create(&contexts, drop_context) != 0)
        memory_exhausted(); /* nothing else can be missing */
}

/* Each thread has one: to make it costs a third of the sum of a short text. */
static EVP_MD_CTX *context_of_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, digest_fetch);
    EVP_MD_CTX *context = pthread_getspecific(contexts);
    if (context)
        return context;
    context = EVP_MD_CTX_new();
    if (!context || pthread_setspecific(contexts, context) != 0)
        memory_exhausted();
    return context;
}

/* SHA256() looks the algorithm up each time, which costs as much as the sum of a short text. */
static void digest_sum_up(struct str data, unsigned char sum[SHA256_DIGEST_LENGTH])
{
    EVP_MD_CTX *context = context_of_thread();
    if (EVP_DigestInit_ex2(context, sha256, NULL) != 1 ||
        EVP_DigestUpdate(context, data.bytes, data.length) != 1 ||
        EVP_DigestFinal_ex(context, sum, NULL) != 1)
        memory_exhausted();
}

void digest_sha256_base64url(struct str data, char text[DIGEST_BASE64URL_BYTES])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char sum[SHA256_DIGEST_LENGTH + 1];
    digest_sum_up(data, sum);
    sum[SHA256_DIGEST_LENGTH] = 0; /* the last four bits of 43 digits */
    for (size_t i = 0; i < DIGEST_BASE64URL_BYTES - 1; i++) {
        size_t bit = 6 * i;
        unsigned pair = (unsigned)sum[bit / 8] << 8 | sum[bit / 8 + 1];
        text[i] = digits[pair >> (10 - bit % 8) & 63];
    }
    text[DIGEST_BASE64URL_BYTES - 1] = '\0';
}

static void digest_write_hex(const unsigned char sum[SHA256_DIGEST_LENGTH],
                             char hex[DIGEST_HEX_BYTES])
{
    *str_write_hex(sum, SHA256_DIGEST_LENGTH, hex) = '\0';
}

void digest_sha256_hex(struct str data, char hex[DIGEST_HEX_BYTES])
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    digest_sum_up(data, sum);
    digest_write_hex(sum, hex);
}

/* A call of OpenSSL without a context, which would cost more than the sum of a short text. */
#define TOGETHER_MAX 4096

static bool sum_up_together(const struct str *parts, size_t count,
                            unsigned char sum[SHA256_DIGEST_LENGTH])
{
    char all[TOGETHER_MAX];
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].length > sizeof all - length)
            return false;
        if (parts[i].length > 0)
            memcpy(all + length, parts[i].bytes, parts[i].length);
        length += parts[i].length;
    }
    digest_sum_up(str_slice(all, length), sum);
    return true;
}

static void sum_up_in_turn(const struct str *parts, size_t count,
                           unsigned char sum[SHA256_DIGEST_LENGTH])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool done = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; done && i < count; i++)
        done = EVP_DigestUpdate(context, parts[i].bytes, parts[i].length) == 1;
    if (!done || EVP_DigestFinal_ex(context, sum, NULL) != 1)
        memory_exhausted(); /* nothing else can be missing */
    EVP_MD_CTX_free(context);
}

void digest_sha256_hex_of(const struct str *parts, size_t count, char hex[DIGEST_HEX_BYTES])
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    if (!sum_up_together(parts, count, sum))
        sum_up_in_turn(parts, count, sum);
    digest_write_hex(sum, hex);
}

void digest_hmac_sha256_hex(struct str key, struct str data, char hex[DIGEST_HEX_BYTES])
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    size_t length = 0;
    if (!EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key.bytes, key.length,
                   (const unsigned char *)(data.length ? data.bytes : ""), data.length, sum,
                   sizeof sum, &length) ||
        length != sizeof sum)
        memory_exhausted(); /* nothing else can be missing */
    digest_write_hex(sum, hex);
}

static unsigned char own_keys[2][DIGEST_KEY_BYTES];
static bool has_earlier;

void digest_use_keys(const unsigned char key[DIGEST_KEY_BYTES],
                     const unsigned char earlier[DIGEST_KEY_BYTES])
{
    memcpy(own_keys[0], key, sizeof own_keys[0]);
    has_earlier = earlier != NULL;
    if (has_earlier)
        memcpy(own_keys[1], earlier, sizeof own_keys[1]);
}

static void key_hex(const unsigned char *key, const char *digest, char hex[DIGEST_HEX_BYTES])
{
    OWNED_BUFFER(text);
    buffer_append_text(&text, "taskgate shown digest\n"); /* the key has other uses */
    buffer_append_text(&text, digest);
    digest_hmac_sha256_hex(str_slice((const char *)key, DIGEST_KEY_BYTES), buffer_str(&text), hex);
}

void digest_keyed_hex(const char *digest, char hex[DIGEST_HEX_BYTES])
{
    key_hex(own_keys[0], digest, hex);
}

bool digest_is_keyed(const char *digest, const char *shown)
{
    char hex[DIGEST_HEX_BYTES];
    key_hex(own_keys[0], digest, hex);
    if (strcmp(hex, shown) != 0 && has_earlier)
        key_hex(own_keys[1], digest, hex);
    return strcmp(hex, shown) == 0;
}
