/*
 * The difference of two texts for people: the lines that went ("-") and those that came ("+"). Of a
 * long line only what changed is written, with some of what is around it. Linear.
 */
#pragma once

#include "taskgate/core/buffer.h"

/* Writes at most `most` bytes. */
void difference_write(struct buffer *out, struct str before, struct str after, size_t most);
