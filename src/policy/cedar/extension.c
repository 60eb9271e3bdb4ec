/* Calls of extension functions: the table, and the functions that are one line each. */
#include <string.h>

#include "ast.h"
#include "taskgate/core/owned.h"

/* Why a policy could not be evaluated, in words. */

static void write_type(const struct cedar_failure *failure, struct buffer *out)
{
    const char *between = "type error: expected ";
    for (unsigned kind = 0; kind < CEDAR_KIND_COUNT; kind++) {
        if (!(failure->expected & 1U << kind))
            continue;
        buffer_append_format(out, "%s%s", between, cedar_kind_name((enum cedar_kind)kind));
        between = " or ";
    }
    buffer_append_format(out, ", found %s", cedar_kind_name(failure->found));
}

void cedar_failure_write(const struct cedar_failure *failure, struct buffer *out)
{
    switch (failure->code) {
    case CEDAR_FAILURE_TYPE:
        write_type(failure, out);
        break;
    case CEDAR_FAILURE_ATTRIBUTE:
        buffer_append_text(out, "there is no attribute ");
        buffer_append_json_string(out, failure->name);
        break;
    case CEDAR_FAILURE_VARIANT:
        buffer_append_text(out, failure->name.length
                                    ? "another attribute differs only by case or look from "
                                    : "attributes of the two differ only by case or look");
        if (failure->name.length)
            buffer_append_json_string(out, failure->name);
        break;
    case CEDAR_FAILURE_TAG:
        buffer_append_text(out, "the entity has no such tag");
        break;
    case CEDAR_FAILURE_ENTITY:
        buffer_append_text(out, "the entity with this attribute or tag does not exist");
        break;
    case CEDAR_FAILURE_OVERFLOW:
        buffer_append_text(out, "the result does not fit into 64 bits");
        break;
    case CEDAR_FAILURE_CALL:
        buffer_append_format(out, "%.*s refuses its argument", STR_ARGS(failure->name));
        break;
    case CEDAR_FAILURE_ARITY:
        buffer_append_format(out, "%.*s takes another number of arguments",
                             STR_ARGS(failure->name));
        break;
    case CEDAR_FAILURE_BUDGET:
        buffer_append_text(out, "too much work for one decision");
        break;
    case CEDAR_FAILURE_DEPTH:
        buffer_append_format(out, "sets and records nest deeper than %d levels",
                             CEDAR_MAX_VALUE_DEPTH);
        break;
    case CEDAR_FAILURE_UNKNOWN:
        buffer_append_text(out, "it depends on ");
        buffer_append_json_string(out, failure->name);
        buffer_append_text(out, ", which is not known");
        break;
    }
}

struct cedar_position cedar_failure_position(const struct cedar_failure *failure)
{
    return source_position(failure->policy->source, failure->offset);
}

/* datetime: YYYY-MM-DD, optionally with THH:MM:SS, milliseconds, and Z or an offset, as
 * milliseconds since 1970 by the Gregorian calendar reckoned backwards. */

static size_t digits_count(struct str text, size_t most);

/* Reads as many digits as `width` at *position and moves on. */
static bool extension_read_number(struct str text, size_t *position, size_t width, int *number)
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
    if (!extension_read_number(text, position, 4, &year) || !read_char(text, position, '-') ||
        !extension_read_number(text, position, 2, &month) || !read_char(text, position, '-') ||
        !extension_read_number(text, position, 2, &day))
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
    if (!extension_read_number(text, position, 2, &hours) ||
        !extension_read_number(text, position, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *seconds = (int64_t)(hours * 60 + minutes) * (behind ? -60 : 60);
    return true;
}

static bool extension_parse_datetime(struct str text, int64_t *ms)
{
    size_t position = 0;
    int64_t days, ahead;
    if (text.length == 0 || !read_date(text, &position, &days))
        return false;
    *ms = days * 86400000;
    if (position == text.length)
        return true;
    int hour, minute, second, fraction = 0;
    if (!read_char(text, &position, 'T') || !extension_read_number(text, &position, 2, &hour) ||
        !read_char(text, &position, ':') || !extension_read_number(text, &position, 2, &minute) ||
        !read_char(text, &position, ':') || !extension_read_number(text, &position, 2, &second))
        return false;
    if (read_char(text, &position, '.') && !extension_read_number(text, &position, 3, &fraction))
        return false;
    if (!read_offset(text, &position, &ahead) || position != text.length)
        return false;
    /* A leap second is no time of day here. */
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *ms += ((int64_t)(hour * 60 + minute) * 60 + second - ahead) * 1000 + fraction;
    return true;
}

/* duration: days, hours, minutes, seconds and milliseconds, in this order, each at most once. */

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
static bool extension_add(int64_t *sum, uint64_t amount, int64_t unit, bool negative)
{
    /* As a negative number: the smallest 64-bit number can be written in milliseconds. */
    if (amount > (uint64_t)INT64_MAX + (negative && unit == 1))
        return false;
    int64_t part = (int64_t)(0 - amount);
    return !__builtin_mul_overflow(part, unit, &part) &&
           !(negative ? __builtin_add_overflow(*sum, part, sum)
                      : __builtin_sub_overflow(*sum, part, sum));
}

static bool extension_parse_duration(struct str text, int64_t *ms)
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
        if (unit == UNIT_COUNT || !extension_add(&sum, amount, units[unit].ms, negative))
            return false;
    }
    *ms = sum;
    return true;
}

