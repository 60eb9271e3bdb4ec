/* The growth of costs: CPU time of the thread, the least of several runs, compared with the same on
 * another input. Other load of the machine affects neither. */
#pragma once

#include <check.h>
#include <time.h>

#define SCALING_RUNS 5

static inline double scaling_cost(void (*run)(void *input), void *input)
{
    double least = 0;
    for (int i = 0; i < SCALING_RUNS; i++) {
        struct timespec before, after;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        run(input);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        double cost =
            (double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec);
        if (i == 0 || cost < least)
            least = cost;
    }
    return least + 1000; /* a microsecond, so that nothing is divided by zero */
}

/* Checks that `much` costs at most `most` times as much as `little`: with four times the input 4 is
 * linear and 16 is square, and 8 is between them. */
#define expect_scaling(run, little, much, most)                                                    \
    do {                                                                                           \
        double less = scaling_cost(run, little), more = scaling_cost(run, much);                   \
        ck_assert_msg(more <= less * (most), "%.0f ns became %.0f ns", less, more);                \
    } while (0)
