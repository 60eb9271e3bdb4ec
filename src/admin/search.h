/* The search of operators: words that are all in what they see. Any thread. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

/* Whether `text` has each of `words`, which white space parts, in any case of ASCII letters. */
bool search_finds(const char *text, struct str words);