/* ipaddr: an IPv4 or IPv6 address or range. Stricter than inet_pton: no leading zeros in
 * IPv4, no IPv4 inside IPv6, no zone. */

#define LONGEST_TEXT 43
#define GROUPS 8

static bool ip_read_char(struct str *text, char expected)
{
    if (text->length == 0 || text->bytes[0] != expected)
        return false;
    *text = str_slice(text->bytes + 1, text->length - 1);
    return true;
}

static bool read_octet(struct str *text, unsigned char *octet)
{
    size_t digits = digits_count(*text, 3);
    if (digits == 0 || (digits > 1 && text->bytes[0] == '0'))
        return false;
    unsigned number = 0;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (unsigned)(text->bytes[i] - '0');
    if (number > 255)
        return false;
    *octet = (unsigned char)number;
    *text = str_slice(text->bytes + digits, text->length - digits);
    return true;
}

static bool parse_v4(struct str text, unsigned char bytes[16])
{
    for (int i = 0; i < 4; i++)
        if ((i > 0 && !ip_read_char(&text, '.')) || !read_octet(&text, &bytes[i]))
            return false;
    return text.length == 0;
}

/* Reads up to `most` groups of one to four hexadecimal digits, joined by ":". The text
 * after the last good group stays in `text`. */
static int extension_read_groups(struct str *text, int most, unsigned groups[GROUPS])
{
    int count = 0;
    while (count < most) {
        struct str rest = *text;
        if (count > 0 && !ip_read_char(&rest, ':'))
            break;
        unsigned group = 0;
        size_t digits = 0;
        for (; digits < 4 && digits < rest.length && str_hex_digit(rest.bytes[digits]) >= 0;
             digits++)
            group = group * 16 + (unsigned)str_hex_digit(rest.bytes[digits]);
        if (digits == 0)
            break;
        groups[count++] = group;
        *text = str_slice(rest.bytes + digits, rest.length - digits);
    }
    return count;
}

static bool parse_v6(struct str text, unsigned char bytes[16])
{
    unsigned groups[GROUPS] = {0}, behind[GROUPS] = {0};
    int head = extension_read_groups(&text, GROUPS, groups);
    if (head < GROUPS) {
        if (!ip_read_char(&text, ':') || !ip_read_char(&text, ':'))
            return false;
        /* "::" stands for at least one group. */
        int tail = extension_read_groups(&text, GROUPS - 1 - head, behind);
        for (int i = 0; i < tail; i++)
            groups[GROUPS - tail + i] = behind[i];
    }
    for (size_t i = 0; i < GROUPS; i++) {
        bytes[2 * i] = (unsigned char)(groups[i] >> 8);
        bytes[2 * i + 1] = (unsigned char)(groups[i] & 0xff);
    }
    return text.length == 0;
}

static bool parse_prefix(struct str text, unsigned most, unsigned char *prefix)
{
    size_t digits = digits_count(text, 3);
    if (digits == 0 || digits != text.length || (digits > 1 && text.bytes[0] == '0'))
        return false;
    unsigned number = 0;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (unsigned)(text.bytes[i] - '0');
    *prefix = (unsigned char)number;
    return number <= most;
}

static bool extension_parse_ip(struct str text, struct cedar_ip *ip)
{
    *ip = (struct cedar_ip){.prefix = 32};
    struct str address, prefix;
    if (text.length > LONGEST_TEXT)
        return false;
    bool ranged = str_cut(text, '/', &address, &prefix);
    if (!parse_v4(address, ip->bytes)) {
        memset(ip->bytes, 0, sizeof ip->bytes);
        ip->v6 = true;
        ip->prefix = 128;
        if (!parse_v6(address, ip->bytes))
            return false;
    }
    return !ranged || parse_prefix(prefix, ip->v6 ? 128 : 32, &ip->prefix);
}

