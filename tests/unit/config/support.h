/* Shared by the tests of the configuration: an environment of their own, and a function that
 * loads a text and compares all messages. */
#pragma once

#include <stdbool.h>

#include "taskgate/config/config.h"

/* Replaces the environment that test_getenv() shows: "NAME=value" pairs, NULL at the end. */
void test_environment(const char *const *pairs);
const char *test_getenv(const char *name);

/* A file that is valid and says no more than it must. */
extern const char minimal[];
/* The minimal file with `more` behind it. The caller frees. */
char *with(const char *more);

/* Loads `text` as "t.yaml" and expects exactly `problems`, as config_problems_write() puts
 * them. NULL when the load failed. */
struct config *expect_load(const char *text, const char *problems);
/* As above, and releases the configuration; the load must fail exactly if `problems` has a
 * line without "warning: ". */
void expect_problems(const char *text, const char *problems);
