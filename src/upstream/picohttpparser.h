/*
 * picohttpparser's reader of response heads as it stands in libh2o 2.2.5, which exports it
 * without a header.
 */
#pragma once

#include <stddef.h>

struct phr_header {
    const char *name; /* NULL: a line that continues the value before it */
    size_t name_len;
    const char *value; /* white space at its end included */
    size_t value_len;
};

/* Returns the length of the head, -2 when it is not yet complete, -1 when it is none.
 * `num_headers` is the capacity of `headers` before, their count after. `last_len` is how
 * much of `buf` an earlier call has seen: 0, or its `len`. */
int phr_parse_response(const char *buf, size_t len, int *minor_version, int *status,
                       const char **msg, size_t *msg_len, struct phr_header *headers,
                       size_t *num_headers, size_t last_len);
