/*
 * The test cases of the upstream layer, one file each.
 */
#pragma once

#include <check.h>

TCase *message_tests(void);
TCase *failure_tests(void);
TCase *control_tests(void);
TCase *running_tests(void);
TCase *response_tests(void);
TCase *pool_tests(void);
TCase *reuse_tests(void);
TCase *owner_tests(void);
TCase *curl_tests(void);
