/*
 * The head of a response, written without printf.
 *
 * h2o 2.2.5 prints it with sprintf(), which is a twelfth of all that a forwarded call costs, and
 * has no call for it. Its last output stream has a flag, behind the part that h2o's header shows:
 * whether the head has gone out. The flag is set here when the head goes out as part of the body,
 * but only once it was seen to be there: the first response in each server is h2o's own, and the
 * flag must change as it goes out. Should it not, every head is h2o's.
 */
#include <string.h>

#include "http_internal.h"

#define STATUS_DIGITS 3

static int *sent_flag(h2o_req_t *request)
{
    return (int *)(void *)(request->_ostr_top + 1);
}

/* Whether nothing stands between the body and the last stream: no chunks. */
static bool is_direct(const h2o_req_t *request)
{
    return request->_ostr_top->next == NULL && request->res.content_length != SIZE_MAX;
}

bool head_watch(const struct http_server *server, h2o_req_t *request)
{
    return server->head_flag == HEAD_FLAG_UNSEEN && is_direct(request) && *sent_flag(request) == 0;
}

void head_watched(struct http_server *server, h2o_req_t *request)
{
    server->head_flag = *sent_flag(request) == 1 ? HEAD_FLAG_SEEN : HEAD_FLAG_ABSENT;
}

static char *put(char *at, const char *bytes, size_t length)
{
    memcpy(at, bytes, length);
    return at + length;
}

#define PUT(at, literal) put(at, literal, sizeof(literal) - 1)

static size_t most_bytes(const h2o_req_t *request, size_t reason_length)
{
    size_t sum =
        sizeof("HTTP/1.1  \r\nDate: \r\nConnection: keep-alive\r\nContent-Length: \r\n\r\n") +
        STATUS_DIGITS + reason_length + H2O_TIMESTR_RFC1123_LEN + STR_U64_BYTES;
    for (size_t i = 0; i < request->res.headers.size; i++)
        sum += request->res.headers.entries[i].name->len +
               request->res.headers.entries[i].value.len + sizeof(": \r\n");
    return sum;
}

h2o_iovec_t head_take(const struct http_server *server, h2o_req_t *request)
{
    if (server->head_flag != HEAD_FLAG_SEEN || !is_direct(request) || *sent_flag(request) != 0)
        return h2o_iovec_init(NULL, 0);
    h2o_timestamp_t now;
    char digits[STR_U64_BYTES];
    size_t reason_length = strlen(request->res.reason);
    h2o_get_timestamp(request->conn->ctx, &request->pool, &now);
    char *head = h2o_mem_alloc_pool(&request->pool, most_bytes(request, reason_length));
    struct str number = str_from_u64((uint64_t)request->res.status, digits);
    char *at = PUT(head, "HTTP/1.1 ");
    at = put(at, number.bytes, number.length);
    *at++ = ' ';
    at = put(at, request->res.reason, reason_length);
    at = PUT(at, "\r\nDate: ");
    at = put(at, now.str->rfc1123, H2O_TIMESTR_RFC1123_LEN);
    at = request->http1_is_persistent ? PUT(at, "\r\nConnection: keep-alive\r\nContent-Length: ")
                                      : PUT(at, "\r\nConnection: close\r\nContent-Length: ");
    number = str_from_u64(request->res.content_length, digits);
    at = put(at, number.bytes, number.length);
    at = PUT(at, "\r\n");
    for (size_t i = 0; i < request->res.headers.size; i++) {
        const h2o_header_t *header = &request->res.headers.entries[i];
        at = put(at, header->name->base, header->name->len);
        at = PUT(at, ": ");
        if (header->value.len > 0)
            at = put(at, header->value.base, header->value.len);
        at = PUT(at, "\r\n");
    }
    at = PUT(at, "\r\n");
    *sent_flag(request) = 1;
    return h2o_iovec_init(head, (size_t)(at - head));
}
