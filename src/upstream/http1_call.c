/*
 * The life of one call: a connection is found, the request goes out, the response comes in
 * piece by piece, and the call ends or is cancelled.
 *
 * Nothing goes out and nothing is told before the end of the loop's round. While callbacks of a
 * call are on the stack, a cancel of that call is only noted; of any other call it is done at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http1_client.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "upstream_internal.h"

/*
 * The head of a request: the caller's headers, Host and the body's length, nothing else.
 */

#define SMALL_BYTES ((size_t)2048)
#define LENGTH_LINE_BYTES 48 /* "Content-Length: " and any number */

/* The caller has made room. Returns where the next goes. */
static inline char *put(char *at, struct str s)
{
    if (s.length > 0)
        memcpy(at, s.bytes, s.length);
    return at + s.length;
}

static size_t http1_call_most_bytes(const struct http1_url *url,
                                    const struct upstream_request *request, struct str method)
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

/* Appends to `head`. false: a header is malformed, and nothing is appended. */
static bool http1_request_write_head(struct buffer *head, const struct http1_url *url,
                                     const struct upstream_request *request, struct str method)
{
    buffer_reserve(head, http1_call_most_bytes(url, request, method));
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

static void on_limit(void *context);
static void http1_call_send_request(struct http1_call *call, struct str head, struct str body);
static void http1_call_cancel_call(struct upstream_call *base);
static void http1_call_pause_call(struct upstream_call *base);
static void http1_call_resume_call(struct upstream_call *base);
static void http1_call_prove(struct upstream_call *base);
static bool http1_call_has_begun(const struct upstream_call *base);
static bool http1_call_has_sent(const struct upstream_call *base);
static void http1_call_set_silence(struct upstream_call *base, int64_t silence_ms);

static void http1_call_run_deferred(struct http1_call *call);
static void go_out(struct http1_call *call, struct str head);
static void addresses_known(struct http1_call *call, const char *error);
static void connected(struct http1_call *call, int error_number);
static void readable(struct http1_call *call);
static void writable(struct http1_call *call);
static void http1_call_destroy(struct http1_call *call);

static const struct http1_call_events events = {
    http1_call_run_deferred, go_out, addresses_known, connected, readable, writable,
    http1_call_destroy,
};
static const struct upstream_implementation implementation = {
    http1_call_cancel_call, http1_call_pause_call, http1_call_resume_call, http1_call_prove,
    http1_call_has_begun,   http1_call_has_sent,   http1_call_set_silence,
};

static void http1_call_touch(struct http1_call *call)
{
    call->last_byte_ms = loop_now_ms(call->client->loop);
}

static void start_silence(struct http1_call *call)
{
    http1_call_touch(call);
    if (call->silence_ms > 0)
        loop_timer_start(&call->limit, call->silence_ms);
    else
        loop_timer_stop(&call->limit);
}

static struct http1_call *http1_call_create(struct http1_client *client,
                                            const struct upstream_callbacks *callbacks,
                                            void *context)
{
    struct http1_call *call = http1_client_take_call(client);
    MAGIC_SET(call, HTTP1_CALL_MAGIC);
    call->base.implementation = &implementation;
    call->events = &events;
    call->client = client;
    call->callbacks = *callbacks;
    call->context = context;
    list_append(&client->calls, &call->node);
    list_init(&call->deferred);
    list_init(&call->waiting);
    loop_timer_init(&call->limit, client->loop, on_limit, call);
    return call;
}

/* To put small pieces together costs less than to have the kernel do it: the body comes behind the
 * head. */
static bool is_in_one_piece(const struct http1_call *call)
{
    return call->head_length + call->body.length <= SMALL_BYTES;
}

struct upstream_call *http1_call_start(struct http1_client *client, const struct http1_url *url,
                                       const struct upstream_request *request,
                                       const struct upstream_callbacks *callbacks, void *context)
{
    struct buffer *heads = http1_outgoing_heads(client);
    struct str method = str_from(request->method);
    size_t head_begin = heads->length;
    if (!http1_request_write_head(heads, url, request, method))
        return http1_call_refuse(client, REQUEST_HEADER_MALFORMED, callbacks, context);
    struct http1_call *call = http1_call_create(client, callbacks, context);
    call->host = http1_host_of(client, url);
    call->body = request->body;
    call->owner = request->owner.length > 0 ? memory_copy_str(request->owner) : NULL;
    call->silence_ms = request->silence_timeout_ms;
    call->connect_ms =
        request->connect_timeout_ms > 0 ? request->connect_timeout_ms : UPSTREAM_CONNECT_TIMEOUT_MS;
    call->needs_proof = request->needs_proof;
    call->may_repeat = !str_equal(method, STR("POST"));
    call->head_length = heads->length - head_begin;
    if (is_in_one_piece(call))
        buffer_append(heads, call->body);
    http1_outgoing_add(client, call, head_begin);
    return &call->base;
}

struct upstream_call *http1_call_refuse(struct http1_client *client, const char *detail,
                                        const struct upstream_callbacks *callbacks, void *context)
{
    struct http1_call *call = http1_call_create(client, callbacks, context);
    call->refusal = memory_copy_text(detail);
    http1_client_defer(client, call);
    return &call->base;
}

static struct http1_call *http1_call_call_of(struct upstream_call *base)
{
    return http1_call_from(LIST_ENTRY(base, struct http1_call, base));
}

/* ---- the end ---- */

static void drop_connection(struct http1_call *call)
{
    if (call->connection != NULL)
        http1_connection_close(call->connection);
    call->connection = NULL;
}

static void http1_call_destroy(struct http1_call *call)
{
    loop_timer_stop(&call->limit);
    drop_connection(call);
    list_remove(&call->waiting);
    list_remove(&call->deferred);
    list_remove(&call->node);
    buffer_finish(&call->kept);
    buffer_finish(&call->head);
    free(call->refusal);
    free(call->owner);
    MAGIC_CLEAR(call);
    http1_client_give_call(call->client, call);
}

static void http1_call_end(struct http1_call *call, enum upstream_result result, const char *detail)
{
    call->is_ending = true;
    drop_connection(call);
    list_remove(&call->deferred);
    if (call->callbacks.end != NULL)
        call->callbacks.end(call->context, result, detail);
    http1_call_destroy(call);
}

static void http1_call_fail(struct http1_call *call, const char *detail)
{
    http1_call_end(call, call->sent > 0 ? UPSTREAM_GONE : UPSTREAM_CONNECT_FAILED, detail);
}

/* The connection is released before the owner of the call hears of the end: the owner may make the
 * next call at once. */
static void http1_call_complete(struct http1_call *call, bool has_rest)
{
    bool was_sent = call->sent == call->head_length + call->body.length;
    if (call->response.keeps_alive && was_sent && !has_rest && !call->needs_proof) {
        http1_connection_release(call->connection);
        call->connection = NULL;
    }
    http1_call_end(call, UPSTREAM_DONE, "");
}

/* ---- a connection ---- */

static void fail_to_connect(struct http1_call *call, const char *reason)
{
    char detail[512];
    snprintf(detail, sizeof(detail), "cannot connect to %s:%u: %s", call->host->name,
             call->host->port, reason);
    http1_call_fail(call, detail);
}

/* An address that hangs leaves time for the next. */
static void try_next_address(struct http1_call *call)
{
    const struct http1_addresses *addresses = &call->host->addresses;
    while (call->next_address < addresses->count) {
        const struct http1_address *address = &addresses->items[call->next_address++];
        int64_t left_ms = call->connect_by_ms - clock_monotonic_ms();
        if (call->next_address < addresses->count)
            left_ms /= 2;
        call->connection = http1_connection_open(call->host, address, call);
        if (call->connection != NULL) {
            loop_timer_start(&call->limit, left_ms);
            return;
        }
        call->connect_error = errno;
    }
    http1_host_forget(call->host);
    fail_to_connect(call, call->connect_error != 0 ? strerror(call->connect_error)
                                                   : "no address is left to try");
}

static void connect_call(struct http1_call *call)
{
    int64_t most_ms = call->connect_ms;
    if (call->silence_ms > 0 && call->silence_ms < most_ms)
        most_ms = call->silence_ms;
    call->connect_by_ms = clock_monotonic_ms() + most_ms;
    call->next_address = 0;
    if (http1_host_is_known(call->host))
        try_next_address(call);
    else if (http1_host_look_up(call->host, call))
        loop_timer_start(&call->limit, most_ms);
    else
        fail_to_connect(call, "no thread to look up its name");
}

static void addresses_known(struct http1_call *call, const char *error)
{
    if (error != NULL)
        fail_to_connect(call, error);
    else
        try_next_address(call);
}

static void connected(struct http1_call *call, int error_number)
{
    if (error_number != 0) {
        call->connect_error = error_number;
        drop_connection(call);
        try_next_address(call);
        return;
    }
    http1_connection_read(call->connection, true);
    start_silence(call);
    http1_call_send_request(call, buffer_str(&call->head), call->body);
}

/* The connection broke. One that had been idle may have been closed before this request
 * reached it: what was not sent, or does no harm twice, goes out again on a new one. */
static void lose_connection(struct http1_call *call, const char *detail)
{
    ASSERT(call->connection != NULL);
    bool is_stale = call->connection->was_idle && !call->has_received;
    if (is_stale && (call->sent == 0 || call->may_repeat)) {
        drop_connection(call);
        call->response = (struct http1_response){.place = HTTP1_IN_HEAD};
        call->sent = 0;
        connect_call(call);
    } else {
        http1_call_fail(call, detail);
    }
}

/* The timer is not moved with every byte: when it runs out it looks how old the last is. */
static void on_limit(void *context)
{
    struct http1_call *call = http1_call_from(context);

    if (call->connection == NULL || !call->connection->is_open) {
        list_remove(&call->waiting);
        call->connect_error = ETIMEDOUT;
        drop_connection(call);
        if (clock_monotonic_ms() < call->connect_by_ms)
            try_next_address(call);
        else
            fail_to_connect(call, "no connection within the time limit");
        return;
    }
    int64_t silent_ms = clock_monotonic_ms() - call->last_byte_ms;
    if (call->is_paused)
        loop_timer_start(&call->limit, call->silence_ms);
    else if (silent_ms < call->silence_ms)
        loop_timer_start(&call->limit, call->silence_ms - silent_ms);
    else
        http1_call_end(call, call->sent > 0 ? UPSTREAM_SILENT : UPSTREAM_CONNECT_FAILED,
                       "no byte came within the time limit");
}

/* ---- the request goes out ---- */

static struct str after(struct str s, size_t count)
{
    return count < s.length ? str_slice(s.bytes + count, s.length - count) : STR_EMPTY;
}

/* `head` is kept only while it may be needed again. When the connection takes no more, what
 * it still brings is read, and its end is found there. */
static void http1_call_send_request(struct http1_call *call, struct str head, struct str body)
{
    size_t written = 0;
    size_t body_sent = call->sent > call->head_length ? call->sent - call->head_length : 0;
    bool is_first = call->head.length == 0 && head.length > 0;

    if (http1_connection_write(call->connection, after(head, call->sent), after(body, body_sent),
                               &written) &&
        written > 0) {
        call->sent += written;
        ASSERT_NUMBERS(call->sent, <=, call->head_length + call->body.length);
        http1_call_touch(call);
    }
    bool is_needed = call->may_repeat || call->sent < call->head_length;
    if (is_first && is_needed)
        buffer_append(&call->head, head);
    else if (!is_needed)
        buffer_finish(&call->head);
}

static void go_out(struct http1_call *call, struct str head)
{
    if (call->connection != NULL) {
        start_silence(call);
        http1_call_send_request(call, head,
                                is_in_one_piece(call)
                                    ? str_slice(head.bytes + head.length, call->body.length)
                                    : call->body);
    } else {
        buffer_append(&call->head, head);
        connect_call(call);
    }
}

static void writable(struct http1_call *call)
{
    http1_call_send_request(call, buffer_str(&call->head), call->body);
}

/* ---- the response comes in ---- */

/* Whether bytes are wanted now; heads are not held back by a pause. */
static bool wants_bytes(const struct http1_call *call)
{
    return !call->is_paused || !http1_response_is_in_body(&call->response);
}

/* Keeps the unused bytes: those just read, or the end of those kept before. */
static void http1_call_keep(struct http1_call *call, const char *bytes, size_t length)
{
    if (length == 0)
        buffer_finish(&call->kept);
    else if (call->kept.length == 0)
        buffer_append(&call->kept, str_slice(bytes, length));
    else if (length < call->kept.length)
        buffer_drop(&call->kept, call->kept.length - length);
}

static void http1_call_show(struct http1_call *call, const struct http1_step *step)
{
    const struct http1_head *head = &call->client->head;
    if (step->event == HTTP1_HEAD && call->callbacks.head != NULL)
        call->callbacks.head(call->context, head->status, head->headers, head->count);
    else if (step->event == HTTP1_BODY && call->callbacks.body != NULL)
        call->callbacks.body(call->context, step->body);
}

static void http1_call_take_bytes(struct http1_call *call, char *bytes, size_t length)
{
    struct http1_step step = {.event = HTTP1_MORE};

    ASSERT(!call->is_busy); /* callbacks do not lead back here */
    call->is_busy = true;
    while (wants_bytes(call)) {
        step = http1_response_read(&call->response, &call->client->head, bytes, length);
        ASSERT_NUMBERS(step.used, <=, length);
        bytes += step.used;
        length -= step.used;
        if (step.event != HTTP1_HEAD && step.event != HTTP1_BODY)
            break;
        http1_call_show(call, &step);
        if (call->is_cancelled) {
            http1_call_destroy(call);
            return;
        }
    }
    call->is_busy = false;
    if (step.event == HTTP1_END) {
        http1_call_complete(call, length > 0);
    } else if (step.event == HTTP1_BROKEN) {
        http1_call_fail(call, call->response.fault);
    } else {
        http1_call_keep(call, bytes, length);
        http1_connection_read(call->connection, wants_bytes(call));
    }
}

static void http1_call_take_end(struct http1_call *call, const char *reason)
{
    if (reason == NULL && http1_response_close(&call->response) == HTTP1_END)
        http1_call_complete(call, true);
    else
        lose_connection(call, reason != NULL ? reason : call->response.fault);
}

static void readable(struct http1_call *call)
{
    struct http1_client *client = call->client;
    ssize_t count =
        http1_connection_receive(call->connection, client->read_bytes, HTTP1_READ_BYTES);
    if (count == -1 && errno == EAGAIN)
        return;
    if (count <= 0) {
        http1_call_take_end(call, count == -1 ? strerror(errno) : NULL);
        return;
    }
    call->has_received = true;
    if (call->sent >= call->head_length) /* and will not be repeated any more */
        buffer_finish(&call->head);
    http1_call_touch(call);
    if (call->kept.length == 0) {
        http1_call_take_bytes(call, client->read_bytes, (size_t)count);
    } else {
        buffer_append(&call->kept, str_slice(client->read_bytes, (size_t)count));
        http1_call_take_bytes(call, call->kept.bytes, call->kept.length);
    }
}

static void http1_call_run_deferred(struct http1_call *call)
{
    if (call->refusal != NULL)
        http1_call_fail(call, call->refusal);
    else if (call->kept.length > 0)
        http1_call_take_bytes(call, call->kept.bytes, call->kept.length);
}

/* ---- what the owner asks for ---- */

static void http1_call_cancel_call(struct upstream_call *base)
{
    struct http1_call *call = http1_call_call_of(base);
    if (call->is_ending)
        return;
    call->is_cancelled = true;
    if (!call->is_busy)
        http1_call_destroy(call);
}

static void http1_call_pause_call(struct upstream_call *base)
{
    struct http1_call *call = http1_call_call_of(base);
    call->is_paused = true;
    if (call->connection != NULL && call->connection->is_open)
        http1_connection_read(call->connection, wants_bytes(call));
}

static void http1_call_resume_call(struct upstream_call *base)
{
    struct http1_call *call = http1_call_call_of(base);
    if (!call->is_paused)
        return;
    call->is_paused = false;
    http1_call_touch(call);
    if (call->kept.length > 0)
        http1_client_defer(call->client, call);
    else if (call->connection != NULL && call->connection->is_open)
        http1_connection_read(call->connection, true);
}

static void http1_call_prove(struct upstream_call *base)
{
    http1_call_call_of(base)->needs_proof = false;
}

/* ---- another owner ---- */

static bool http1_call_has_begun(const struct upstream_call *base)
{
    return LIST_ENTRY(base, const struct http1_call, base)->sent > 0;
}

static bool http1_call_has_sent(const struct upstream_call *base)
{
    const struct http1_call *call = LIST_ENTRY(base, const struct http1_call, base);
    return call->body.length == 0 ||
           (!call->may_repeat && call->sent == call->head_length + call->body.length);
}

/* While it connects, the timer is the connection's. */
static void http1_call_set_silence(struct upstream_call *base, int64_t silence_ms)
{
    struct http1_call *call = http1_call_call_of(base);
    call->silence_ms = silence_ms;
    if (call->connection != NULL && call->connection->is_open)
        start_silence(call);
}
