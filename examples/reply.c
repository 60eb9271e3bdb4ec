/* Writes answers to HTTP requests: JSON at once, JSON later, or server-sent events. */
#include "reply.h"

#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "rpc.h"
#include "server.h"

/* Unread bytes of a client beyond which notifications to it are dropped. */
#define UNREAD_BYTES ((size_t)1024 * 1024)

struct reply {
    h2o_generator_t generator; /* first: the library hands this back */
    struct server *server;
    h2o_req_t *request;
    struct connection *connection;
    h2o_buffer_t *waiting;      /* not yet given to the library */
    h2o_doublebuffer_t sending; /* given to the library, until it asks for more */
    h2o_timeout_entry_t keepalive;
    h2o_timeout_entry_t gone_later;
    reply_gone_callback on_gone; /* NULL once the holder has let go */
    void *holder;
    bool streaming;
    bool in_flight;
    bool ended;
};

static void on_proceed(h2o_generator_t *generator, h2o_req_t *request);
static void on_stop(h2o_generator_t *generator, h2o_req_t *request);
static void on_keepalive(h2o_timeout_entry_t *entry);
static void on_gone_later(h2o_timeout_entry_t *entry);
static void on_request_over(void *data);

static const char *reason_of(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 202:
        return "Accepted";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 406:
        return "Not Acceptable";
    case 415:
        return "Unsupported Media Type";
    case 503:
        return "Service Unavailable";
    default:
        return "Bad Request";
    }
}

static void send_whole(h2o_req_t *request, int status, const char *body, size_t length)
{
    request->res.status = status;
    request->res.reason = reason_of(status);
    /* Without a length, any status but 200 would cost the connection. */
    request->res.content_length = length;
    h2o_send_inline(request, body, length);
}

void reply_json(h2o_req_t *request, int status, json_t *message)
{
    char *text = rpc_text(message);
    h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL,
                   H2O_STRLIT("application/json"));
    send_whole(request, status, text, strlen(text));
    free(text);
}

void reply_empty(h2o_req_t *request, int status)
{
    send_whole(request, status, "", 0);
}

bool reply_accepts(h2o_req_t *request, const char *type)
{
    ssize_t at = h2o_find_header(&request->headers, H2O_TOKEN_ACCEPT, -1);
    if (at == -1)
        return true;
    for (; at != -1; at = h2o_find_header(&request->headers, H2O_TOKEN_ACCEPT, at)) {
        h2o_iovec_t value = request->headers.entries[at].value;
        if (memmem(value.base, value.len, type, strlen(type)) != NULL ||
            memmem(value.base, value.len, "*/*", 3) != NULL)
            return true;
    }
    return false;
}

struct reply *reply_hold(struct server *server, h2o_req_t *request, reply_gone_callback on_gone,
                         void *holder)
{
    /* The library reports every kind of end only by the end of the request's memory. */
    struct reply *reply = h2o_mem_alloc_shared(&request->pool, sizeof(*reply), on_request_over);
    *reply = (struct reply){.generator = {.proceed = on_proceed, .stop = on_stop},
                            .server = server,
                            .request = request,
                            .connection = connection_of(request),
                            .keepalive = {.cb = on_keepalive},
                            .gone_later = {.cb = on_gone_later},
                            .on_gone = on_gone,
                            .holder = holder};
    h2o_buffer_init(&reply->waiting, &h2o_socket_buffer_prototype);
    h2o_doublebuffer_init(&reply->sending, &h2o_socket_buffer_prototype);
    reply->connection->reply = reply;
    /* The client may have left before the request was read; the watch will not tell twice. */
    if (reply->connection->gone)
        h2o_timeout_link(server->context.loop, &server->context.zero_timeout, &reply->gone_later);
    return reply;
}

static void append(struct reply *reply, const char *bytes, size_t length)
{
    h2o_iovec_t room = h2o_buffer_reserve(&reply->waiting, length);
    memcpy(room.base, bytes, length);
    reply->waiting->size += length;
}

