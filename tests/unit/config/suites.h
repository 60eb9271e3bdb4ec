/* The cases of the config tests, one file each. */
#pragma once

#include <check.h>

TCase *clocks_case(void);
TCase *environment_case(void);
TCase *findings_behind_case(void);
TCase *findings_case(void);
TCase *glob_case(void);
TCase *glob_work_case(void);
TCase *load_case(void);
TCase *memory_case(void);
TCase *memory_groups_case(void);
TCase *otel_case(void);
TCase *pseudo_case(void);
TCase *robustness_case(void);
TCase *search_case(void);
TCase *secure_url_case(void);
TCase *shadow_case(void);
TCase *slack_case(void);
TCase *store_case(void);
TCase *summary_case(void);
TCase *values_case(void);
