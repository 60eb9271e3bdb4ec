/* Escapes of checked JSON strings: decoding and comparing. */
#include "unescape.h"

#include <string.h>

#include "bytes.h"

/* Writes a code point as UTF-8; returns the length. */
static size_t encode_utf8(unsigned c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = length - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(lead[length] | c);
    return length;
}

/* Decodes the escape at `*p` (a backslash) and steps over it. The text is checked: hex digits
 * are there and surrogates come in pairs. */
static size_t decode_escape(const char **p, char out[4])
{
    static const char letters[] = "bfnrt", values[] = "\b\f\n\r\t";
    char c = (*p)[1];
    if (c != 'u') {
        const char *letter = strchr(letters, c);
        out[0] = c;
        if (letter)
            out[0] = values[letter - letters];
        *p += 2;
        return 1;
    }
    unsigned code_point = (unsigned)hex_quad(*p + 2);
    *p += 6;
    if (code_point >= 0xD800 && code_point <= 0xDBFF) {
        code_point =
            0x10000 + ((code_point - 0xD800) << 10) + ((unsigned)hex_quad(*p + 2) - 0xDC00);
        *p += 6;
    }
    return encode_utf8(code_point, out);
}

void unescape_append(struct buffer *out, struct str raw)
{
    const char *p = raw.bytes, *end = p + raw.length;
    while (p < end) {
        const char *escape = memchr(p, '\\', (size_t)(end - p));
        const char *run_end = escape ? escape : end;
        buffer_append(out, str_slice(p, (size_t)(run_end - p)));
        p = run_end;
        if (escape) {
            char decoded[4];
            size_t length = decode_escape(&p, decoded);
            buffer_append(out, str_slice(decoded, length));
        }
    }
}

bool unescape_equals(struct str raw, struct str text)
{
    const char *p = raw.bytes, *end = p + raw.length;
    size_t matched = 0;
    /* No escape is shorter than what it stands for. */
    if (raw.length < text.length)
        return false;
    while (p < end) {
        if (*p != '\\') {
            if (matched == text.length || *p++ != text.bytes[matched++])
                return false;
            continue;
        }
        char decoded[4];
        size_t length = decode_escape(&p, decoded);
        if (text.length - matched < length || memcmp(text.bytes + matched, decoded, length) != 0)
            return false;
        matched += length;
    }
    return matched == text.length;
}
