/*
 * The cursors of the merged tasks/list: opaque to clients, strict when they come back. They are
 * base64 of JSON; what is inside is the gateway's own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/str.h"

struct cursor {
    bool upstream;         /* ours are all listed; upstream's are on */
    int64_t sequence;      /* ours: only older rows than this; 0 from the newest */
    struct buffer wrapped; /* upstream's own cursor as JSON text, empty for its first page */
    uint64_t skip;         /* entries of that page which were listed already */
};

void cursor_init(struct cursor *cursor);
void cursor_finish(struct cursor *cursor);
/* Writes the JSON string of the cursor, with its quotes. */
void cursor_write(const struct cursor *cursor, struct buffer *out);
/* False for anything that cursor_write() has not made. */
bool cursor_read(struct cursor *cursor, struct str text);
