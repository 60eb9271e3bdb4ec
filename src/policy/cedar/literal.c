/* Escapes: \n \r \t \\ \0 \' \" \xHH below 0x80, \u{H…} with up to six digits and underscores
 * between them; in patterns \*, too. */
#include "literal.h"

#include <string.h>

/* One decoded character: its code point, and whether it was written `\*`. */
struct character {
    uint32_t code;
    bool star; /* written as \* */
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* `*position` stands behind "\x". */
static const char *read_byte(struct str text, size_t *position, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 2; i++) {
        int digit = *position < text.length ? hex_digit(text.bytes[*position]) : -1;
        if (digit < 0)
            return "\\x needs two hexadecimal digits";
        *code = *code * 16 + (uint32_t)digit;
        ++*position;
    }
    return *code > 0x7f ? "\\x goes up to \\x7f; write \\u{…}" : NULL;
}

/* `*position` stands behind "\u". */
static const char *read_code_point(struct str text, size_t *position, uint32_t *code)
{
    if (*position == text.length || text.bytes[*position] != '{')
        return "\\u needs its digits in braces: \\u{1F600}";
    int digits = 0;
    *code = 0;
    for (++*position; *position < text.length && text.bytes[*position] != '}'; ++*position) {
        int digit = hex_digit(text.bytes[*position]);
        if (digit < 0 && (text.bytes[*position] != '_' || digits == 0))
            return "\\u{…} takes hexadecimal digits";
        if (digit >= 0 && ++digits <= 6)
            *code = *code * 16 + (uint32_t)digit;
    }
    if (*position == text.length)
        return "\\u{ needs its closing brace";
    ++*position;
    if (digits == 0 || digits > 6)
        return "\\u{…} takes one to six hexadecimal digits";
    if (*code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
        return "this is no Unicode character";
    return NULL;
}

/* `*position` stands on the backslash. Returns NULL, or the mistake. */
static const char *read_escape(struct str text, size_t *position, bool pattern,
                               struct character *character)
{
    static const char from[] = "nrt\\0'\"", to[] = "\n\r\t\\\0'\"";
    char c = text.bytes[*position + 1]; /* the lexer has seen to it */
    *position += 2;
    character->star = false;
    if (c == 'x')
        return read_byte(text, position, &character->code);
    if (c == 'u')
        return read_code_point(text, position, &character->code);
    character->star = pattern && c == '*';
    character->code = '*';
    if (character->star)
        return NULL;
    const char *found = memchr(from, c, sizeof from - 1);
    if (!found)
        return pattern ? "this is no escape; there are \\n \\r \\t \\\\ \\0 \\' \\\" \\x \\u \\*"
                       : "this is no escape; there are \\n \\r \\t \\\\ \\0 \\' \\\" \\x \\u";
    character->code = (unsigned char)to[found - from];
    return NULL;
}

static size_t write_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | code >> (6 * more));
    for (size_t i = 1; i <= more; i++)
        out[i] = (char)(0x80 | ((code >> (6 * (more - i))) & 0x3f));
    return more + 1;
}

/* Decodes into `out`, which is as long as the literal: no escape is shorter than its
 * character. In a pattern, the places of wildcards go to `stars` (NULL to count alone). */
static bool decode(struct str text, bool pattern, char *out, size_t *length, size_t *stars,
                   size_t *star_count, struct literal_error *error)
{
    *length = *star_count = 0;
    for (size_t i = 0; i < text.length;) {
        size_t start = i;
        struct character character = {.code = (unsigned char)text.bytes[i]};
        const char *message = NULL;
        if (text.bytes[i] == '\\')
            message = read_escape(text, &i, pattern, &character);
        else if (text.bytes[i++] == '\r')
            message = "a carriage return cannot stand in a string; write \\r";
        if (message) {
            *error = (struct literal_error){.offset = start + 1, .message = message};
            return false;
        }
        if (pattern && character.code == '*' && !character.star) {
            if (stars)
                stars[*star_count] = *length;
            ++*star_count;
        } else if (text.bytes[start] == '\\') {
            *length += write_utf8(out + *length, character.code);
        } else {
            out[(*length)++] = text.bytes[start];
        }
    }
    return true;
}

bool literal_string(struct arena *arena, struct str literal, struct str *text,
                    struct literal_error *error)
{
    struct str inner = str_slice(literal.bytes + 1, literal.length - 2);
    *text = inner;
    if (inner.length == 0 ||
        (!memchr(inner.bytes, '\\', inner.length) && !memchr(inner.bytes, '\r', inner.length)))
        return true;
    char *out = arena_alloc(arena, inner.length);
    size_t stars;
    text->bytes = out;
    return decode(inner, false, out, &text->length, NULL, &stars, error);
}

/* A search for a short piece prepares a table first. */
#define STEPS_PER_PIECE 4

bool literal_pattern(struct arena *arena, struct str literal, struct pattern *pattern,
                     struct literal_error *error)
{
    struct str inner = str_slice(literal.bytes + 1, literal.length - 2);
    char *out = arena_alloc(arena, inner.length);
    size_t length, count;
    if (!decode(inner, true, out, &length, NULL, &count, error))
        return false;
    size_t *stars = arena_alloc_array(arena, count, sizeof *stars);
    if (!decode(inner, true, out, &length, stars, &count, error))
        return false;
    struct str *pieces = arena_alloc_array(arena, count + 1, sizeof *pieces);
    for (size_t i = 0; i <= count; i++) {
        size_t start = i == 0 ? 0 : stars[i - 1];
        size_t end = i == count ? length : stars[i];
        pieces[i] = str_slice(out + start, end - start);
    }
    *pattern = (struct pattern){.pieces = pieces,
                                .count = count + 1,
                                .weight = (count + 1) * STEPS_PER_PIECE + length / BYTES_PER_STEP};
    return true;
}
