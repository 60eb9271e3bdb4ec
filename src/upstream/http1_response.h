/*
 * A response read strictly from bytes as they come, whatever the pieces. Knows no sockets
 * and keeps no bytes: what a step does not use is given again, with more behind it.
 *
 * Refused, because two readers could understand them in two ways: Transfer-Encoding beside
 * Content-Length or other than "chunked", lengths that differ or are no numbers, folded
 * headers, lines that end without CR LF, control characters; and what is larger than any
 * head that makes sense.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "taskgate/http/server.h"

/*
 * The chunked coding of a body (RFC 9112 §7.1), taken off piece by piece.
 *
 * Stricter than picohttpparser's decoder, which takes bare line feeds, anything after a
 * chunk's size, and extensions and trailers without end.
 */

enum http1_chunks_state {
    HTTP1_CHUNKS_SIZE, /* the first: a zeroed struct */
    HTTP1_CHUNKS_SIZE_SPACE,
    HTTP1_CHUNKS_EXTENSION,
    HTTP1_CHUNKS_SIZE_LF,
    HTTP1_CHUNKS_DATA,
    HTTP1_CHUNKS_DATA_CR,
    HTTP1_CHUNKS_DATA_LF,
    HTTP1_CHUNKS_TRAILER,
    HTTP1_CHUNKS_TRAILER_LINE,
    HTTP1_CHUNKS_TRAILER_LF,
    HTTP1_CHUNKS_END_LF,
    HTTP1_CHUNKS_DONE,
    HTTP1_CHUNKS_BROKEN,
};

struct http1_chunks {
    enum http1_chunks_state state;
    uint64_t left;   /* of the chunk's data; its size while that is read */
    uint32_t digits; /* of the size */
    uint32_t extra;  /* bytes of this extension, or of all trailers */
};

/* Takes the coding off: data is moved to the front of `bytes`, and its length returned.
 * `used` is `length` but after the end, or before what is wrong. */
size_t http1_chunks_decode(struct http1_chunks *chunks, char *bytes, size_t length, size_t *used);

#define HTTP1_MAX_HEADERS 256
#define HTTP1_MAX_HEAD_BYTES ((size_t)64 * 1024)

struct http1_head {
    int status;
    size_t count;
    struct http_header headers[HTTP1_MAX_HEADERS]; /* views; names in lower case */
};

enum http1_event {
    HTTP1_MORE,   /* nothing without more bytes */
    HTTP1_HEAD,   /* of the final response; `head` is filled */
    HTTP1_BODY,   /* `body` is the next piece, at least a byte */
    HTTP1_END,    /* the response is complete; bytes behind it are not used */
    HTTP1_BROKEN, /* `fault` says why; nothing comes after */
};

struct http1_step {
    enum http1_event event;
    size_t used;
    struct str body;
};

struct http1_response {
    enum {
        HTTP1_IN_HEAD, /* the first: a zeroed struct */
        HTTP1_IN_SIZED_BODY,
        HTTP1_IN_CHUNKS,
        HTTP1_IN_ENDLESS_BODY, /* its end is the connection's */
        HTTP1_COMPLETE,
        HTTP1_FAILED,
    } place;
    bool keeps_alive;     /* the connection, once the response is complete */
    size_t looked_at;     /* bytes of a head that is not complete */
    size_t interim_bytes; /* heads of 1xx responses before the final one */
    uint64_t left;        /* of a sized body */
    struct http1_chunks chunks;
    const char *fault;
};

/* Does one step over `bytes`, which it may change. */
struct http1_step http1_response_read(struct http1_response *response, struct http1_head *head,
                                      char *bytes, size_t length);
/* The connection ended: HTTP1_END when that is the body's end, else HTTP1_BROKEN. */
enum http1_event http1_response_close(struct http1_response *response);
/* Whether what is still to come belongs to the body. */
bool http1_response_is_in_body(const struct http1_response *response);
