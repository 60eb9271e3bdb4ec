/* Wall clock, monotonic clock, RFC 3339. */
#include "taskgate/core/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_now_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_monotonic_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_monotonic_us(void)
{
    return read_us(CLOCK_MONOTONIC);
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

const char *clock_format(int64_t wall_ms, char text[CLOCK_TEXT_BYTES])
{
    int64_t ms = wall_ms % 1000;
    time_t seconds = (time_t)(wall_ms / 1000);
    if (ms < 0) {
        ms += 1000;
        seconds--;
    }
    struct tm parts;
    char day[24];
    gmtime_r(&seconds, &parts);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, CLOCK_TEXT_BYTES, "%s.%03dZ", day, (int)ms);
    return text;
}
