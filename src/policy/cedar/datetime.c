/* datetime: YYYY-MM-DD, optionally with THH:MM:SS, milliseconds, and Z or an offset, as
 * milliseconds since 1970 by the Gregorian calendar reckoned backwards. */
#include "extension.h"

/* Reads as many digits as `width` at *position and moves on. */
static bool read_number(struct str text, size_t *position, size_t width, int *number)
{
    struct str rest = str_slice(text.bytes + *position, text.length - *position);
    if (digits_count(rest, width) != width)
        return false;
    *number = 0;
    for (size_t i = 0; i < width; i++)
        *number = *number * 10 + (rest.bytes[i] - '0');
    *position += width;
    return true;
}

static bool read_char(struct str text, size_t *position, char expected)
{
    if (*position >= text.length || text.bytes[*position] != expected)
        return false;
    ++*position;
    return true;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

/* Days from 1970-01-01; years are not negative. */
static int64_t days_since_epoch(int year, int month, int day)
{
    /* Counted in years that start in March, so that the leap day is the last. */
    int64_t years = month > 2 ? year : year - 1;
    int64_t era = (years >= 0 ? years : years - 399) / 400;
    int64_t year_of_era = years - era * 400;
    int64_t month_from_march = (month + 9) % 12;
    int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static bool read_date(struct str text, size_t *position, int64_t *days)
{
    int year, month, day;
    if (!read_number(text, position, 4, &year) || !read_char(text, position, '-') ||
        !read_number(text, position, 2, &month) || !read_char(text, position, '-') ||
        !read_number(text, position, 2, &day))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return false;
    *days = days_since_epoch(year, month, day);
    return true;
}

/* Z, +hhmm or -hhmm, as the seconds by which local time is ahead. */
static bool read_offset(struct str text, size_t *position, int64_t *seconds)
{
    *seconds = 0;
    if (read_char(text, position, 'Z'))
        return true;
    bool behind = read_char(text, position, '-');
    if (!behind && !read_char(text, position, '+'))
        return false;
    int hours, minutes;
    if (!read_number(text, position, 2, &hours) || !read_number(text, position, 2, &minutes) ||
        hours > 23 || minutes > 59)
        return false;
    *seconds = (int64_t)(hours * 60 + minutes) * (behind ? -60 : 60);
    return true;
}

bool extension_parse_datetime(struct str text, int64_t *ms)
{
    size_t position = 0;
    int64_t days, ahead;
    if (text.length == 0 || !read_date(text, &position, &days))
        return false;
    *ms = days * 86400000;
    if (position == text.length)
        return true;
    int hour, minute, second, fraction = 0;
    if (!read_char(text, &position, 'T') || !read_number(text, &position, 2, &hour) ||
        !read_char(text, &position, ':') || !read_number(text, &position, 2, &minute) ||
        !read_char(text, &position, ':') || !read_number(text, &position, 2, &second))
        return false;
    if (read_char(text, &position, '.') && !read_number(text, &position, 3, &fraction))
        return false;
    if (!read_offset(text, &position, &ahead) || position != text.length)
        return false;
    /* A leap second is no time of day here. */
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *ms += ((int64_t)(hour * 60 + minute) * 60 + second - ahead) * 1000 + fraction;
    return true;
}