static bool ip_is_loopback(const struct cedar_ip *ip)
{
    static const unsigned char loopback[16] = {[15] = 1};
    if (!ip->v6)
        return ip->bytes[0] == 127 && ip->prefix >= 8;
    return ip->prefix == 128 && memcmp(ip->bytes, loopback, sizeof loopback) == 0;
}

static bool ip_is_multicast(const struct cedar_ip *ip)
{
    if (!ip->v6)
        return ip->bytes[0] >> 4 == 0xe && ip->prefix >= 4;
    return ip->bytes[0] == 0xff && ip->prefix >= 8;
}

/* Whether every address of `inner` is one of `outer`. */
static bool ip_is_in_range(const struct cedar_ip *inner, const struct cedar_ip *outer)
{
    if (inner->v6 != outer->v6 || inner->prefix < outer->prefix)
        return false;
    size_t whole = outer->prefix / 8;
    if (memcmp(inner->bytes, outer->bytes, whole) != 0)
        return false;
    unsigned rest = outer->prefix % 8;
    return rest == 0 || (inner->bytes[whole] ^ outer->bytes[whole]) >> (8 - rest) == 0;
}

/* decimal: a fixed point number with up to four digits behind the point, and the reading of
 * digits that all these types share. */

#define FRACTION_DIGITS 4

/* Digits at the front of `text`, at most `most`; none is allowed. */
static size_t digits_count(struct str text, size_t most)
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

/* The texts of the four types, each by the language's own grammar. */
/* -?DIGITS.DIGITS, nothing before or behind. */
static bool extension_parse_decimal(struct str text, int64_t *ten_thousandths)
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

#define MS_PER_SECOND INT64_C(1000)
#define MS_PER_MINUTE (60 * MS_PER_SECOND)
#define MS_PER_HOUR (60 * MS_PER_MINUTE)
#define MS_PER_DAY (24 * MS_PER_HOUR)

static bool give_number(enum cedar_kind kind, int64_t number, struct cedar_value *result)
{
    *result = (struct cedar_value){.kind = kind, .number = number};
    return true;
}

static bool give_bool(bool value, struct cedar_value *result)
{
    *result = cedar_bool(value);
    return true;
}

#define CALL(function)                                                                             \
    static bool function(const struct extension *own, struct arena *arena,                         \
                         const struct cedar_value *arguments, struct cedar_value *result)

CALL(call_parse)
{
    int64_t number;
    return own->parse(arguments->text, &number) && give_number(own->gives, number, result);
}

CALL(call_ip)
{
    struct cedar_ip parsed;
    if (!extension_parse_ip(arguments->text, &parsed))
        return false;
    struct cedar_ip *ip = arena_alloc(arena, sizeof *ip);
    *ip = parsed;
    *result = (struct cedar_value){.kind = CEDAR_IP, .ip = ip};
    return true;
}

CALL(call_is_ipv4)
{
    return give_bool(!arguments->ip->v6, result);
}

CALL(call_is_ipv6)
{
    return give_bool(arguments->ip->v6, result);
}

CALL(call_is_loopback)
{
    return give_bool(ip_is_loopback(arguments->ip), result);
}

CALL(call_is_multicast)
{
    return give_bool(ip_is_multicast(arguments->ip), result);
}

CALL(call_is_in_range)
{
    return give_bool(ip_is_in_range(arguments[0].ip, arguments[1].ip), result);
}

CALL(call_compare)
{
    int64_t left = arguments[0].number, right = arguments[1].number;
    bool holds = left == right ? own->equal : left < right ? own->less : own->greater;
    return give_bool(holds, result);
}

CALL(call_offset)
{
    int64_t ms;
    return !__builtin_add_overflow(arguments[0].number, arguments[1].number, &ms) &&
           give_number(CEDAR_DATETIME, ms, result);
}

CALL(call_duration_since)
{
    int64_t ms;
    return !__builtin_sub_overflow(arguments[0].number, arguments[1].number, &ms) &&
           give_number(CEDAR_DURATION, ms, result);
}

/* Milliseconds since midnight, before 1970 too. */
static int64_t time_of_day(int64_t ms)
{
    int64_t rest = ms % MS_PER_DAY;
    return rest < 0 ? rest + MS_PER_DAY : rest;
}

