/*
 * Responses, whole and streamed: one h2o_send() in flight, what comes meanwhile is collected. The
 * ends of responses go out together at the end of a round: a client that sleeps, and has asked for
 * several, is woken once.
 */
#include <string.h>
#include <sys/socket.h>

#include "server_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/log.h"

/*
 * Reason phrases of HTTP statuses (RFC 9110 §15 and the IANA registry).
 */

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {424, "Failed Dependency"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
    {511, "Network Authentication Required"},
};

const char *status_reason(int status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}

static bool status_has_body(int status)
{
    return status != 204 && status != 304;
}

/*
 * The head of a response, written without printf.
 *
 * h2o 2.2.5 prints it with sprintf(), which is a twelfth of all that a forwarded call costs, and
 * has no call for it. Its last output stream has a flag, behind the part that h2o's header shows:
 * whether the head has gone out. The flag is set here when the head goes out as part of the body,
 * but only once it was seen to be there: the first response in each server is h2o's own, and the
 * flag must change as it goes out. Should it not, every head is h2o's.
 */

static int *sent_flag(h2o_req_t *request)
{
    return (int *)(void *)(request->_ostr_top + 1);
}

/* Whether nothing stands between the body and the last stream: no chunks. */
static bool is_direct(const h2o_req_t *request)
{
    return request->_ostr_top->next == NULL && request->res.content_length != SIZE_MAX;
}

/* Whether what is sent next, and does not end the response, is to be followed by head_watched(). */
static bool head_watch(const struct http_server *server, h2o_req_t *request)
{
    return server->head_flag == HEAD_FLAG_UNSEEN && is_direct(request) && *sent_flag(request) == 0;
}

static void head_watched(struct http_server *server, h2o_req_t *request)
{
    server->head_flag = *sent_flag(request) == 1 ? HEAD_FLAG_SEEN : HEAD_FLAG_ABSENT;
}

/* Room for all that comes before the headers. */
#define FIRST_LINES_BYTES 160

/* Puts it before `at`, and returns where it begins. */
static char *head_put(char *at, const char *bytes, size_t length)
{
    return memcpy(at - length, bytes, length);
}

#define PUT(at, literal) head_put(at, literal, sizeof(literal) - 1)

/* And the space behind it. */
static char *head_put_status(char *at, int status)
{
    ASSERT(status >= 100 && status <= 999);
    *--at = ' ';
    *--at = (char)('0' + status % 10);
    *--at = (char)('0' + status / 10 % 10);
    *--at = (char)('0' + status / 100);
    return at;
}

/* The response's head in the request's pool, to go out before the first bytes of the body; empty
 * when h2o sends it, or has sent it. It is written from its end, before the headers, to its
 * beginning. */
static h2o_iovec_t head_take(const struct http_exchange *exchange)
{
    h2o_req_t *request = exchange->request;
    if (exchange->connection->server->head_flag != HEAD_FLAG_SEEN || !is_direct(request) ||
        *sent_flag(request) != 0)
        return h2o_iovec_init(NULL, 0);
    h2o_context_t *h2o = request->conn->ctx;
    char digits[STR_U64_BYTES];
    h2o_get_timestamp(h2o, NULL, NULL); /* its text is only copied: the request need not keep it */
    struct str number = str_from_u64(request->res.content_length, digits);
    char *at = PUT(exchange->header_lines, "\r\n");
    at = head_put(at, number.bytes, number.length);
    at = request->http1_is_persistent ? PUT(at, "\r\nConnection: keep-alive\r\nContent-Length: ")
                                      : PUT(at, "\r\nConnection: close\r\nContent-Length: ");
    at = head_put(at, h2o->_timestamp_cache.value->rfc1123, H2O_TIMESTR_RFC1123_LEN);
    at = PUT(at, "\r\nDate: ");
    at = head_put(at, request->res.reason, strlen(request->res.reason));
    at = PUT(head_put_status(at, request->res.status), "HTTP/1.1 ");
    ASSERT(exchange->header_lines - at <= FIRST_LINES_BYTES);
    *sent_flag(request) = 1;
    return h2o_iovec_init(at, (size_t)(exchange->header_lines_end - at));
}

