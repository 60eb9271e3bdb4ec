/*
 * The head of a request: the caller's headers, Host and the body's length, nothing else.
 */
#include <string.h>

#include "http1_internal.h"
#include "request_header.h"

#define LENGTH_LINE_BYTES 48 /* "Content-Length: " and any number */

/* The caller has made room. Returns where the next goes. */
static inline char *put(char *at, struct str s)
{
    if (s.length > 0)
        memcpy(at, s.bytes, s.length);
    return at + s.length;
}

static size_t most_bytes(const struct http1_url *url, const struct upstream_request *request,
                         struct str method)
{
    size_t sum = method.length + url->target.length + url->host_line.length +
                 sizeof(" / HTTP/1.1\r\nHost: \r\n\r\n") + LENGTH_LINE_BYTES;
    for (size_t i = 0; i < request->header_count; i++)
        sum += request->headers[i].name.length + request->headers[i].value.length + 4;
    return sum;
}

static char *put_header(char *at, const struct http_header *header)
{
    at = put(at, header->name);
    *at++ = ':';
    if (header->value.length > 0) {
        *at++ = ' ';
        at = put(at, header->value);
    }
    return put(at, STR("\r\n"));
}

bool http1_request_write_head(struct buffer *head, const struct http1_url *url,
                              const struct upstream_request *request)
{
    struct str method = str_from(request->method);
    buffer_reserve(head, most_bytes(url, request, method));
    char *at = head->bytes + head->length;
    at = put(at, method);
    *at++ = ' ';
    at = put(at, url->target.length > 0 ? url->target : STR("/"));
    at = put(at, STR(" HTTP/1.1\r\nHost: "));
    at = put(at, url->host_line);
    at = put(at, STR("\r\n"));
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *header = &request->headers[i];
        if (!request_header_is_valid(header))
            return false;
        if (!request_header_is_left_out(header))
            at = put_header(at, header);
    }
    if (request->body.length > 0 || str_equal(method, STR("POST"))) {
        char digits[STR_U64_BYTES];
        at = put(at, STR("Content-Length: "));
        at = put(at, str_from_u64(request->body.length, digits));
        at = put(at, STR("\r\n"));
    }
    at = put(at, STR("\r\n"));
    head->length = (size_t)(at - head->bytes);
    return true;
}
