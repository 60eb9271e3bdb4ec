/* Decimal text to an integer, exactly: floating point would take two large numbers for one. */
#include "exact_integer.h"

#define LARGEST ((INT64_C(1) << 53) - 1)
/* An exponent beyond it can only belong to 0, or to what is too large or a fraction. */
#define MOST_EXPONENT 10000

/* The digits so far: value × 10^zeros, so that zeros at the end overflow nothing. */
struct digits {
    int64_t value, zeros, count;
};

static bool add_digit(struct digits *digits, int digit)
{
    digits->count++;
    if (digit == 0) {
        digits->zeros += digits->value > 0;
        return true;
    }
    for (; digits->zeros > 0; digits->zeros--) {
        if (digits->value > LARGEST / 10)
            return false;
        digits->value *= 10;
    }
    if (digits->value > (LARGEST - digit) / 10)
        return false;
    digits->value = digits->value * 10 + digit;
    return true;
}

/* Takes digits from the front of `text`; there must be one. */
static bool take_digits(struct str *text, struct digits *digits)
{
    size_t i = 0;
    bool fits = true;
    for (; fits && i < text->length && text->bytes[i] >= '0' && text->bytes[i] <= '9'; i++)
        fits = add_digit(digits, text->bytes[i] - '0');
    *text = str_slice(text->bytes + i, text->length - i);
    return fits && i > 0;
}

static bool take_char(struct str *text, char c)
{
    if (text->length == 0 || *text->bytes != c)
        return false;
    *text = str_slice(text->bytes + 1, text->length - 1);
    return true;
}

static bool take_exponent(struct str *text, int64_t *exponent)
{
    bool is_negative = take_char(text, '-');
    size_t i = 0;
    if (!is_negative)
        take_char(text, '+');
    for (; i < text->length && text->bytes[i] >= '0' && text->bytes[i] <= '9'; i++) {
        if (*exponent < MOST_EXPONENT)
            *exponent = *exponent * 10 + (text->bytes[i] - '0');
    }
    *text = str_slice(text->bytes + i, text->length - i);
    *exponent = is_negative ? -*exponent : *exponent;
    return i > 0;
}

bool exact_integer_read(struct str text, bool allows_exponent, int64_t *value)
{
    struct digits digits = {0};
    int64_t whole, exponent = 0;
    bool is_negative = take_char(&text, '-');
    if (!take_digits(&text, &digits))
        return false;
    whole = digits.count;
    if (take_char(&text, '.') && !take_digits(&text, &digits))
        return false;
    if (allows_exponent && (take_char(&text, 'e') || take_char(&text, 'E')) &&
        !take_exponent(&text, &exponent))
        return false;
    if (text.length > 0)
        return false;
    exponent += digits.zeros - (digits.count - whole);
    if (digits.value > 0 && exponent < 0)
        return false;
    for (; digits.value > 0 && exponent > 0; exponent--) {
        if (digits.value > LARGEST / 10)
            return false;
        digits.value *= 10;
    }
    *value = is_negative ? -digits.value : digits.value;
    return true;
}