CALL(call_to_date)
{
    int64_t ms;
    return !__builtin_sub_overflow(arguments->number, time_of_day(arguments->number), &ms) &&
           give_number(CEDAR_DATETIME, ms, result);
}

CALL(call_to_time)
{
    return give_number(CEDAR_DURATION, time_of_day(arguments->number), result);
}

CALL(call_count)
{
    return give_number(CEDAR_LONG, arguments->number / own->unit, result);
}

#define NAMED(text) .name = {text, sizeof(text) - 1}
#define FUNCTION(text, function)                                                                   \
    NAMED(text), .arity = 1, .takes = {CEDAR_STRING}, .call = (function)
#define METHOD(text, kind, function)                                                               \
    NAMED(text), .method = true, .arity = 1, .takes = {kind}, .call = (function)
#define METHOD_OF_TWO(text, kind, other, function)                                                 \
    NAMED(text), .method = true, .arity = 2, .takes = {kind, other}, .call = (function)
#define COMPARISON(text) METHOD_OF_TWO(text, CEDAR_DECIMAL, CEDAR_DECIMAL, call_compare)
#define COUNT_OF(text, ms) METHOD(text, CEDAR_DURATION, call_count), .unit = (ms)

static const struct extension extensions[] = {
    {FUNCTION("ip", call_ip)},
    {FUNCTION("decimal", call_parse), .parse = extension_parse_decimal, .gives = CEDAR_DECIMAL},
    {FUNCTION("datetime", call_parse), .parse = extension_parse_datetime, .gives = CEDAR_DATETIME},
    {FUNCTION("duration", call_parse), .parse = extension_parse_duration, .gives = CEDAR_DURATION},
    {METHOD("isIpv4", CEDAR_IP, call_is_ipv4)},
    {METHOD("isIpv6", CEDAR_IP, call_is_ipv6)},
    {METHOD("isLoopback", CEDAR_IP, call_is_loopback)},
    {METHOD("isMulticast", CEDAR_IP, call_is_multicast)},
    {METHOD_OF_TWO("isInRange", CEDAR_IP, CEDAR_IP, call_is_in_range)},
    {COMPARISON("lessThan"), .less = true},
    {COMPARISON("lessThanOrEqual"), .less = true, .equal = true},
    {COMPARISON("greaterThan"), .greater = true},
    {COMPARISON("greaterThanOrEqual"), .greater = true, .equal = true},
    {METHOD_OF_TWO("offset", CEDAR_DATETIME, CEDAR_DURATION, call_offset)},
    {METHOD_OF_TWO("durationSince", CEDAR_DATETIME, CEDAR_DATETIME, call_duration_since)},
    {METHOD("toDate", CEDAR_DATETIME, call_to_date)},
    {METHOD("toTime", CEDAR_DATETIME, call_to_time)},
    {COUNT_OF("toMilliseconds", 1)},
    {COUNT_OF("toSeconds", MS_PER_SECOND)},
    {COUNT_OF("toMinutes", MS_PER_MINUTE)},
    {COUNT_OF("toHours", MS_PER_HOUR)},
    {COUNT_OF("toDays", MS_PER_DAY)},
};

const struct extension *extension_find(struct str name)
{
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
        if (str_equal(extensions[i].name, name))
            return &extensions[i];
    return NULL;
}

bool extension_call(const struct extension *extension, struct arena *arena,
                    const struct cedar_value *arguments, size_t count, struct cedar_value *result,
                    struct cedar_failure *failure)
{
    *failure = (struct cedar_failure){.name = extension->name};
    if (count != extension->arity) {
        failure->code = CEDAR_FAILURE_ARITY;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (arguments[i].kind == extension->takes[i])
            continue;
        failure->code = CEDAR_FAILURE_TYPE;
        failure->expected = 1U << extension->takes[i];
        failure->found = arguments[i].kind;
        return false;
    }
    failure->code = CEDAR_FAILURE_CALL;
    return extension->call(extension, arena, arguments, result);
}

bool cedar_call(struct cedar_heap *heap, struct str function, const struct cedar_value *arguments,
                size_t count, struct cedar_value *result, struct error *error)
{
    const struct extension *extension = extension_find(function);
    if (!extension)
        return error_set(error, "there is no function \"%.*s\"", STR_ARGS(function));
    struct cedar_failure failure;
    if (extension_call(extension, &heap->arena, arguments, count, result, &failure))
        return true;
    OWNED_BUFFER(message);
    cedar_failure_write(&failure, &message);
    error_set(error, "%.*s", STR_ARGS(buffer_str(&message)));
    return false;
}
