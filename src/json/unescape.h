/* The text that a checked JSON string stands for. */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* `raw` is what stands between the quotes. */
void unescape_append(struct buffer *out, struct str raw);
bool unescape_equals(struct str raw, struct str text);
