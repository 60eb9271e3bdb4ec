/* duration: days, hours, minutes, seconds and milliseconds, in this order, each at most once. */
#include "extension.h"

static const struct unit {
    struct str name;
    int64_t ms;
} units[] = {
    {{"d", 1}, INT64_C(86400000)}, {{"h", 1}, INT64_C(3600000)}, {{"m", 1}, INT64_C(60000)},
    {{"s", 1}, INT64_C(1000)},     {{"ms", 2}, INT64_C(1)},
};
#define UNIT_COUNT (sizeof units / sizeof *units)

/* The unit's place in the table, from `first` on; UNIT_COUNT when there is none. "m" is
 * minutes unless an "s" follows: seconds have digits of their own. */
static size_t read_unit(struct str *text, size_t first)
{
    size_t letters = 0;
    while (letters < text->length && (text->bytes[letters] < '0' || text->bytes[letters] > '9'))
        letters++;
    for (size_t i = first; i < UNIT_COUNT; i++) {
        if (!str_equal(units[i].name, str_slice(text->bytes, letters)))
            continue;
        *text = str_slice(text->bytes + letters, text->length - letters);
        return i;
    }
    return UNIT_COUNT;
}

/* Adds `amount` units away from zero. */
static bool add(int64_t *sum, uint64_t amount, int64_t unit, bool negative)
{
    /* As a negative number: the smallest 64-bit number can be written in milliseconds. */
    if (amount > (uint64_t)INT64_MAX + (negative && unit == 1))
        return false;
    int64_t part = (int64_t)(0 - amount);
    return !__builtin_mul_overflow(part, unit, &part) &&
           !(negative ? __builtin_add_overflow(*sum, part, sum)
                      : __builtin_sub_overflow(*sum, part, sum));
}

bool extension_parse_duration(struct str text, int64_t *ms)
{
    bool negative = text.length > 0 && text.bytes[0] == '-';
    if (text.length == (size_t)negative)
        return false;
    struct str rest = str_slice(text.bytes + negative, text.length - negative);
    int64_t sum = 0;
    for (size_t unit = 0; rest.length; unit++) {
        size_t digits = digits_count(rest, rest.length);
        if (digits == 0)
            return false;
        uint64_t amount = 0;
        for (size_t i = 0; i < digits; i++)
            if (!digits_append(&amount, rest.bytes[i]))
                return false;
        rest = str_slice(rest.bytes + digits, rest.length - digits);
        unit = read_unit(&rest, unit);
        if (unit == UNIT_COUNT || !add(&sum, amount, units[unit].ms, negative))
            return false;
    }
    *ms = sum;
    return true;
}
