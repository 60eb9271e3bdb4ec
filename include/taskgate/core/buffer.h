/*
 * A growing byte buffer. The holder of the struct owns the bytes. One thread at a time. A size that
 * does not fit into size_t ends the program, as memory that is used up does.
 */
#pragma once

#include "taskgate/core/str.h"

struct buffer {
    char *bytes;     /* owned; NULL until the first append */
    size_t length;   /* bytes in use */
    size_t capacity; /* bytes allocated */
};

void buffer_init(struct buffer *buffer);
void buffer_finish(struct buffer *buffer);
/* Empties it and keeps its memory. */
void buffer_clear(struct buffer *buffer);
/* Drops the first `count` bytes, moving the rest down. */
void buffer_drop(struct buffer *buffer, size_t count);
void buffer_reserve(struct buffer *buffer, size_t extra);
void buffer_append(struct buffer *buffer, struct str s);
/* `whole` with `text` in the place of `part`, which points into it (str_offset()). */
void buffer_append_replaced(struct buffer *buffer, struct str whole, struct str part,
                            struct str text);
/* Inline, so that the length of a literal is known when this is compiled. */
static inline void buffer_append_text(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, str_from(text));
}
void buffer_append_char(struct buffer *buffer, char c);
void buffer_append_format(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* As a JSON string with its quotes. Invalid UTF-8 becomes U+FFFD, control characters are
 * escaped, and so are bidirectional controls and U+2028/2029. Texts for people go through
 * core/visible.h. */
void buffer_append_json_string(struct buffer *buffer, struct str s);
/* Percent-encoded, but for letters, digits and "-._~" (RFC 3986 §2.3). */
void buffer_append_url_encoded(struct buffer *buffer, struct str s);
/* Decoded as in a form, where "+" is a blank; false for a broken "%xx". */
bool buffer_append_url_decoded(struct buffer *buffer, struct str s);
/* A view of the content, valid until the next change. */
struct str buffer_str(const struct buffer *buffer);
/* Gives the bytes away, NUL-terminated (the NUL is not counted), for the caller to free; the
 * buffer is empty afterwards. */
char *buffer_take(struct buffer *buffer, size_t *length);
