/*
 * The property of a tool's arguments in which an agent says why it makes the call. The gateway adds
 * it to the schema that a client sees, and takes it out of the call. Any thread; nothing is owned.
 */
#pragma once

#include <stdbool.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

#define REASON_PROPERTY "taskgate_reason"
/* In characters, after trimming. */
#define REASON_PROPERTY_LEAST 10
#define REASON_PROPERTY_MOST 500

/* Whether `schema`, an inputSchema as JSON text, is an object's and has no such property. */
bool reason_property_fits(struct str schema);
/* Writes a schema that fits with the property. */
void reason_property_write(struct buffer *out, struct str schema, bool is_required);

enum reason_property {
    REASON_PROPERTY_ABSENT,
    REASON_PROPERTY_GOOD,
    REASON_PROPERTY_BAD, /* no text, or of another length */
};
/* Reads it out of `arguments`, checked JSON text; decoded and trimmed into `reason` when it is
 * good. */
enum reason_property reason_property_read(struct str arguments, struct buffer *reason);
