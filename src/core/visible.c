/* One walk over the characters; what stands for itself is copied in runs. */
#include "taskgate/core/visible.h"

#include "ranges.h"

#define MARKED_BREAKS 4
#define MARKED_BLANKS 16

/* General categories Cc, Cf, Co, Cs, Zl, Zp and Zs but U+0020, Default_Ignorable_Code_Point
 * (Unicode 17), and the empty pattern of Braille. Noncharacters are found by their number. */
static const struct range hidden[] = {
    {0x0000, 0x001F},    {0x007F, 0x00A0},   {0x00AD, 0x00AD},   {0x034F, 0x034F},
    {0x0600, 0x0605},    {0x061C, 0x061C},   {0x06DD, 0x06DD},   {0x070F, 0x070F},
    {0x0890, 0x0891},    {0x08E2, 0x08E2},   {0x115F, 0x1160},   {0x1680, 0x1680},
    {0x17B4, 0x17B5},    {0x180B, 0x180F},   {0x2000, 0x200F},   {0x2028, 0x202F},
    {0x205F, 0x206F},    {0x2800, 0x2800},   {0x3000, 0x3000},   {0x3164, 0x3164},
    {0xD800, 0xF8FF},    {0xFDD0, 0xFDEF},   {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0},    {0xFFF0, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD},
    {0x13430, 0x1343F},  {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
    {0xF0000, 0x10FFFF},
};

/* The blocks of Bidi_Class R, AL and AN. */
static const struct range right_to_left[] = {
    {0x0590, 0x08FF}, {0xFB1D, 0xFDFF}, {0xFE70, 0xFEFC}, {0x10800, 0x10FFF}, {0x1E800, 0x1EFFF},
};

bool visible_is_hidden(unsigned c)
{
    return (c & 0xFFFE) == 0xFFFE || range_has(hidden, sizeof hidden / sizeof *hidden, c);
}

static bool is_right_to_left(unsigned c)
{
    return c >= right_to_left[0].first &&
           range_has(right_to_left, sizeof right_to_left / sizeof *right_to_left, c) &&
           !visible_is_hidden(c);
}

/* ---- one text ---- */

struct rule {
    bool is_quoted;   /* quote and backslash are escaped */
    bool keeps_lines; /* line feed and tab stay */
    bool is_for_eyes; /* marks for white space, isolates */
};

struct walk {
    struct buffer *out;
    struct rule rule;
    const char *at, *end;
    unsigned c; /* the character here */
    size_t length;
    bool is_whole; /* it is UTF-8 */
};

static bool visible_look(struct walk *walk)
{
    struct str rest = str_slice(walk->at, (size_t)(walk->end - walk->at));
    if (rest.length == 0)
        return false;
    walk->length = str_code_point(rest, &walk->c);
    walk->is_whole = walk->length > 0;
    if (!walk->is_whole) {
        walk->length = 1;
        walk->c = 0xFFFD;
    }
    return true;
}

static void visible_append_escaped(struct buffer *out, unsigned c)
{
    static const char letters[] = {
        ['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
    if (c < sizeof letters && letters[c])
        buffer_append_format(out, "\\%c", letters[c]);
    else if (c < 0x10000)
        buffer_append_format(out, "\\u%04x", c);
    else
        buffer_append_format(out, "\\u%04x\\u%04x", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
}

static bool needs_escape(const struct walk *walk)
{
    unsigned c = walk->c;
    if (c == '"' || c == '\\')
        return walk->rule.is_quoted;
    if (c == '\n' || c == '\t')
        return !walk->rule.keeps_lines;
    return !walk->is_whole || visible_is_hidden(c);
}

static void append_here(struct walk *walk)
{
    if (needs_escape(walk))
        visible_append_escaped(walk->out, walk->c);
    else
        buffer_append(walk->out, str_slice(walk->at, walk->length));
    walk->at += walk->length;
}

/* ASCII that stands for itself in any rule, up to a blank. */
static bool append_plain(struct walk *walk)
{
    const char *start = walk->at;
    while (walk->at<walk->end && * walk->at> ' ' && *walk->at < 0x7F && *walk->at != '"' &&
           *walk->at != '\\')
        walk->at++;
    buffer_append(walk->out, str_slice(start, (size_t)(walk->at - start)));
    return walk->at > start;
}

/* ---- white space ---- */

static bool is_break(unsigned c)
{
    return (c >= '\n' && c <= '\r') || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static bool visible_is_blank(unsigned c)
{
    return c == ' ' || c == '\t' || is_break(c) || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* "3,000". */
static void append_count(struct buffer *out, size_t count)
{
    char digits[STR_U64_BYTES];
    struct str text = str_from_u64(count, digits);
    for (size_t i = 0; i < text.length; i++) {
        if (i > 0 && (text.length - i) % 3 == 0)
            buffer_append_char(out, ',');
        buffer_append_char(out, text.bytes[i]);
    }
}

/* A run that is too long to be seen as what it is. Looks no farther than a shorter one reaches, and
 * takes nothing of it. */
static bool append_blanks(struct walk *walk)
{
    struct walk ahead = *walk;
    size_t breaks = 0, count = 0;
    unsigned before = 0;
    for (; visible_look(&ahead) && visible_is_blank(ahead.c); ahead.at += ahead.length) {
        breaks += is_break(ahead.c) && !(before == '\r' && ahead.c == '\n');
        before = ahead.c;
        count++;
    }
    if (breaks < MARKED_BREAKS && count < MARKED_BLANKS)
        return false;
    buffer_append_char(walk->out, '[');
    append_count(walk->out, breaks >= MARKED_BREAKS ? breaks : count);
    buffer_append_text(walk->out, breaks >= MARKED_BREAKS ? " line breaks]" : " blanks]");
    walk->at = ahead.at;
    return true;
}

/* ---- from right to left ---- */

/* Such letters, with the blanks between two of them. */
static void append_isolated(struct walk *walk)
{
    buffer_append_text(walk->out, VISIBLE_ISOLATE);
    for (;;) {
        while (visible_look(walk) && is_right_to_left(walk->c))
            append_here(walk);
        struct walk ahead = *walk;
        while (visible_look(&ahead) && ahead.c == ' ' && ahead.at - walk->at < MARKED_BLANKS)
            ahead.at++;
        if (ahead.at == walk->at || !visible_look(&ahead) || !is_right_to_left(ahead.c))
            break;
        buffer_append(walk->out, str_slice(walk->at, (size_t)(ahead.at - walk->at)));
        walk->at = ahead.at;
    }
    buffer_append_text(walk->out, VISIBLE_ISOLATE_END);
}

static void append_by(struct buffer *out, struct str text, struct rule rule)
{
    struct walk walk = {.out = out, .rule = rule, .at = text.bytes, .end = text.bytes};
    if (text.length == 0)
        return;
    walk.end += text.length;
    buffer_reserve(out, text.length);
    while (append_plain(&walk), visible_look(&walk)) {
        if (rule.is_for_eyes && visible_is_blank(walk.c) && append_blanks(&walk))
            continue;
        if (rule.is_for_eyes && walk.is_whole && is_right_to_left(walk.c))
            append_isolated(&walk);
        else
            append_here(&walk);
    }
}

void visible_append(struct buffer *out, struct str text)
{
    append_by(out, text, (struct rule){.is_for_eyes = true});
}

void visible_append_lines(struct buffer *out, struct str text)
{
    append_by(out, text, (struct rule){.keeps_lines = true});
}

void visible_append_json_string(struct buffer *out, struct str text)
{
    visible_append_value(out, text, 0);
}

struct str visible_beginning(struct str text, size_t most)
{
    size_t i = 0;
    for (size_t count = 0; i < text.length && count < most; count++) {
        unsigned c;
        size_t length = str_code_point(str_slice(text.bytes + i, text.length - i), &c);
        i += length > 0 ? length : 1;
    }
    return str_slice(text.bytes, i);
}

static void append_quoted_by(struct buffer *out, struct str text, size_t most, struct rule rule)
{
    struct str shown = most > 0 ? visible_beginning(text, most) : text;
    buffer_append_char(out, '"');
    append_by(out, shown, rule);
    if (shown.length < text.length)
        buffer_append_text(out, "…");
    buffer_append_char(out, '"');
}

void visible_append_quoted(struct buffer *out, struct str text, size_t most)
{
    append_quoted_by(out, text, most, (struct rule){.is_quoted = true, .is_for_eyes = true});
}

void visible_append_value(struct buffer *out, struct str text, size_t most)
{
    append_quoted_by(out, text, most, (struct rule){.is_quoted = true});
}

bool visible_has_content(struct str text)
{
    for (size_t i = 0; i < text.length;) {
        unsigned c;
        size_t length = str_code_point(str_slice(text.bytes + i, text.length - i), &c);
        if (length > 0 && c != ' ' && !visible_is_hidden(c))
            return true;
        i += length > 0 ? length : 1;
    }
    return false;
}
