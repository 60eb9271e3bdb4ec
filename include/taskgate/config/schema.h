/*
 * The configuration's keys for programs that know JSON Schema. Any thread; nothing is owned.
 */
#pragma once

#include "taskgate/core/buffer.h"

/* Appends the schema (draft 7) of a configuration file. It accepts whatever the reader accepts. */
void config_write_schema(struct buffer *out);