/* A buffer that has been larger is given back when it is empty: streams live for hours. */
#define KEPT_BUFFER_BYTES ((size_t)64 * 1024)

/* ---- status and headers ---- */

static bool has_forbidden_byte(struct str s)
{
    for (size_t i = 0; i < s.length; i++)
        if (s.bytes[i] == '\r' || s.bytes[i] == '\n' || s.bytes[i] == '\0')
            return true;
    return false;
}

/* Whether it is the caller's to send, and can be sent. */
static bool is_sendable(const struct http_header *header)
{
    if ((http_name_flags(http_name_of(header)) & HTTP_NAME_FRAMES) != 0)
        return false;
    if (header->is_clean || (header->name.length > 0 && !has_forbidden_byte(header->name) &&
                             !has_forbidden_byte(header->value)))
        return true;
    log_warn("Left out a response header with bytes that may not be in one",
             LOG_STR("name", header->name));
    return false;
}

static char *response_put(char *at, struct str text)
{
    if (text.length > 0)
        memcpy(at, text.bytes, text.length);
    return at + text.length;
}

/* The list, and the lines that it points into, in one piece of the request's pool. */
static void response_copy_headers(struct http_exchange *exchange, const struct http_header *headers,
                                  size_t count)
{
    h2o_req_t *request = exchange->request;
    h2o_headers_t *list = &request->res.headers;
    size_t bytes = FIRST_LINES_BYTES + sizeof("\r\n");
    for (size_t i = 0; i < count; i++)
        bytes += headers[i].name.length + headers[i].value.length + sizeof(": \r\n");
    list->entries = h2o_mem_alloc_pool(
        &request->pool, count * (sizeof(h2o_header_t) + sizeof(h2o_iovec_t)) + bytes);
    list->capacity = count;
    list->size = 0; /* of one that was prepared */
    h2o_iovec_t *names = (h2o_iovec_t *)(list->entries + count);
    char *at = (char *)(names + count) + FIRST_LINES_BYTES;
    exchange->header_lines = at;
    for (size_t i = 0; i < count; i++) {
        if (!is_sendable(&headers[i]))
            continue;
        names[i] = h2o_iovec_init(at, headers[i].name.length);
        char *value = response_put(response_put(at, headers[i].name), STR(": "));
        at = response_put(response_put(value, headers[i].value), STR("\r\n"));
        list->entries[list->size++] = (h2o_header_t){
            .name = &names[i], .value = h2o_iovec_init(value, headers[i].value.length)};
    }
    exchange->header_lines_end = response_put(at, STR("\r\n"));
}

static void response_set_head(struct http_exchange *exchange, int status,
                              const struct http_header *headers, size_t header_count)
{
    h2o_req_t *request = exchange->request;

    request->res.status = status;
    request->res.reason = status_reason(status);
    response_copy_headers(exchange, headers, header_count);
    exchange->has_no_body =
        !status_has_body(status) || str_equal(http_method(exchange), STR("HEAD"));
}

static void response_start(struct http_exchange *exchange)
{
    h2o_req_t *request = exchange->request;
    int status = request->res.status;

    if (request->res.content_length == SIZE_MAX && !exchange->has_no_body &&
        request->version < 0x101) {
        /* h2o would keep the connection, and the body would have no end. */
        exchange->ends_with_close = true;
        request->http1_is_persistent = 0;
    }
    if (exchange->connection->server->drained != NULL)
        request->http1_is_persistent = 0;
    /* h2o's chunked encoder takes itself out for anything but 200, and so it sees one; the
     * status line is written with the first bytes. */
    if (!exchange->has_no_body)
        request->res.status = 200;
    request->res.original.status = status; /* else h2o copies the headers, for a log */
    h2o_start_response(request, &exchange->generator);
    request->res.status = status;
    exchange->started = true;
}

