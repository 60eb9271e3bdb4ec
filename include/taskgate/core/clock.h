/*
 * Time. Wall-clock milliseconds are stored and shown; monotonic ones measure and drive timers. Any
 * thread.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "taskgate/core/str.h"

#define CLOCK_TEXT_BYTES 32

/* Milliseconds since 1970-01-01T00:00:00Z. */
int64_t clock_now_ms(void);
/* Milliseconds (microseconds) of a clock that never goes back; its zero has no meaning. */
int64_t clock_monotonic_ms(void);
int64_t clock_monotonic_us(void);
/* A condition with timed waits by that clock, and the time until which to wait. With the wall
 * clock a wait would last an hour longer if that clock is set back by an hour. */
void clock_condition_init(pthread_cond_t *condition);
struct timespec clock_monotonic_until(int64_t monotonic_ms);
/* "2026-01-12T22:30:00.000Z" into `text`; returns it. RFC 3339, whose years
 * have four digits: a moment outside them becomes the first or the last. */
const char *clock_format(int64_t wall_ms, char text[CLOCK_TEXT_BYTES]);
