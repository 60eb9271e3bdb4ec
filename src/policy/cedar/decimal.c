/* decimal: a fixed point number with up to four digits behind the point, and the reading of
 * digits that all these types share. */
#include "extension.h"

#define FRACTION_DIGITS 4

size_t digits_count(struct str text, size_t most)
{
    size_t count = 0;
    while (count < text.length && count < most && text.bytes[count] >= '0' &&
           text.bytes[count] <= '9')
        count++;
    return count;
}

bool digits_append(uint64_t *number, char digit)
{
    return !__builtin_mul_overflow(*number, (uint64_t)10, number) &&
           !__builtin_add_overflow(*number, (uint64_t)(digit - '0'), number);
}

/* -?DIGITS.DIGITS, nothing before or behind. */
bool extension_parse_decimal(struct str text, int64_t *ten_thousandths)
{
    if (text.length == 0)
        return false;
    bool negative = text.bytes[0] == '-';
    struct str rest = str_slice(text.bytes + negative, text.length - negative);
    size_t whole_digits = digits_count(rest, rest.length);
    if (whole_digits == 0 || whole_digits == rest.length || rest.bytes[whole_digits] != '.')
        return false;
    struct str fraction = str_slice(rest.bytes + whole_digits + 1, rest.length - whole_digits - 1);
    if (fraction.length == 0 || fraction.length > FRACTION_DIGITS ||
        digits_count(fraction, fraction.length) != fraction.length)
        return false;
    uint64_t magnitude = 0;
    for (size_t i = 0; i < whole_digits; i++)
        if (!digits_append(&magnitude, rest.bytes[i]))
            return false;
    for (size_t i = 0; i < FRACTION_DIGITS; i++)
        if (!digits_append(&magnitude, (char)(i < fraction.length ? fraction.bytes[i] : '0')))
            return false;
    /* The smallest number has no positive counterpart. */
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *ten_thousandths = (int64_t)(negative ? 0 - magnitude : magnitude);
    return true;
}
