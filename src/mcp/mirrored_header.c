/* Headers that repeat a part of the body: decoded and compared a few bytes at a time. */
#include "taskgate/mcp/mirrored_header.h"

#include <string.h>

#include <openssl/evp.h>

#include "taskgate/core/assert.h"
#include "taskgate/core/owned.h"
#include "taskgate/json/text.h"

#define SENTINEL_PREFIX STR("=?base64?")
#define SENTINEL_SUFFIX STR("?=")

const char *mirrored_verdict_text(enum mirrored_verdict verdict)
{
    static const char *const texts[] = {
        [MIRRORED_SAME] = "repeats the body",
        [MIRRORED_MISSING] = "is missing",
        [MIRRORED_REPEATED] = "is there twice",
        [MIRRORED_UNDECODABLE] = "cannot be decoded",
        [MIRRORED_DIFFERENT] = "differs from the body",
        [MIRRORED_UNEXPECTED] = "has a value that the body does not have",
    };
    ASSERT_NUMBERS(verdict, <, sizeof texts / sizeof *texts);
    return texts[verdict];
}

void mirrored_header_add(struct mirrored_header *header, struct str value)
{
    if (header->count == 0)
        header->value = value;
    header->count++;
}

/* RFC 9110 §5.5: optional white space is spaces and tabs. */
static struct str trim_field(struct str value)
{
    while (value.length && (*value.bytes == ' ' || *value.bytes == '\t')) {
        value.bytes++;
        value.length--;
    }
    while (value.length &&
           (value.bytes[value.length - 1] == ' ' || value.bytes[value.length - 1] == '\t'))
        value.length--;
    return value;
}

/* Whether it is a sentinel, and what is between prefix and suffix. */
static bool take_payload(struct str value, struct str *payload)
{
    size_t around = SENTINEL_PREFIX.length + SENTINEL_SUFFIX.length;
    if (value.length < around || !str_starts_with(value, SENTINEL_PREFIX) ||
        !str_ends_with(value, SENTINEL_SUFFIX))
        return false;
    *payload = str_slice(value.bytes + SENTINEL_PREFIX.length, value.length - around);
    return true;
}

/* Other bytes mean different texts to different readers (Latin-1 or UTF-8). */
static bool mirrored_header_is_plain(struct str value)
{
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.bytes[i];
        if (c != '\t' && (c < 0x20 || c > 0x7e))
            return false;
    }
    return true;
}

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes four characters. Returns how many bytes they are; 0 for what RFC 4648 §4 does not write:
 * a foreign character, padding before the end, bits that are dropped and not zero. */
static size_t decode_quad(const char *quad, bool is_last, unsigned char bytes[3])
{
    size_t padding = quad[3] != '=' ? 0 : quad[2] != '=' ? 1 : 2;
    unsigned group = 0;
    if (padding > 0 && !is_last)
        return 0;
    for (size_t i = 0; i < 4; i++) {
        int bits = i < 4 - padding ? sextet(quad[i]) : 0;
        if (bits < 0)
            return 0;
        group = group << 6 | (unsigned)bits;
    }
    if ((padding == 1 && (group & 0xff)) || (padding == 2 && (group & 0xffff)))
        return 0;
    bytes[0] = (unsigned char)(group >> 16);
    bytes[1] = (unsigned char)(group >> 8);
    bytes[2] = (unsigned char)group;
    return 3 - padding;
}

/* Out of the way of plain values, which are most. */
static __attribute__((noinline)) enum mirrored_verdict compare_payload(struct str payload,
                                                                       struct str text)
{
    unsigned char bytes[3];
    size_t place = 0;
    bool same = true;
    if (payload.length % 4 != 0)
        return MIRRORED_UNDECODABLE;
    for (size_t i = 0; i < payload.length; i += 4) {
        size_t count = decode_quad(payload.bytes + i, i + 4 == payload.length, bytes);
        if (count == 0)
            return MIRRORED_UNDECODABLE;
        same =
            same && count <= text.length - place && memcmp(bytes, text.bytes + place, count) == 0;
        if (same)
            place += count;
    }
    return same && place == text.length ? MIRRORED_SAME : MIRRORED_DIFFERENT;
}

enum mirrored_verdict mirrored_header_compare(const struct mirrored_header *header, struct str text)
{
    struct str value = trim_field(header->value), payload;
    if (header->count != 1)
        return header->count == 0 ? MIRRORED_MISSING : MIRRORED_REPEATED;
    if (take_payload(value, &payload))
        return compare_payload(payload, text);
    if (!mirrored_header_is_plain(value))
        return MIRRORED_UNDECODABLE;
    return str_equal(value, text) ? MIRRORED_SAME : MIRRORED_DIFFERENT;
}

enum mirrored_verdict mirrored_header_compare_json(const struct mirrored_header *header,
                                                   struct str json)
{
    struct str quoted = str_trim(json);
    OWNED_BUFFER(text);
    if (json_type(quoted) != JSON_STRING)
        return header->count == 0 ? MIRRORED_MISSING : MIRRORED_DIFFERENT;
    if (!memchr(quoted.bytes, '\\', quoted.length))
        return mirrored_header_compare(header, str_slice(quoted.bytes + 1, quoted.length - 2));
    json_decode_string(quoted, &text);
    enum mirrored_verdict verdict = mirrored_header_compare(header, buffer_str(&text));
    return verdict;
}

bool mirrored_header_decode(struct str value, struct buffer *room, struct str *text)
{
    struct str payload;
    unsigned char bytes[3];
    *text = trim_field(value);
    if (!take_payload(*text, &payload))
        return mirrored_header_is_plain(*text);
    if (payload.length % 4 != 0)
        return false;
    size_t start = room->length;
    buffer_reserve(room, payload.length + 1); /* never without bytes to point at */
    for (size_t i = 0; i < payload.length; i += 4) {
        size_t count = decode_quad(payload.bytes + i, i + 4 == payload.length, bytes);
        if (count == 0)
            return false;
        buffer_append(room, str_slice((const char *)bytes, count));
    }
    *text = str_slice(room->bytes + start, room->length - start);
    return str_is_utf8(*text);
}

/* Whether a header carries the text as it is: its readers strip white space around it, and take
 * what looks like a sentinel for one. */
static bool is_sent_plainly(struct str text)
{
    struct str payload;
    return text.length > 0 && mirrored_header_is_plain(text) &&
           trim_field(text).length == text.length && !take_payload(text, &payload);
}

void mirrored_header_encode(struct str text, struct buffer *out)
{
    if (is_sent_plainly(text)) {
        buffer_append(out, text);
        return;
    }
    buffer_append(out, SENTINEL_PREFIX);
    buffer_reserve(out, text.length / 3 * 4 + 8);
    int length = EVP_EncodeBlock((unsigned char *)out->bytes + out->length,
                                 (const unsigned char *)text.bytes, (int)text.length);
    out->length += (size_t)length;
    buffer_append(out, SENTINEL_SUFFIX);
}