/* Hands over `sending`, the head before it; with FINAL the request may be gone on return. */
static void send_bytes(struct http_exchange *exchange, h2o_send_state_t state)
{
    struct http_server *server = exchange->connection->server;
    h2o_req_t *request = exchange->request;
    h2o_iovec_t parts[2];
    size_t count = 0;
    bool is_watched = state == H2O_SEND_STATE_IN_PROGRESS && head_watch(server, request);
    if (exchange->sending.length > 0)
        parts[count++] = head_take(exchange);
    if (count > 0 && parts[0].len == 0)
        count = 0; /* h2o's own */
    if (exchange->sending.length > 0)
        parts[count++] = h2o_iovec_init(exchange->sending.bytes, exchange->sending.length);
    h2o_send(request, parts, count, state);
    if (is_watched)
        head_watched(server, request);
}

/* Hands over what has collected; with FINAL the request may be gone on return. The first response
 * of a server ends with a second call, so that its head can be watched. */
static void send_waiting(struct http_exchange *exchange, h2o_send_state_t state)
{
    ASSERT(!exchange->in_flight && exchange->sending.length == 0); /* h2o has those bytes */
    struct buffer swapped = exchange->sending;
    if (exchange->waiting.length > 0 && head_watch(exchange->connection->server, exchange->request))
        state = H2O_SEND_STATE_IN_PROGRESS;
    exchange->sending = exchange->waiting;
    exchange->waiting = swapped;
    exchange->in_flight = true;
    exchange->headers_sent = true;
    intake_count(exchange->connection);
    send_bytes(exchange, state);
}

/* ---- the end of a response ---- */

static void finish_later(struct http_exchange *exchange)
{
    struct http_server *server = exchange->connection->server;
    ASSERT(exchange->ended && exchange->started);
    list_append(&server->finished, &exchange->finished);
    loop_round_end_schedule(&server->send_finished);
}

static void send_finished(void *context)
{
    struct http_server *server = http_server_from(context);
    while (!list_is_empty(&server->finished)) {
        struct http_exchange *exchange =
            LIST_ENTRY(server->finished.next, struct http_exchange, finished);
        list_remove(&exchange->finished);
        /* The cause that ends the connection may have come after the end was asked for. */
        if (exchange->connection->is_retired)
            exchange->request->http1_is_persistent = 0;
        send_waiting(exchange, H2O_SEND_STATE_FINAL);
    }
}

void responses_open(struct http_server *server)
{
    list_init(&server->finished);
    loop_round_end_init(&server->send_finished, server->loop, send_finished, server);
}

void responses_close(struct http_server *server)
{
    loop_round_end_finish(&server->send_finished);
}

/* ---- a whole response ---- */

void http_prepare(struct http_exchange *exchange, int status, const struct http_header *headers,
                  size_t header_count)
{
    ASSERT(!exchange->started);
    if (!exchange->ended)
        response_set_head(exchange, status, headers, header_count);
}

/* The body, if there is one, is waiting. */
static void response_respond(struct http_exchange *exchange, size_t length)
{
    if (status_has_body(exchange->request->res.status))
        exchange->request->res.content_length = length;
    exchange_end(exchange);
    response_start(exchange);
    finish_later(exchange);
}

void http_respond(struct http_exchange *exchange, int status, const struct http_header *headers,
                  size_t header_count, struct str body)
{
    http_prepare(exchange, status, headers, header_count);
    if (exchange->ended)
        return;
    if (!exchange->has_no_body)
        buffer_append(&exchange->waiting, body);
    response_respond(exchange, body.length);
}

void http_respond_prepared(struct http_exchange *exchange, struct buffer *body)
{
    ASSERT(!exchange->started);
    struct buffer taken = *body;
    size_t length = body->length;
    buffer_init(body);
    if (exchange->ended || exchange->has_no_body)
        buffer_finish(&taken);
    if (exchange->ended)
        return;
    exchange->waiting = taken;
    response_respond(exchange, length);
}

void http_respond_text(struct http_exchange *exchange, int status, const char *content_type,
                       struct str body)
{
    const struct http_header header = {.name = STR("content-type"),
                                       .value = str_from(content_type)};
    http_respond(exchange, status, &header, 1, body);
}

/* ---- a streamed response ---- */

void http_stream_start(struct http_exchange *exchange, int status,
                       const struct http_header *headers, size_t header_count,
                       int64_t content_length)
{
    http_prepare(exchange, status, headers, header_count);
    http_stream_start_prepared(exchange, content_length);
}

