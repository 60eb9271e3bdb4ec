/* email, uri, date, date-time: as far as a form needs them; strict about impossible values. */
#include "elicitation_format.h"

#include <string.h>

#include "taskgate/json/text.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Control characters and white space stand in none of them. */
static bool has_blank(struct str text)
{
    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)text.bytes[i] <= ' ' || text.bytes[i] == 0x7F)
            return true;
    }
    return false;
}

static bool is_email(struct str text)
{
    struct str name, domain;
    return !has_blank(text) && str_cut(text, '@', &name, &domain) && name.length > 0 &&
           domain.length > 0 && !memchr(domain.bytes, '@', domain.length) &&
           domain.bytes[0] != '.' && domain.bytes[domain.length - 1] != '.';
}

/* RFC 3986: a scheme, then something. */
static bool is_uri(struct str text)
{
    struct str scheme, rest;
    if (has_blank(text) || !str_cut(text, ':', &scheme, &rest) || rest.length == 0 ||
        scheme.length == 0 || !is_letter(scheme.bytes[0]))
        return false;
    for (size_t i = 0; i < scheme.length; i++) {
        char c = scheme.bytes[i];
        if (!is_letter(c) && !is_digit(c) && c != '+' && c != '-' && c != '.')
            return false;
    }
    for (size_t i = 0; i < rest.length; i++) {
        if (strchr("\"<>\\^`{|}", rest.bytes[i]))
            return false;
    }
    return true;
}

/* `shape` has 0 for each digit; other characters stand for themselves. */
static bool has_shape(struct str text, const char *shape)
{
    if (text.length < strlen(shape))
        return false;
    for (size_t i = 0; shape[i]; i++) {
        if (shape[i] == '0' ? !is_digit(text.bytes[i]) : text.bytes[i] != shape[i])
            return false;
    }
    return true;
}

static int two_digits(struct str text, size_t at)
{
    return (text.bytes[at] - '0') * 10 + text.bytes[at + 1] - '0';
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && is_leap);
}

static bool begins_with_date(struct str text)
{
    if (!has_shape(text, "0000-00-00"))
        return false;
    int year = two_digits(text, 0) * 100 + two_digits(text, 2);
    int month = two_digits(text, 5), day = two_digits(text, 8);
    return month >= 1 && month <= 12 && day >= 1 && day <= days_in(year, month);
}

static bool is_date(struct str text)
{
    return text.length == 10 && begins_with_date(text);
}

static bool is_zone(struct str text)
{
    if (text.length == 1)
        return text.bytes[0] == 'Z' || text.bytes[0] == 'z';
    return text.length == 6 && (has_shape(text, "+00:00") || has_shape(text, "-00:00")) &&
           two_digits(text, 1) <= 23 && two_digits(text, 4) <= 59;
}

/* RFC 3339; a second of 60 is a leap second. */
static bool is_date_time(struct str text)
{
    if (!begins_with_date(text) || text.length < 20 ||
        (text.bytes[10] != 'T' && text.bytes[10] != 't' && text.bytes[10] != ' '))
        return false;
    struct str time = str_slice(text.bytes + 11, text.length - 11);
    if (!has_shape(time, "00:00:00") || two_digits(time, 0) > 23 || two_digits(time, 3) > 59 ||
        two_digits(time, 6) > 60)
        return false;
    size_t at = 8;
    if (at < time.length && time.bytes[at] == '.') {
        size_t first = ++at;
        while (at < time.length && is_digit(time.bytes[at]))
            at++;
        if (at == first)
            return false;
    }
    return is_zone(str_slice(time.bytes + at, time.length - at));
}

bool elicitation_has_format(struct str format, struct str text)
{
    static const struct {
        const char *name;
        bool (*has)(struct str text);
    } formats[] = {
        {"email", is_email}, {"uri", is_uri}, {"date", is_date}, {"date-time", is_date_time}};
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        if (json_string_equals(format, str_from(formats[i].name)))
            return formats[i].has(text);
    }
    return true;
}
