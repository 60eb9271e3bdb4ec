/* Strings, patterns and names as they stand in a policy. */
#include "print.h"

/* The code point at the front of `text`, which is UTF-8, and its length. */
static size_t next_character(struct str text, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)text.bytes;
    size_t length = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    *code = length == 1 ? p[0] : p[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length && i < text.length; i++)
        *code = *code << 6 | (p[i] & 0x3f);
    return length < text.length ? length : text.length;
}

/* Whether it is not visible as itself: controls, marks of direction, characters without width. */
static bool is_hidden(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0xa0},     {0xad, 0xad},     {0x61c, 0x61c},
        {0x180e, 0x180e}, {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f},
        {0x3000, 0x3000}, {0xfeff, 0xfeff}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

static void print_character(struct buffer *out, struct str character, uint32_t code)
{
    static const struct {
        uint32_t code;
        const char *escape;
    } short_ones[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"},
                      {'\r', "\\r"}, {'\t', "\\t"},  {'\0', "\\0"}};
    for (size_t i = 0; i < sizeof short_ones / sizeof *short_ones; i++) {
        if (short_ones[i].code != code)
            continue;
        buffer_append_text(out, short_ones[i].escape);
        return;
    }
    if (is_hidden(code))
        buffer_append_format(out, "\\u{%x}", (unsigned)code);
    else
        buffer_append(out, character);
}

static void print_characters(struct buffer *out, struct str text, bool is_pattern)
{
    while (text.length) {
        uint32_t code;
        size_t length = next_character(text, &code);
        if (is_pattern && code == '*')
            buffer_append_char(out, '\\');
        print_character(out, str_slice(text.bytes, length), code);
        text = str_slice(text.bytes + length, text.length - length);
    }
}

void print_string(struct buffer *out, struct str text)
{
    buffer_append_char(out, '"');
    print_characters(out, text, false);
    buffer_append_char(out, '"');
}

void print_pattern(struct buffer *out, const struct pattern *pattern)
{
    buffer_append_char(out, '"');
    for (size_t i = 0; i < pattern->count; i++) {
        if (i > 0)
            buffer_append_char(out, '*');
        print_characters(out, pattern->pieces[i], true);
    }
    buffer_append_char(out, '"');
}

void print_name(struct buffer *out, struct str name)
{
    if (name_is_identifier(name) && !name_is_reserved(name))
        buffer_append(out, name);
    else
        print_string(out, name);
}

void print_uid(struct buffer *out, const struct cedar_uid *uid)
{
    buffer_append(out, uid->type);
    buffer_append_text(out, "::");
    print_string(out, uid->id);
}