void http_stream_start_prepared(struct http_exchange *exchange, int64_t content_length)
{
    ASSERT(!exchange->started);
    if (exchange->ended)
        return;
    if (content_length >= 0 && status_has_body(exchange->request->res.status)) {
        exchange->request->res.content_length = (size_t)content_length;
        exchange->length_left = exchange->has_no_body ? -1 : content_length;
    }
    response_start(exchange);
}

void http_stream_flush(struct http_exchange *exchange)
{
    ASSERT(exchange->started);
    if (exchange->ended || exchange->headers_sent)
        return;
    /* h2o_send() without bytes does nothing under chunking; the last in the line, which
     * writes the headers, does. */
    h2o_ostream_t *last = exchange->request->_ostr_top;
    while (last->next != NULL)
        last = last->next;
    exchange->in_flight = true;
    exchange->headers_sent = true;
    last->do_send(last, exchange->request, NULL, 0, H2O_SEND_STATE_IN_PROGRESS);
}

size_t http_stream_backlog(const struct http_exchange *exchange)
{
    return exchange->waiting.length + exchange->sending.length;
}

bool http_stream_write(struct http_exchange *exchange, struct str bytes)
{
    ASSERT(exchange->started);
    if (exchange->ended || exchange->has_no_body)
        return true;
    if (exchange->length_left >= 0) {
        if ((uint64_t)bytes.length > (uint64_t)exchange->length_left)
            bytes.length = (size_t)exchange->length_left;
        exchange->length_left -= (int64_t)bytes.length;
    }
    buffer_append(&exchange->waiting, bytes);
    if (!exchange->in_flight && exchange->waiting.length > 0)
        send_waiting(exchange, H2O_SEND_STATE_IN_PROGRESS);
    intake_count(exchange->connection);
    if (http_stream_backlog(exchange) <= exchange->connection->server->options.stream_high_water)
        return true;
    exchange->above_high_water = true;
    return false;
}

void http_on_drained(struct http_exchange *exchange, loop_callback drained, void *context)
{
    exchange->drained = drained;
    exchange->drained_context = context;
}

static void recycle(struct buffer *buffer)
{
    if (buffer->capacity > KEPT_BUFFER_BYTES)
        buffer_finish(buffer);
    else
        buffer_clear(buffer);
}

/* The connection has taken what was in flight. */
void response_proceed(h2o_generator_t *generator, h2o_req_t *request)
{
    struct http_exchange *exchange = http_exchange_from(generator);
    const size_t high_water = exchange->connection->server->options.stream_high_water;

    exchange->in_flight = false;
    recycle(&exchange->sending);
    if (exchange->ended) {
        send_waiting(exchange, H2O_SEND_STATE_FINAL);
        return;
    }
    if (exchange->waiting.length > 0) {
        send_waiting(exchange, H2O_SEND_STATE_IN_PROGRESS);
    } else {
        /* A stream at rest may be one of thousands. */
        buffer_finish(&exchange->waiting);
        buffer_finish(&exchange->sending);
    }
    intake_count(exchange->connection);
    if (exchange->above_high_water && http_stream_backlog(exchange) <= high_water / 2) {
        exchange->above_high_water = false;
        if (exchange->drained != NULL)
            exchange->drained(exchange->drained_context); /* may end the exchange */
    }
}

void http_stream_end(struct http_exchange *exchange)
{
    ASSERT(exchange->started);
    if (exchange->ended)
        return;
    if (exchange->length_left > 0) {
        http_stream_abort(exchange);
        return;
    }
    exchange_end(exchange);
    if (!exchange->in_flight)
        finish_later(exchange);
}

void http_stream_abort(struct http_exchange *exchange)
{
    if (exchange->ended)
        return;
    h2o_req_t *request = exchange->request;
    if (exchange->ends_with_close) {
        /* A plain end of the connection would say that the body is complete. */
        const struct linger reset = {.l_onoff = 1, .l_linger = 0};
        h2o_socket_t *socket = request->conn->callbacks->get_socket(request->conn);
        setsockopt(h2o_socket_get_fd(socket), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    }
    exchange_end(exchange);
    connection_cut(request);
}
