/*
 * The head of a request: the caller's headers, Host and the body's length, nothing else.
 */
#include <string.h>

#include "http1_internal.h"
#include "request_header.h"

#define LENGTH_LINE_BYTES 48 /* "Content-Length: " and any number */

/* The caller has made room. */
static void put(struct buffer *head, struct str s)
{
    if (s.length > 0)
        memcpy(head->bytes + head->length, s.bytes, s.length);
    head->length += s.length;
}

static size_t most_bytes(const struct http1_url *url, const struct upstream_request *request)
{
    size_t sum = strlen(request->method) + url->target.length + url->host_line.length +
                 sizeof(" / HTTP/1.1\r\nHost: \r\n\r\n") + LENGTH_LINE_BYTES;
    for (size_t i = 0; i < request->header_count; i++)
        sum += request->headers[i].name.length + request->headers[i].value.length + 4;
    return sum;
}

static void put_header(struct buffer *head, const struct http_header *header)
{
    put(head, header->name);
    put(head, header->value.length > 0 ? STR(": ") : STR(":"));
    put(head, header->value);
    put(head, STR("\r\n"));
}

bool http1_request_write_head(struct buffer *head, const struct http1_url *url,
                              const struct upstream_request *request)
{
    struct str method = str_from(request->method);
    buffer_reserve(head, most_bytes(url, request));
    put(head, method);
    put(head, STR(" "));
    put(head, url->target.length > 0 ? url->target : STR("/"));
    put(head, STR(" HTTP/1.1\r\nHost: "));
    put(head, url->host_line);
    put(head, STR("\r\n"));
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *header = &request->headers[i];
        if (!request_header_is_valid(header))
            return false;
        if (!request_header_is_left_out(header))
            put_header(head, header);
    }
    if (request->body.length > 0 || str_equal(method, STR("POST"))) {
        char digits[STR_U64_BYTES];
        put(head, STR("Content-Length: "));
        put(head, str_from_u64(request->body.length, digits));
        put(head, STR("\r\n"));
    }
    put(head, STR("\r\n"));
    return true;
}
