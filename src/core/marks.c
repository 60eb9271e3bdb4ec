/* One walk over the characters. */
#include "taskgate/core/marks.h"

#include "letters_table.h"
#include "ranges.h"

#include "taskgate/core/assert.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const struct range bidi[] = {
    {0x061C, 0x061C},
    {0x200E, 0x200F},
    {0x202A, 0x202E},
    {0x2066, 0x2069},
};

/* Default_Ignorable_Code_Point, and the categories Zs, Zl and Zp but U+0020; without those above.
 */
static const struct range invisible[] = {
    {0x00A0, 0x00A0},   {0x00AD, 0x00AD}, {0x034F, 0x034F}, {0x115F, 0x1160},   {0x1680, 0x1680},
    {0x17B4, 0x17B5},   {0x180B, 0x180F}, {0x2000, 0x200D}, {0x2028, 0x2029},   {0x202F, 0x202F},
    {0x205F, 0x2065},   {0x206A, 0x206F}, {0x3000, 0x3000}, {0x3164, 0x3164},   {0xFE00, 0xFE0F},
    {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
    {0xE0000, 0xE0FFF},
};

enum script { LATIN = 1, CYRILLIC, GREEK, ARMENIAN, CHEROKEE, OTHER };

#define RANGE(first, last, script) {first, last},
#define SCRIPT(first, last, script) script,
static const struct range letters[] = {LETTER_RANGES(RANGE)};
static const unsigned char scripts[] = {LETTER_RANGES(SCRIPT)};
#undef RANGE
#undef SCRIPT

/* The script of a letter; 0 for what is none. */
static unsigned script_of(unsigned c)
{
    if (c < 0x80)
        return (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? LATIN : 0;
    size_t at = range_find(letters, LENGTH(letters), c);
    return at < LENGTH(letters) ? scripts[at] : 0;
}

static unsigned mark_of(unsigned c)
{
    if (c < 0x20 || (c >= 0x7F && c < 0xA0))
        return c == '\t' || c == '\n' || c == '\r' ? 0 : 1U << MARK_CONTROL;
    if (c < 0xA0)
        return 0;
    if (range_has(bidi, LENGTH(bidi), c))
        return 1U << MARK_BIDI;
    return range_has(invisible, LENGTH(invisible), c) ? 1U << MARK_INVISIBLE : 0;
}

unsigned marks_of(struct str text)
{
    const unsigned look_alikes = 1U << CYRILLIC | 1U << GREEK | 1U << ARMENIAN | 1U << CHEROKEE;
    unsigned marks = 0, run = 0; /* the scripts of the letters that stand together here */
    for (size_t i = 0; i < text.length;) {
        unsigned c;
        size_t length = str_code_point(str_slice(text.bytes + i, text.length - i), &c);
        i += length > 0 ? length : 1;
        unsigned mark = length > 0 ? mark_of(c) : 0;
        unsigned script = length > 0 ? script_of(c) : 0;
        marks |= mark;
        if (script)
            run |= 1U << script;
        else if (!mark)
            run = 0; /* a hidden character parts no letters */
        if (run & 1U << LATIN && run & look_alikes)
            marks |= 1U << MARK_MIXED_SCRIPT;
    }
    return marks;
}

/* ---- words ---- */

static const struct {
    const char *name, *words;
} texts[MARK_COUNT] = {
    [MARK_BIDI] = {"bidi", "characters that change the order of letters"},
    [MARK_INVISIBLE] = {"invisible", "characters that cannot be seen"},
    [MARK_CONTROL] = {"control", "control characters"},
    [MARK_MIXED_SCRIPT] = {"mixed_script", "letters of alphabets that look alike"},
};

const char *mark_name(enum mark mark)
{
    ASSERT_NUMBERS(mark, <, MARK_COUNT);
    return texts[mark].name;
}

enum mark mark_of_name(struct str name)
{
    enum mark mark = 0;
    while (mark < MARK_COUNT && !str_equal(name, str_from(texts[mark].name)))
        mark++;
    return mark;
}

const char *mark_words(enum mark mark)
{
    ASSERT_NUMBERS(mark, <, MARK_COUNT);
    return texts[mark].words;
}
