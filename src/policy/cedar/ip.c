/* ipaddr: an IPv4 or IPv6 address or range. Stricter than inet_pton: no leading zeros in
 * IPv4, no IPv4 inside IPv6, no zone. */
#include <string.h>

#include "extension.h"

#define LONGEST_TEXT 43
#define GROUPS 8

static bool read_char(struct str *text, char expected)
{
    if (text->length == 0 || text->bytes[0] != expected)
        return false;
    *text = str_slice(text->bytes + 1, text->length - 1);
    return true;
}

static bool read_octet(struct str *text, unsigned char *octet)
{
    size_t digits = digits_count(*text, 3);
    if (digits == 0 || (digits > 1 && text->bytes[0] == '0'))
        return false;
    unsigned number = 0;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (unsigned)(text->bytes[i] - '0');
    if (number > 255)
        return false;
    *octet = (unsigned char)number;
    *text = str_slice(text->bytes + digits, text->length - digits);
    return true;
}

static bool parse_v4(struct str text, unsigned char bytes[16])
{
    for (int i = 0; i < 4; i++)
        if ((i > 0 && !read_char(&text, '.')) || !read_octet(&text, &bytes[i]))
            return false;
    return text.length == 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads up to `most` groups of one to four hexadecimal digits, joined by ":". The text
 * after the last good group stays in `text`. */
static int read_groups(struct str *text, int most, unsigned groups[GROUPS])
{
    int count = 0;
    while (count < most) {
        struct str rest = *text;
        if (count > 0 && !read_char(&rest, ':'))
            break;
        unsigned group = 0;
        size_t digits = 0;
        for (; digits < 4 && digits < rest.length && hex_digit(rest.bytes[digits]) >= 0; digits++)
            group = group * 16 + (unsigned)hex_digit(rest.bytes[digits]);
        if (digits == 0)
            break;
        groups[count++] = group;
        *text = str_slice(rest.bytes + digits, rest.length - digits);
    }
    return count;
}

static bool parse_v6(struct str text, unsigned char bytes[16])
{
    unsigned groups[GROUPS] = {0}, behind[GROUPS] = {0};
    int head = read_groups(&text, GROUPS, groups);
    if (head < GROUPS) {
        if (!read_char(&text, ':') || !read_char(&text, ':'))
            return false;
        /* "::" stands for at least one group. */
        int tail = read_groups(&text, GROUPS - 1 - head, behind);
        for (int i = 0; i < tail; i++)
            groups[GROUPS - tail + i] = behind[i];
    }
    for (size_t i = 0; i < GROUPS; i++) {
        bytes[2 * i] = (unsigned char)(groups[i] >> 8);
        bytes[2 * i + 1] = (unsigned char)(groups[i] & 0xff);
    }
    return text.length == 0;
}

static bool parse_prefix(struct str text, unsigned most, unsigned char *prefix)
{
    size_t digits = digits_count(text, 3);
    if (digits == 0 || digits != text.length || (digits > 1 && text.bytes[0] == '0'))
        return false;
    unsigned number = 0;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (unsigned)(text.bytes[i] - '0');
    *prefix = (unsigned char)number;
    return number <= most;
}

bool extension_parse_ip(struct str text, struct cedar_ip *ip)
{
    *ip = (struct cedar_ip){.prefix = 32};
    struct str address, prefix;
    if (text.length > LONGEST_TEXT)
        return false;
    bool ranged = str_cut(text, '/', &address, &prefix);
    if (!parse_v4(address, ip->bytes)) {
        memset(ip->bytes, 0, sizeof ip->bytes);
        ip->v6 = true;
        ip->prefix = 128;
        if (!parse_v6(address, ip->bytes))
            return false;
    }
    return !ranged || parse_prefix(prefix, ip->v6 ? 128 : 32, &ip->prefix);
}

bool ip_is_loopback(const struct cedar_ip *ip)
{
    static const unsigned char loopback[16] = {[15] = 1};
    if (!ip->v6)
        return ip->bytes[0] == 127 && ip->prefix >= 8;
    return ip->prefix == 128 && memcmp(ip->bytes, loopback, sizeof loopback) == 0;
}

bool ip_is_multicast(const struct cedar_ip *ip)
{
    if (!ip->v6)
        return ip->bytes[0] >> 4 == 0xe && ip->prefix >= 4;
    return ip->bytes[0] == 0xff && ip->prefix >= 8;
}

bool ip_is_in_range(const struct cedar_ip *inner, const struct cedar_ip *outer)
{
    if (inner->v6 != outer->v6 || inner->prefix < outer->prefix)
        return false;
    size_t whole = outer->prefix / 8;
    if (memcmp(inner->bytes, outer->bytes, whole) != 0)
        return false;
    unsigned rest = outer->prefix % 8;
    return rest == 0 || (inner->bytes[whole] ^ outer->bytes[whole]) >> (8 - rest) == 0;
}
