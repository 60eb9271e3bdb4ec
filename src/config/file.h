/*
 * Reading a whole file, and knowing later whether it is still the same.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/config/config.h"
#include "taskgate/core/buffer.h"

/* Appends the file's content to `text` and fills `file` (but for its path) with the
 * facts of the version that was read. False with errno. */
bool file_read(const char *path, struct buffer *text, struct config_file *file);
