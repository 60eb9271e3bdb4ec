/* Colours for people: on a terminal alone, and never where NO_COLOR is set. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

/* The control sequence that begins the colour of a state of a task, bold text, or dim text. "" for
 * a state that is unknown, and where colours are off. Static texts. */
const char *colour_of_state(struct str state);
const char *colour_bold(void);
const char *colour_dim(void);
/* Ends it; "" where colours are off. */
const char *colour_end(void);
