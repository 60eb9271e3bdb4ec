/* The cases of the config tests, one file each. */
#pragma once

#include <check.h>

TCase *load_case(void);
