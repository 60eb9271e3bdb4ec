/* The formats that a text in a form may be asked to have. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/str.h"

/* `format` is JSON text. A format that is not one of the protocol's is had by every text. */
bool elicitation_has_format(struct str format, struct str text);
