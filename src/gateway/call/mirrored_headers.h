/*
 * The headers of a modern request that repeat its body, as they travel: those of a call that
 * becomes a task are kept as text beside its body, and sent with it. Any thread.
 */
#pragma once

#include "headers.h"

/* Appends a line "name:value\n" for each, byte for byte. Neither has a line break. */
void mirrored_headers_write(const struct http_exchange *exchange, struct buffer *lines);
/* Puts those of the lines in the place of all that `headers` (owning) has. */
void mirrored_headers_restore(struct headers *headers, struct str lines);
/* The same of headers that the gateway has made. */
void mirrored_headers_write_made(const struct headers *headers, struct buffer *lines);
/* Those of a request of the gateway's own. `name` is what its body names, or empty. */
void mirrored_headers_set(struct headers *headers, const char *method, struct str name);
