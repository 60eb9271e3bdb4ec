/*
 * Dot paths into a JSON value: "card.number" is the member `number` of the member `card`. A path
 * goes through the elements of an array, each of which it fits. Any thread.
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

/* Writes `value`, which json_check() has accepted, without the members at the paths. They may be
 * missing there. Its time is that of the text, once for each segment of the longest path. */
void json_write_without_paths(struct buffer *out, struct str value, char *const *paths,
                              size_t count);
