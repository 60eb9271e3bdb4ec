/* The suites of the json layer and their shared functions. */
#pragma once

#include <check.h>

#include "taskgate/core/str.h"

Suite *canonical_suite(void);
Suite *differential_suite(void);
Suite *envelope_suite(void);
Suite *executable_suite(void);
Suite *fold_suite(void);
Suite *refusal_suite(void);
Suite *text_suite(void);

void expect_str(struct str actual, const char *expected);
/* A copy without a byte to spare, so that a read beyond the end is caught. Free the bytes. */
struct str exact_copy(struct str text);
