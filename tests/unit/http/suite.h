/*
 * The test cases of the http layer, one file each.
 */
#pragma once

#include <check.h>

TCase *request_tests(void);
TCase *response_tests(void);
TCase *departure_tests(void);
TCase *stream_tests(void);
TCase *server_tests(void);
TCase *guard_tests(void);
TCase *tls_tests(void);
