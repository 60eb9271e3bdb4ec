/*
 * The test cases of the gateway's parts that stand alone, one file each.
 */
#pragma once

#include <check.h>

TCase *authorization_tests(void);
TCase *call_counters_tests(void);
TCase *call_part_tests(void);
TCase *cursor_tests(void);
TCase *headers_tests(void);
TCase *list_cache_tests(void);
TCase *input_requests_tests(void);
TCase *quota_tests(void);
TCase *rate_limit_tests(void);
TCase *recorded_name_tests(void);
TCase *request_parts_tests(void);
TCase *server_budget_tests(void);
TCase *sessions_tests(void);
TCase *catalog_tests(void);
TCase *compat_tests(void);
