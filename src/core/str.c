/* Strings with a length: comparison, cutting, numbers, UTF-8, hashing. */
#include "taskgate/core/str.h"
#include "taskgate/core/assert.h"

#include <string.h>

static unsigned char str_lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool str_same(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

bool str_equal_ignore_case(struct str a, struct str b)
{
    if (a.length != b.length)
        return false;
    if (str_equal(a, b)) /* as most are */
        return true;
    for (size_t i = 0; i < a.length; i++) {
        if (str_lower(a.bytes[i]) != str_lower(b.bytes[i]))
            return false;
    }
    return true;
}

bool str_equal_constant_time(struct str a, struct str b)
{
    if (a.length != b.length)
        return false;
    unsigned char difference = 0;
    for (size_t i = 0; i < a.length; i++)
        difference = (unsigned char)(difference | (a.bytes[i] ^ b.bytes[i]));
    return difference == 0;
}

bool str_starts_with(struct str s, struct str prefix)
{
    return s.length >= prefix.length && str_equal(str_slice(s.bytes, prefix.length), prefix);
}

bool str_ends_with(struct str s, struct str suffix)
{
    return s.length >= suffix.length &&
           str_equal(str_slice(s.bytes + (s.length - suffix.length), suffix.length), suffix);
}

int str_compare(struct str a, struct str b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common ? memcmp(a.bytes, b.bytes, common) : 0;
    if (order != 0)
        return order;
    return (a.length > b.length) - (a.length < b.length);
}

static bool str_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

struct str str_trim(struct str s)
{
    while (s.length && str_is_space(s.bytes[0])) {
        s.bytes++;
        s.length--;
    }
    while (s.length && str_is_space(s.bytes[s.length - 1]))
        s.length--;
    return s;
}

bool str_cut(struct str s, char separator, struct str *before, struct str *rest)
{
    const char *at = s.length ? memchr(s.bytes, separator, s.length) : NULL;
    if (!at) {
        *before = s;
        *rest = STR_EMPTY;
        return false;
    }
    size_t length = (size_t)(at - s.bytes);
    *before = str_slice(s.bytes, length);
    *rest = str_slice(at + 1, s.length - length - 1);
    return true;
}

size_t str_offset(struct str whole, struct str part)
{
    uintptr_t begin = (uintptr_t)whole.bytes, at = (uintptr_t)part.bytes;
    ASSERT(at >= begin && at - begin <= whole.length && part.length <= whole.length - (at - begin));
    return (size_t)(at - begin);
}

/* A number of so many digits does not overflow. */
#define SAFE_DIGITS 19

bool str_to_u64(struct str s, uint64_t *value)
{
    uint64_t sum = 0;
    if (s.length == 0)
        return false;
    for (size_t i = 0; i < s.length; i++) {
        unsigned digit = (unsigned)(unsigned char)s.bytes[i] - '0';
        if (digit > 9)
            return false;
        if (i >= SAFE_DIGITS && sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

struct str str_from_u64(uint64_t value, char digits[STR_U64_BYTES])
{
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    size_t first = STR_U64_BYTES;
    for (; value >= 10; value /= 100)
        memcpy(&digits[first -= 2], &pairs[value % 100 * 2], 2);
    if (value > 0 || first == STR_U64_BYTES)
        digits[--first] = (char)('0' + value);
    return str_slice(digits + first, STR_U64_BYTES - first);
}

/* Returns the place behind it. */
static char *str_copy(char *out, const char *end, struct str s)
{
    size_t room = (size_t)(end - out), length = s.length < room ? s.length : room;
    if (length > 0)
        memcpy(out, s.bytes, length);
    return out + length;
}

int str_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

char *str_write_hex(const void *bytes, size_t count, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (const unsigned char *byte = bytes, *end = byte + count; byte < end; byte++) {
        *text++ = digits[*byte >> 4];
        *text++ = digits[*byte & 15];
    }
    return text;
}

bool str_read_hex(struct str hex, unsigned char *bytes)
{
    for (size_t i = 0; i < hex.length / 2; i++) {
        int high = str_hex_digit(hex.bytes[2 * i]), low = str_hex_digit(hex.bytes[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return hex.length % 2 == 0;
}

void str_join(char *out, size_t size, struct str first, struct str second)
{
    const char *end = out + size - 1;
    *str_copy(str_copy(out, end, first), end, second) = '\0';
}

/* Length of the well-formed sequence at `p`, or 0. Unicode 15, table 3-7. */
static size_t utf8_sequence(const unsigned char *p, size_t left)
{
    unsigned char low = 0x80, high = 0xBF;
    size_t length;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xC2 && p[0] <= 0xDF) {
        length = 2;
    } else if (p[0] >= 0xE0 && p[0] <= 0xEF) {
        length = 3;
        if (p[0] == 0xE0)
            low = 0xA0;
        if (p[0] == 0xED)
            high = 0x9F;
    } else if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        length = 4;
        if (p[0] == 0xF0)
            low = 0x90;
        if (p[0] == 0xF4)
            high = 0x8F;
    } else {
        return 0;
    }
    if (left < length || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if (p[i] < 0x80 || p[i] > 0xBF)
            return 0;
    }
    return length;
}

size_t str_code_point(struct str s, unsigned *code_point)
{
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    const unsigned char *p = (const unsigned char *)s.bytes;
    size_t length = s.length > 0 ? utf8_sequence(p, s.length) : 0;
    if (length == 0)
        return 0;
    unsigned value = p[0] & masks[length];
    for (size_t i = 1; i < length; i++)
        value = value << 6 | (p[i] & 0x3Fu);
    *code_point = value;
    return length;
}

size_t str_utf8_length(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.bytes;
    size_t i = 0;
    while (i < s.length) {
        size_t length = utf8_sequence(p + i, s.length - i);
        if (length == 0)
            break;
        i += length;
    }
    return i;
}

struct str str_utf8_cut(struct str s, size_t most)
{
    if (s.length <= most)
        return s;
    while (most > 0 && ((unsigned char)s.bytes[most] & 0xC0) == 0x80)
        most--;
    return str_slice(s.bytes, most);
}

size_t str_utf8_count(struct str s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.length; i++)
        count += ((unsigned char)s.bytes[i] & 0xC0) != 0x80;
    return count;
}

bool str_is_utf8(struct str s)
{
    return str_utf8_length(s) == s.length;
}
