/*
 * The body of a response, out of what libcurl gives: the chunked coding is taken off here.
 *
 * libcurl 7.88 drops bytes that follow the last chunk and keeps the connection. The dropped bytes
 * may be the first half of another answer, and the next request would get the rest.
 */
#include "curl_internal.h"

const char *curl_body_start(struct curl_body *body, const struct curl_head *head)
{
    for (size_t i = 0; i < head->count; i++) {
        const struct curl_header_span *span = &head->spans[i];
        struct str name = str_slice(head->text.bytes + span->name_at, span->name_length);
        struct str value = str_slice(head->text.bytes + span->value_at, span->value_length);
        if (!str_equal(name, STR("transfer-encoding")))
            continue;
        if (body->is_chunked || !str_equal_ignore_case(value, STR("chunked")))
            return "the response has a transfer coding other than chunked";
        body->is_chunked = true;
    }
    body->is_empty = head->status == 204 || head->status == 304;
    return NULL;
}

/* libcurl reads the coding itself after it has given the bytes, so that they are not to change. */
const char *curl_body_decode(struct curl_body *body, struct buffer *decoded, struct str *data)
{
    size_t used;
    if (!body->is_chunked)
        return NULL;
    buffer_clear(decoded);
    buffer_append(decoded, *data);
    size_t length = http1_chunks_decode(&body->chunks, decoded->bytes, decoded->length, &used);
    body->has_rest |= used < data->length;
    *data = str_slice(decoded->bytes, length);
    return body->chunks.state == HTTP1_CHUNKS_BROKEN ? "the response's chunks are malformed" : NULL;
}

bool curl_body_is_complete(const struct curl_body *body)
{
    return !body->is_chunked || body->is_empty || body->chunks.state == HTTP1_CHUNKS_DONE;
}
