/* Base64url, strictly. */
#include "base64url.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* -1 for what is not in the alphabet. */
static int value_of(unsigned char c)
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
        int value = value_of((unsigned char)text.bytes[i]);
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
