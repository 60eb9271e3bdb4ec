/* A loop for a test, and rounds until something has happened. */
#pragma once

#include <check.h>

#include "taskgate/core/clock.h"
#include "taskgate/loop/loop.h"

TCase *edges_case(void);
TCase *timers_case(void);

static inline struct loop *create_loop(void)
{
    struct error error = {""};
    struct loop *loop = loop_create(&error);
    ck_assert_msg(loop != NULL, "%s", error.message);
    return loop;
}

static inline void run_until(struct loop *loop, const int *count, int wanted)
{
    int64_t give_up_ms = clock_monotonic_ms() + 5000;
    while (*count < wanted && clock_monotonic_ms() < give_up_ms)
        loop_run_once(loop, 100);
    ck_assert_int_eq(*count, wanted);
}
