/*
 * Assertions: what the code relies on, and what a reader could doubt. They are on in every build.
 * One that fails ends the process, because to go on would be to answer or to store something
 * wrong: it writes one line to stderr that says where, what, the values and what to report
 * (docs/operating.md, "A failed assertion"), and aborts.
 *
 * Input never fails one: what a client, a server, a file or the system may do wrong is an error.
 */
#pragma once

#include <stdbool.h>

#define ASSERT(condition)                                                                          \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            assert_failed(__FILE__, __LINE__, __func__, #condition);                               \
    } while (0)

/* ASSERT(a op b) of integers, and says both. Where it fails, they are evaluated once more. */
#define ASSERT_NUMBERS(a, op, b)                                                                   \
    do {                                                                                           \
        if (__builtin_expect(!((a)op(b)), 0))                                                      \
            assert_numbers_failed(__FILE__, __LINE__, __func__, #a " " #op " " #b, (long long)(a), \
                                  (long long)(b));                                                 \
    } while (0)

/* Async-signal-safe. Cold: no register is saved for them on the path where the condition holds. */
_Noreturn __attribute__((cold)) void assert_failed(const char *file, int line, const char *function,
                                                   const char *condition);
_Noreturn __attribute__((cold)) void assert_numbers_failed(const char *file, int line,
                                                           const char *function,
                                                           const char *condition, long long a,
                                                           long long b);
