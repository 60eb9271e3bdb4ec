/* Wall clock, monotonic clock, RFC 3339. */
#include "taskgate/core/clock.h"

#include <time.h>

/* In so many units a second. */
static int64_t read_clock(clockid_t id, int64_t units)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * units + now.tv_nsec / (1000000000 / units);
}

int64_t clock_now_ms(void)
{
    return read_clock(CLOCK_REALTIME, 1000);
}

int64_t clock_monotonic_ms(void)
{
    return read_clock(CLOCK_MONOTONIC, 1000);
}

int64_t clock_monotonic_us(void)
{
    return read_clock(CLOCK_MONOTONIC, 1000000);
}

void clock_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec clock_monotonic_until(int64_t monotonic_ms)
{
    return (struct timespec){.tv_sec = (time_t)(monotonic_ms / 1000),
                             .tv_nsec = (long)(monotonic_ms % 1000) * 1000000};
}

/* Writes digits and the text after them. */
static char *clock_put(char *to, int value, int digits, char behind)
{
    for (int i = digits - 1; i >= 0; i--, value /= 10)
        to[i] = (char)('0' + value % 10);
    to[digits] = behind;
    return to + digits + 1;
}

/* The first and the last moment with a year of four digits. */
#define FIRST_MS INT64_C(-62167219200000)
#define LAST_MS INT64_C(253402300799999)

/* By hand, because each line of the log has a time: strftime() takes ten times as long. */
const char *clock_format(int64_t wall_ms, char text[CLOCK_TEXT_BYTES])
{
    int64_t since_first = (wall_ms < FIRST_MS  ? FIRST_MS
                           : wall_ms > LAST_MS ? LAST_MS
                                               : wall_ms) -
                          FIRST_MS;
    time_t seconds = (time_t)(since_first / 1000 + FIRST_MS / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    char *to = clock_put(text, parts.tm_year + 1900, 4, '-');
    to = clock_put(to, parts.tm_mon + 1, 2, '-');
    to = clock_put(to, parts.tm_mday, 2, 'T');
    to = clock_put(to, parts.tm_hour, 2, ':');
    to = clock_put(to, parts.tm_min, 2, ':');
    to = clock_put(to, parts.tm_sec, 2, '.');
    to = clock_put(to, (int)(since_first % 1000), 3, 'Z');
    *to = '\0';
    return text;
}
