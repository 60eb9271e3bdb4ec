/* The cases of the core tests, one file each. */
#pragma once

#include <check.h>

TCase *assert_case(void);
TCase *magic_case(void);
TCase *marks_case(void);
TCase *state_seal_case(void);
