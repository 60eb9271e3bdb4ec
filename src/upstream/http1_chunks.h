/*
 * The chunked coding of a body (RFC 9112 §7.1), taken off piece by piece.
 *
 * Stricter than picohttpparser's decoder, which takes bare line feeds, anything after a
 * chunk's size, and extensions and trailers without end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