static void flush(struct reply *reply)
{
    if (reply->in_flight)
        return;
    h2o_iovec_t bytes = h2o_doublebuffer_prepare(&reply->sending, &reply->waiting, SIZE_MAX);
    if (bytes.len == 0 && !reply->ended)
        return;
    reply->in_flight = true;
    bool last = reply->ended && reply->waiting->size == 0;
    /* A last send may free the request, and this reply with it. */
    h2o_send(reply->request, &bytes, bytes.len != 0 ? 1 : 0,
             last ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *request)
{
    struct reply *reply = H2O_STRUCT_FROM_MEMBER(struct reply, generator, generator);
    (void)request;
    reply->in_flight = false;
    h2o_doublebuffer_consume(&reply->sending);
    flush(reply);
}

void reply_start_stream(struct reply *reply)
{
    h2o_req_t *request = reply->request;
    request->res.status = 200;
    request->res.reason = reason_of(200);
    h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL,
                   H2O_STRLIT("text/event-stream"));
    h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_CACHE_CONTROL, NULL,
                   H2O_STRLIT("no-cache, no-transform"));
    reply->streaming = true;
    h2o_start_response(request, &reply->generator);
    /* Headers alone are not flushed under chunking. */
    append(reply, H2O_STRLIT(":\n\n"));
    flush(reply);
    h2o_timeout_link(reply->server->context.loop, &reply->server->keepalive, &reply->keepalive);
}

bool reply_is_stream(const struct reply *reply)
{
    return reply->streaming;
}

static void append_event(struct reply *reply, json_t *message)
{
    char *text = rpc_text(message);
    append(reply, H2O_STRLIT("event: message\ndata: "));
    append(reply, text, strlen(text));
    append(reply, H2O_STRLIT("\n\n"));
    free(text);
}

void reply_send(struct reply *reply, json_t *message)
{
    if (!reply->streaming || reply->waiting->size > UNREAD_BYTES) {
        json_decref(message);
        return;
    }
    append_event(reply, message);
    flush(reply);
}

static void on_keepalive(h2o_timeout_entry_t *entry)
{
    struct reply *reply = H2O_STRUCT_FROM_MEMBER(struct reply, keepalive, entry);
    h2o_timeout_link(reply->server->context.loop, &reply->server->keepalive, &reply->keepalive);
    if (reply->waiting->size == 0)
        append(reply, H2O_STRLIT(":\n\n"));
    flush(reply);
}

/* From here on neither the holder nor the connection knows this reply. */
static void let_go(struct reply *reply)
{
    h2o_timeout_unlink(&reply->keepalive);
    h2o_timeout_unlink(&reply->gone_later);
    if (reply->connection != NULL)
        reply->connection->reply = NULL;
    reply->connection = NULL;
    reply->on_gone = NULL;
    reply->ended = true;
}

void reply_finish(struct reply *reply, json_t *message)
{
    if (reply->server->stopping)
        reply->request->http1_is_persistent = 0;
    let_go(reply);
    if (reply->streaming) {
        if (message != NULL)
            append_event(reply, message);
        flush(reply);
    } else if (message != NULL) {
        reply_json(reply->request, 200, message);
    } else {
        reply_empty(reply->request, 503);
    }
}

static void tell_holder(struct reply *reply)
{
    reply_gone_callback on_gone = reply->on_gone;
    let_go(reply);
    if (on_gone != NULL)
        on_gone(reply->holder);
}

void reply_client_gone(struct reply *reply)
{
    tell_holder(reply);
    reply->request->http1_is_persistent = 0;
    if (reply->streaming)
        flush(reply);
    else
        reply_empty(reply->request, 503);
}

static void on_gone_later(h2o_timeout_entry_t *entry)
{
    reply_client_gone(H2O_STRUCT_FROM_MEMBER(struct reply, gone_later, entry));
}

static void on_stop(h2o_generator_t *generator, h2o_req_t *request)
{
    (void)request;
    tell_holder(H2O_STRUCT_FROM_MEMBER(struct reply, generator, generator));
}

static void on_request_over(void *data)
{
    struct reply *reply = data;
    tell_holder(reply);
    h2o_buffer_dispose(&reply->waiting);
    h2o_doublebuffer_dispose(&reply->sending);
}
