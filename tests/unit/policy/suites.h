/* The cases of the policy tests, one file each. */
#pragma once

#include <check.h>

TCase *decide_case(void);
TCase *engine_case(void);
TCase *engine_load_case(void);
TCase *index_case(void);
TCase *matrices_case(void);
TCase *uri_case(void);
TCase *verdict_case(void);
