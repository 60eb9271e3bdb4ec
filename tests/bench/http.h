/* The little of HTTP that a program with a fixed answer, and one with a fixed question, need. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The end of the head (behind its empty line) in `length` bytes, 0 when it is not there. */
static inline size_t http_head_end(const char *bytes, size_t length)
{
    const char *end = length ? memmem(bytes, length, "\r\n\r\n", 4) : NULL;
    return end ? (size_t)(end - bytes) + 4 : 0;
}

/* The value of a header in a whole head, at its first byte; NULL when there is none. */
static inline const char *http_find(const char *head, size_t length, const char *name)
{
    const size_t name_length = strlen(name);
    const char *at = head, *end = head + length;
    while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        at++;
        if ((size_t)(end - at) > name_length && at[name_length] == ':' &&
            strncasecmp(at, name, name_length) == 0) {
            at += name_length + 1;
            while (*at == ' ')
                at++;
            return at;
        }
    }
    return NULL;
}

/* The body's length; -1 when it is chunked. */
static inline long http_body_length(const char *head, size_t length)
{
    const char *value = http_find(head, length, "content-length");
    if (value)
        return strtol(value, NULL, 10);
    value = http_find(head, length, "transfer-encoding");
    return value ? -1 : 0;
}
