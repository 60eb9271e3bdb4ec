/* Assertions that fail. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suites.h"
#include "taskgate/core/assert.h"

/* The line that a process writes that runs `fails`, and the signal that ends it. */
static int end_of(void (*fails)(void), char line[1024])
{
    int ends[2], status;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ne(child, -1);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        fails();
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], line, 1023);
    ck_assert_int_ge(length, 0);
    line[length] = '\0';
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void fail_plainly(void)
{
    const char *door = NULL;
    ASSERT(door != NULL);
}

static void fail_with_numbers(void)
{
    size_t length = 7;
    int limit = -3;
    ASSERT_NUMBERS((long)length, <=, limit);
}

static int calls;

static int count(void)
{
    return ++calls;
}

START_TEST(a_failed_assertion_says_where_and_what_and_stops)
{
    char line[1024];
    ck_assert_int_eq(end_of(fail_plainly, line), SIGABRT);
    ck_assert_str_eq(line, "taskgate " TASKGATE_VERSION
                           ": assertion failed: door != NULL, in fail_plainly()"
                           " at tests/unit/core/assert_suite.c:36;"
                           " please report this line and the log before it\n");
}
END_TEST

START_TEST(one_of_numbers_says_both)
{
    char line[1024];
    ck_assert_int_eq(end_of(fail_with_numbers, line), SIGABRT);
    ck_assert_ptr_nonnull(
        strstr(line, ": assertion failed: (long)length <= limit (7 and -3), in "));
}
END_TEST

START_TEST(one_that_holds_evaluates_once_and_says_nothing)
{
    ASSERT(count() == 1);
    ASSERT_NUMBERS(count(), ==, 2);
    ck_assert_int_eq(calls, 2);
}
END_TEST

TCase *assert_case(void)
{
    TCase *tests = tcase_create("assert");
    tcase_add_test(tests, a_failed_assertion_says_where_and_what_and_stops);
    tcase_add_test(tests, one_of_numbers_says_both);
    tcase_add_test(tests, one_that_holds_evaluates_once_and_says_nothing);
    return tests;
}
