/* Durations: humantime's and ISO-8601's spelling to milliseconds, and back. */
#include "taskgate/config/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)
#define WEEK_MS (7 * DAY_MS)
#define MONTH_MS INT64_C(2630016000) /* 30.44 days, as humantime has it */
#define YEAR_MS INT64_C(31557600000) /* 365.25 days */

/* A sum in two parts, so that fractions of a millisecond can cancel out. */
struct total {
    int64_t ms, ns;
};

static bool duration_add(struct total *total, uint64_t count, int64_t unit_ms, int64_t unit_ns)
{
    int64_t ms, ns;
    return count <= INT64_MAX && !__builtin_mul_overflow((int64_t)count, unit_ms, &ms) &&
           !__builtin_mul_overflow((int64_t)count, unit_ns, &ns) &&
           !__builtin_add_overflow(total->ms, ms, &total->ms) &&
           !__builtin_add_overflow(total->ns, ns, &total->ns);
}

static bool duration_finish(const struct total *total, int64_t *ms, struct error *error)
{
    if (total->ns % 1000000 != 0)
        return error_set(error, "the duration is finer than a millisecond");
    if (__builtin_add_overflow(total->ms, total->ns / 1000000, ms))
        return error_set(error, "the duration is too long");
    return true;
}

static bool duration_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool duration_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Cuts the leading run of characters that `belongs` accepts. */
static struct str take_while(struct str *rest, bool (*belongs)(char c))
{
    size_t length = 0;
    while (length < rest->length && belongs(rest->bytes[length]))
        length++;
    struct str taken = str_slice(rest->bytes, length);
    *rest = str_slice(rest->bytes + length, rest->length - length);
    return taken;
}

static const struct unit {
    const char *names; /* separated by spaces */
    int64_t ms, ns;
} units[] = {
    {"nanos nsec ns", 0, 1},
    {"micros usec us", 0, 1000},
    {"millis msec ms", 1, 0},
    {"seconds second secs sec s", SECOND_MS, 0},
    {"minutes minute mins min m", MINUTE_MS, 0},
    {"hours hour hrs hr h", HOUR_MS, 0},
    {"days day d", DAY_MS, 0},
    {"weeks week wks wk w", WEEK_MS, 0},
    {"months month M", MONTH_MS, 0},
    {"years year yrs yr y", YEAR_MS, 0},
};

static const struct unit *find_unit(struct str name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct str candidate, rest = str_from(units[i].names);
        do {
            str_cut(rest, ' ', &candidate, &rest);
            if (str_equal(candidate, name))
                return &units[i];
        } while (rest.length);
    }
    return NULL;
}

static bool parse_human(struct str text, int64_t *ms, struct error *error)
{
    struct total total = {0, 0};
    struct str rest = text;
    while (rest.length) {
        uint64_t count;
        struct str digits = take_while(&rest, duration_is_digit);
        if (digits.length == 0)
            return error_set(error, "a duration is numbers with units, such as 10m or 1h 30m");
        rest = str_trim(rest);
        struct str name = take_while(&rest, duration_is_letter);
        const struct unit *unit = find_unit(name);
        if (name.length == 0)
            return error_set(error, "the number has no unit, such as the m of 10m");
        if (!unit)
            return error_set(error, "the unit is none of ms, s, m, h, d, w, M, y");
        if (!str_to_u64(digits, &count) || !duration_add(&total, count, unit->ms, unit->ns))
            return error_set(error, "the duration is too long");
        rest = str_trim(rest);
    }
    return duration_finish(&total, ms, error);
}

/* In the order ISO-8601 demands; years and months have no fixed length there. */
static const struct iso_unit {
    char letter;
    bool is_time;
    int64_t ms;
} iso_units[] = {
    {'W', false, WEEK_MS},  {'D', false, DAY_MS},   {'H', true, HOUR_MS},
    {'M', true, MINUTE_MS}, {'S', true, SECOND_MS},
};
#define ISO_UNIT_COUNT (sizeof iso_units / sizeof *iso_units)

/* The ".25" of "1.25S", as nanoseconds of a second. */
static bool add_fraction(struct total *total, struct str digits)
{
    uint64_t count = 0;
    if (digits.length == 0 || digits.length > 9 || !str_to_u64(digits, &count))
        return false;
    for (size_t i = digits.length; i < 9; i++)
        count *= 10;
    return duration_add(total, count, 0, 1);
}

static bool parse_iso(struct str text, int64_t *ms, struct error *error)
{
    static const char malformed[] = "an ISO-8601 duration looks like PT10M or P1DT2H";
    struct total total = {0, 0};
    struct str rest = str_slice(text.bytes + 1, text.length - 1);
    bool in_time = false;
    size_t next = 0;
    if (rest.length == 0 || rest.bytes[rest.length - 1] == 'T')
        return error_set(error, malformed);
    while (rest.length) {
        if (rest.bytes[0] == 'T' && !in_time) {
            in_time = true;
            rest = str_slice(rest.bytes + 1, rest.length - 1);
        }
        uint64_t count;
        struct str digits = take_while(&rest, duration_is_digit), fraction = STR_EMPTY;
        bool has_fraction = rest.length && (rest.bytes[0] == '.' || rest.bytes[0] == ',');
        if (has_fraction) {
            rest = str_slice(rest.bytes + 1, rest.length - 1);
            fraction = take_while(&rest, duration_is_digit);
        }
        char letter = '\0';
        if (rest.length)
            letter = rest.bytes[0];
        while (next < ISO_UNIT_COUNT &&
               (iso_units[next].letter != letter || iso_units[next].is_time != in_time))
            next++;
        if (digits.length == 0 || next == ISO_UNIT_COUNT ||
            (has_fraction && (letter != 'S' || !add_fraction(&total, fraction))))
            return error_set(error, malformed);
        if (!str_to_u64(digits, &count) || !duration_add(&total, count, iso_units[next++].ms, 0))
            return error_set(error, "the duration is too long");
        rest = str_slice(rest.bytes + 1, rest.length - 1);
    }
    return duration_finish(&total, ms, error);
}

bool duration_parse(struct str text, int64_t *ms, struct error *error)
{
    text = str_trim(text);
    if (text.length == 0)
        return error_set(error, "the duration is empty");
    return text.bytes[0] == 'P' ? parse_iso(text, ms, error) : parse_human(text, ms, error);
}

void duration_format(int64_t ms, char text[64])
{
    static const struct {
        const char *name;
        int64_t ms;
    } parts[] = {{"d", DAY_MS}, {"h", HOUR_MS}, {"m", MINUTE_MS}, {"s", SECOND_MS}, {"ms", 1}};
    size_t used = 0;
    uint64_t left = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint64_t count = left / (uint64_t)parts[i].ms;
        left %= (uint64_t)parts[i].ms;
        if (count == 0)
            continue;
        const char *before = used ? " " : ms < 0 ? "-" : "";
        int written =
            snprintf(text + used, 64 - used, "%s%" PRIu64 "%s", before, count, parts[i].name);
        used += (size_t)written;
    }
    if (used == 0)
        memcpy(text, "0s", sizeof "0s");
}
