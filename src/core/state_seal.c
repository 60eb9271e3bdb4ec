/* nonce ‖ ciphertext ‖ tag, as base64url without padding. */
#include "taskgate/core/state_seal.h"

#include <openssl/evp.h>
#include <string.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/random.h"

#define NONCE_BYTES 12
#define TAG_BYTES 16

/* ---- keys ---- */

static bool state_seal_read_key(unsigned char key[STATE_KEY_BYTES], struct str hex)
{
    return hex.length == (size_t)2 * STATE_KEY_BYTES && str_read_hex(hex, key);
}

static bool is_separator(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',';
}

bool state_keys_read(struct state_keys *keys, struct str text, struct error *error)
{
    size_t i = 0;
    keys->count = 0;
    while (true) {
        while (i < text.length && is_separator(text.bytes[i]))
            i++;
        size_t start = i;
        while (i < text.length && !is_separator(text.bytes[i]))
            i++;
        if (i == start)
            break;
        if (keys->count == 2)
            return error_set(error, "there are more than two keys");
        if (!state_seal_read_key(keys->keys[keys->count], str_slice(text.bytes + start, i - start)))
            return error_set(error, "a key must have 64 hex digits");
        keys->count++;
    }
    return keys->count > 0 || error_set(error, "there is no key");
}

void state_keys_clear(struct state_keys *keys)
{
    explicit_bzero(keys, sizeof *keys);
}

/* ---- base64url ---- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void state_seal_encode(struct buffer *out, const unsigned char *bytes, size_t count)
{
    unsigned bits = 0;
    int have = 0;
    for (size_t i = 0; i < count; i++) {
        bits = bits << 8 | bytes[i];
        for (have += 8; have >= 6; have -= 6)
            buffer_append_char(out, alphabet[bits >> (have - 6) & 63]);
    }
    if (have > 0)
        buffer_append_char(out, alphabet[bits << (6 - have) & 63]);
}

/* Only what state_seal_encode() writes: bits that are left over must be zero. */
static bool state_seal_decode(struct str text, unsigned char *bytes, size_t *count)
{
    unsigned bits = 0;
    int have = 0;
    *count = 0;
    for (size_t i = 0; i < text.length; i++) {
        const char *found = text.bytes[i] ? strchr(alphabet, text.bytes[i]) : NULL;
        if (!found)
            return false;
        bits = (bits << 6 | (unsigned)(found - alphabet)) & 0xffff;
        have += 6;
        if (have >= 8) {
            have -= 8;
            ASSERT_NUMBERS(*count, <, STATE_MOST_BYTES);
            bytes[(*count)++] = (unsigned char)(bits >> have);
        }
    }
    return have < 6 && (bits & ((1U << have) - 1)) == 0;
}

/* ---- sealing ---- */

static EVP_CIPHER_CTX *state_seal_begin(const unsigned char *key, const unsigned char *nonce,
                                        bool seals)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (!context || EVP_CipherInit_ex(context, EVP_aes_256_gcm(), NULL, key, nonce, seals) != 1)
        memory_exhausted();
    return context;
}

/* The prefix is bound, too: a text of one kind never opens as another. */
static bool bind_text(EVP_CIPHER_CTX *context, struct str prefix, struct str bound)
{
    int length;
    static const unsigned char end = 0;
    return EVP_CipherUpdate(context, NULL, &length, (const unsigned char *)prefix.bytes,
                            (int)prefix.length) == 1 &&
           EVP_CipherUpdate(context, NULL, &length, &end, 1) == 1 &&
           (bound.length == 0 ||
            EVP_CipherUpdate(context, NULL, &length, (const unsigned char *)bound.bytes,
                             (int)bound.length) == 1);
}

bool state_seal(const struct state_keys *keys, struct str prefix, struct str bound,
                struct str payload, struct buffer *out)
{
    ASSERT_NUMBERS(keys->count, >, 0);
    unsigned char sealed[STATE_MOST_BYTES];
    size_t whole = NONCE_BYTES + payload.length + TAG_BYTES;
    int length = 0, rest = 0;
    if (payload.length > STATE_MOST_BYTES || prefix.length + (whole * 4 + 2) / 3 > STATE_MOST_BYTES)
        return false;
    random_bytes(sealed, NONCE_BYTES);
    EVP_CIPHER_CTX *context = state_seal_begin(keys->keys[0], sealed, true);
    unsigned char *cipher = sealed + NONCE_BYTES;
    bool good =
        bind_text(context, prefix, bound) &&
        EVP_CipherUpdate(context, cipher, &length, (const unsigned char *)payload.bytes,
                         (int)payload.length) == 1 &&
        EVP_CipherFinal_ex(context, cipher + length, &rest) == 1 &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, cipher + payload.length) == 1;
    EVP_CIPHER_CTX_free(context);
    if (!good)
        return false;
    buffer_append(out, prefix);
    state_seal_encode(out, sealed, whole);
    return true;
}

static bool open_with(const unsigned char *key, struct str prefix, struct str bound,
                      unsigned char *sealed, size_t count, struct buffer *payload)
{
    ASSERT(count >= NONCE_BYTES + TAG_BYTES && count <= STATE_MOST_BYTES);
    unsigned char plain[STATE_MOST_BYTES];
    size_t length = count - NONCE_BYTES - TAG_BYTES;
    int written = 0, rest = 0;
    EVP_CIPHER_CTX *context = state_seal_begin(key, sealed, false);
    bool good =
        bind_text(context, prefix, bound) &&
        EVP_CipherUpdate(context, plain, &written, sealed + NONCE_BYTES, (int)length) == 1 &&
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, sealed + count - TAG_BYTES) ==
            1 &&
        EVP_CipherFinal_ex(context, plain + written, &rest) == 1;
    EVP_CIPHER_CTX_free(context);
    if (good)
        buffer_append(payload, str_slice((const char *)plain, length));
    explicit_bzero(plain, sizeof plain);
    return good;
}

bool state_unseal(const struct state_keys *keys, struct str prefix, struct str bound,
                  struct str text, struct buffer *payload)
{
    unsigned char sealed[STATE_MOST_BYTES];
    size_t count;
    if (text.length > STATE_MOST_BYTES || !str_starts_with(text, prefix))
        return false;
    text = str_slice(text.bytes + prefix.length, text.length - prefix.length);
    if (!state_seal_decode(text, sealed, &count) || count < NONCE_BYTES + TAG_BYTES)
        return false;
    for (int i = 0; i < keys->count; i++) {
        if (open_with(keys->keys[i], prefix, bound, sealed, count, payload))
            return true;
    }
    return false;
}
