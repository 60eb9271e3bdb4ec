/*
 * One state per place between two chunks' data; each byte there is looked at once.
 */
#include "http1_chunks.h"

#include <stdbool.h>
#include <string.h>

#define MAX_SIZE_DIGITS 15 /* no sum of lengths overflows */
#define MAX_EXTENSION_BYTES 4096
#define MAX_TRAILER_BYTES 65536

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static enum http1_chunks_state after_size(struct http1_chunks *chunks, char c)
{
    if (c == '\r')
        return HTTP1_CHUNKS_SIZE_LF;
    if (c == ';')
        return HTTP1_CHUNKS_EXTENSION;
    return c == ' ' || c == '\t' ? HTTP1_CHUNKS_SIZE_SPACE : HTTP1_CHUNKS_BROKEN;
}

static enum http1_chunks_state in_size(struct http1_chunks *chunks, char c)
{
    int digit = hex_digit(c);
    if (digit < 0)
        return chunks->digits > 0 ? after_size(chunks, c) : HTTP1_CHUNKS_BROKEN;
    chunks->left = chunks->left * 16 + (unsigned)digit;
    return ++chunks->digits <= MAX_SIZE_DIGITS ? HTTP1_CHUNKS_SIZE : HTTP1_CHUNKS_BROKEN;
}

/* Of an extension or a trailer, which nobody reads: to the end of its line. */
static enum http1_chunks_state in_line(struct http1_chunks *chunks, char c, uint32_t most,
                                       enum http1_chunks_state same,
                                       enum http1_chunks_state line_end)
{
    if (c == '\r')
        return line_end;
    return is_control(c) || ++chunks->extra > most ? HTTP1_CHUNKS_BROKEN : same;
}

static enum http1_chunks_state after_line_feed(struct http1_chunks *chunks)
{
    switch (chunks->state) {
    case HTTP1_CHUNKS_SIZE_LF:
        chunks->digits = chunks->extra = 0;
        return chunks->left > 0 ? HTTP1_CHUNKS_DATA : HTTP1_CHUNKS_TRAILER;
    case HTTP1_CHUNKS_DATA_LF:
        return HTTP1_CHUNKS_SIZE;
    case HTTP1_CHUNKS_TRAILER_LF:
        return HTTP1_CHUNKS_TRAILER;
    default:
        return HTTP1_CHUNKS_DONE;
    }
}

static enum http1_chunks_state next(struct http1_chunks *chunks, char c)
{
    switch (chunks->state) {
    case HTTP1_CHUNKS_SIZE:
        return in_size(chunks, c);
    case HTTP1_CHUNKS_SIZE_SPACE:
        return ++chunks->extra <= MAX_EXTENSION_BYTES ? after_size(chunks, c) : HTTP1_CHUNKS_BROKEN;
    case HTTP1_CHUNKS_EXTENSION:
        return in_line(chunks, c, MAX_EXTENSION_BYTES, HTTP1_CHUNKS_EXTENSION,
                       HTTP1_CHUNKS_SIZE_LF);
    case HTTP1_CHUNKS_DATA_CR:
        return c == '\r' ? HTTP1_CHUNKS_DATA_LF : HTTP1_CHUNKS_BROKEN;
    case HTTP1_CHUNKS_TRAILER:
    case HTTP1_CHUNKS_TRAILER_LINE:
        return in_line(chunks, c, MAX_TRAILER_BYTES, HTTP1_CHUNKS_TRAILER_LINE,
                       chunks->state == HTTP1_CHUNKS_TRAILER ? HTTP1_CHUNKS_END_LF
                                                             : HTTP1_CHUNKS_TRAILER_LF);
    case HTTP1_CHUNKS_SIZE_LF:
    case HTTP1_CHUNKS_DATA_LF:
    case HTTP1_CHUNKS_TRAILER_LF:
    case HTTP1_CHUNKS_END_LF:
        return c == '\n' ? after_line_feed(chunks) : HTTP1_CHUNKS_BROKEN;
    case HTTP1_CHUNKS_DATA:
    case HTTP1_CHUNKS_DONE:
    case HTTP1_CHUNKS_BROKEN:
        break;
    }
    return chunks->state;
}

size_t http1_chunks_decode(struct http1_chunks *chunks, char *bytes, size_t length, size_t *used)
{
    size_t from = 0, to = 0;
    while (from < length && chunks->state < HTTP1_CHUNKS_DONE) {
        if (chunks->state != HTTP1_CHUNKS_DATA) {
            chunks->state = next(chunks, bytes[from++]);
            continue;
        }
        size_t count = chunks->left < length - from ? (size_t)chunks->left : length - from;
        if (to != from)
            memmove(bytes + to, bytes + from, count);
        from += count;
        to += count;
        chunks->left -= count;
        if (chunks->left == 0)
            chunks->state = HTTP1_CHUNKS_DATA_CR;
    }
    *used = from;
    return to;
}
