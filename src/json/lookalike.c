/* Case folding onto ASCII: what EqualFold, equalsIgnoreCase and full case folding accept. */
#include "lookalike.h"

#include <stddef.h>

/* Every non-ASCII character that some case folding takes to ASCII letters. */
static const struct {
    struct str character, folded;
} folds[] = {
    {STR("\xC5\xBF"), STR("s")},      /* U+017F long s */
    {STR("\xE2\x84\xAA"), STR("k")},  /* U+212A kelvin sign */
    {STR("\xC4\xB0"), STR("i")},      /* U+0130 capital i with a dot: lower case in Java */
    {STR("\xC4\xB1"), STR("i")},      /* U+0131 dotless i: its capital is I */
    {STR("\xC3\x9F"), STR("ss")},     /* U+00DF sharp s */
    {STR("\xE1\xBA\x9E"), STR("ss")}, /* U+1E9E capital sharp s */
    {STR("\xEF\xAC\x80"), STR("ff")}, /* U+FB00..U+FB06 ligatures */
    {STR("\xEF\xAC\x81"), STR("fi")},  {STR("\xEF\xAC\x82"), STR("fl")},
    {STR("\xEF\xAC\x83"), STR("ffi")}, {STR("\xEF\xAC\x84"), STR("ffl")},
    {STR("\xEF\xAC\x85"), STR("st")},  {STR("\xEF\xAC\x86"), STR("st")},
};

/* What the start of `rest` folds to, stepping over it. */
static struct str next_folded(struct str *rest)
{
    size_t step = 1;
    struct str folded = str_slice(rest->bytes, 1);
    for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++) {
        if ((unsigned char)rest->bytes[0] >= 0x80 && str_starts_with(*rest, folds[i].character)) {
            folded = folds[i].folded;
            step = folds[i].character.length;
        }
    }
    *rest = str_slice(rest->bytes + step, rest->length - step);
    return folded;
}

bool lookalike(struct str key, struct str name)
{
    while (key.length) {
        struct str folded = next_folded(&key);
        if (folded.length > name.length ||
            !str_equal_ignore_case(folded, str_slice(name.bytes, folded.length)))
            return false;
        name = str_slice(name.bytes + folded.length, name.length - folded.length);
    }
    return name.length == 0;
}
