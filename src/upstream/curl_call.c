/*
 * The life of one call: started, answered piece by piece, paused, ended or cancelled.
 *
 * libcurl calls us while it works on a transfer and then takes almost no call itself. A request of
 * the owner's callback (start, cancel, resume) is noted meanwhile and done in the loop's next
 * round; a cancelled call is silent from the moment it was cancelled.
 */
#include <stdio.h>
#include <stdlib.h>

#include "curl_client.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "upstream_internal.h"

/*
 * Status and headers of a response, as libcurl gives them: one line at a time.
 */

#define MAX_HEAD_BYTES ((size_t)256 * 1024)
#define MAX_HEADERS 1000

void curl_head_init(struct curl_head *head)
{
    *head = (struct curl_head){.status = 0};
    buffer_init(&head->text);
}

void curl_head_finish(struct curl_head *head)
{
    buffer_finish(&head->text);
    free(head->spans);
}

static void head_start_over(struct curl_head *head, int status)
{
    head->status = status;
    head->count = 0;
    buffer_clear(&head->text);
}

/* "HTTP/1.1 404 Not Found"; 0 when it is none. */
static int parse_status(struct str line)
{
    struct str version, rest;
    if (!str_starts_with(line, STR("HTTP/")) || !str_cut(line, ' ', &version, &rest) ||
        rest.length < 3)
        return 0;
    uint64_t status;
    return str_to_u64(str_slice(rest.bytes, 3), &status) && status >= 100 ? (int)status : 0;
}

static size_t curl_call_append_lower(struct buffer *text, struct str s)
{
    size_t at = text->length;
    for (size_t i = 0; i < s.length; i++) {
        int c = (unsigned char)s.bytes[i];
        if (c >= 'A' && c <= 'Z')
            c += 'a' - 'A';
        buffer_append_char(text, (char)c);
    }
    return at;
}

static void add_header(struct curl_head *head, struct str name, struct str value)
{
    if (head->count == head->capacity) {
        head->capacity = head->capacity == 0 ? 16 : 2 * head->capacity;
        head->spans =
            memory_grow_array(head->spans, head->capacity, sizeof(struct curl_header_span));
    }
    struct curl_header_span *span = &head->spans[head->count++];
    span->name_at = curl_call_append_lower(&head->text, name);
    span->name_length = name.length;
    span->value_at = head->text.length;
    span->value_length = value.length;
    buffer_append(&head->text, value);
}

const char *curl_head_add_line(struct curl_head *head, struct str line)
{
    if (head->is_complete)
        return NULL;
    /* Before the line is trimmed: a blank line does not end a head, nor begins " HTTP/" one. */
    if (str_starts_with(line, STR(" ")) || str_starts_with(line, STR("\t")))
        return "the response has a folded header";
    line = str_trim(line);
    if (head->text.length + line.length > MAX_HEAD_BYTES || head->count >= MAX_HEADERS)
        return "the response headers are too large";

    int status = parse_status(line);
    struct str name, value;
    if (status != 0)
        head_start_over(head, status);
    else if (line.length == 0)
        head->is_complete = head->status >= 200;
    else if (str_starts_with(line, STR(":")))
        return "a response header has no name";
    else if (str_cut(line, ':', &name, &value))
        add_header(head, str_trim(name), str_trim(value));
    return NULL;
}

struct http_header *curl_head_headers(const struct curl_head *head)
{
    struct http_header *headers = memory_alloc_array(head->count + 1, sizeof(*headers));
    for (size_t i = 0; i < head->count; i++) {
        const struct curl_header_span *span = &head->spans[i];
        headers[i].name = str_slice(head->text.bytes + span->name_at, span->name_length);
        headers[i].value = str_slice(head->text.bytes + span->value_at, span->value_length);
    }
    return headers;
}

/*
 * The body of a response, out of what libcurl gives: the chunked coding is taken off here.
 *
 * libcurl 7.88 drops bytes that follow the last chunk and keeps the connection. The dropped bytes
 * may be the first half of another answer, and the next request would get the rest.
 */

/* The head is complete. NULL, or why the body cannot be read. */
static const char *curl_body_start(struct curl_body *body, const struct curl_head *head)
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

/* Makes `data` the body's own bytes: a view of what it was, or of `decoded`. NULL, or what is
 * wrong. */
/* libcurl reads the coding itself after it has given the bytes, so that they are not to change. */
static const char *curl_body_decode(struct curl_body *body, struct buffer *decoded,
                                    struct str *data)
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

/* Whether a response may end here. */
static bool curl_body_is_complete(const struct curl_body *body)
{
    return !body->is_chunked || body->is_empty || body->chunks.state == HTTP1_CHUNKS_DONE;
}

/*
 * A request as libcurl's options.
 */

#define UPLOAD_BUFFER_BYTES 16384L

/* libcurl copies texts. Without this one it would go on with what it had: another method, or the
 * proxy of the environment. */
#define SET(easy, option, value)                                                                   \
    do {                                                                                           \
        if (curl_easy_setopt(easy, option, value) == CURLE_OUT_OF_MEMORY)                          \
            memory_exhausted();                                                                    \
    } while (false)

static void curl_call_add_line(struct curl_call *call, const char *line)
{
    struct curl_slist *longer = curl_slist_append(call->request_headers, line);
    if (longer == NULL)
        memory_exhausted();
    call->request_headers = longer;
}

static bool add_headers(struct curl_call *call, const struct upstream_request *request)
{
    /* libcurl adds these by itself unless told otherwise ("Name:" takes one out). */
    bool has_accept = false;
    bool has_content_type = false;

    for (size_t i = 0; i < request->header_count; i++) {
        struct str name = request->headers[i].name;
        struct str value = request->headers[i].value;
        if (!request_header_is_valid(&request->headers[i])) {
            snprintf(call->error_text, sizeof(call->error_text), REQUEST_HEADER_MALFORMED);
            return false;
        }
        if (request_header_is_left_out(&request->headers[i]))
            continue;
        has_accept |= str_equal_ignore_case(name, STR("accept"));
        has_content_type |= str_equal_ignore_case(name, STR("content-type"));
        /* For libcurl "Name;" is a header without a value. */
        char *line = value.length == 0
                         ? memory_format("%.*s;", STR_ARGS(name))
                         : memory_format("%.*s: %.*s", STR_ARGS(name), STR_ARGS(value));
        curl_call_add_line(call, line);
        free(line);
    }
    curl_call_add_line(call, "Expect:");
    if (!has_accept)
        curl_call_add_line(call, "Accept:");
    if (!has_content_type)
        curl_call_add_line(call, "Content-Type:");
    return true;
}

static void set_method(CURL *easy, const struct upstream_request *request, bool is_post)
{
    if (is_post || request->body.length > 0) {
        SET(easy, CURLOPT_POST, 1L);
        SET(easy, CURLOPT_POSTFIELDS, request->body.length > 0 ? request->body.bytes : "");
        SET(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.length);
    } else {
        SET(easy, CURLOPT_HTTPGET, 1L);
    }
    SET(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static void set_blob(CURL *easy, CURLoption option, struct str text)
{
    struct curl_blob blob = {(char *)text.bytes, text.length, CURL_BLOB_NOCOPY};
    if (text.bytes != NULL)
        SET(easy, option, &blob);
}

/* libcurl keeps connections of other certificates apart from these. */
static void curl_call_set_tls(CURL *easy, const struct tls_client *tls)
{
    SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (tls == NULL)
        return;
    /* Besides a text, libcurl would go on with the system's folder. */
    if (tls->ca.bytes != NULL)
        SET(easy, CURLOPT_CAPATH, (char *)NULL);
    set_blob(easy, CURLOPT_CAINFO_BLOB, tls->ca);
    set_blob(easy, CURLOPT_SSLCERT_BLOB, tls->cert);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, tls->key);
}

/* Sets everything but callbacks on call->easy. false: `error_text` says what is wrong. */
static bool curl_request_prepare(struct curl_call *call, const struct upstream_request *request)
{
    CURL *easy = call->easy;

    if (!add_headers(call, request))
        return false;
    SET(easy, CURLOPT_HTTPHEADER, call->request_headers);
    SET(easy, CURLOPT_URL, request->url); /* copied */
    SET(easy, CURLOPT_PATH_AS_IS, 1L);
    set_method(easy, request, call->is_post);

    curl_call_set_tls(easy, call->tls);

    SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(easy, CURLOPT_HTTP_TRANSFER_DECODING, 0L); /* see curl_body_decode() */
    SET(easy, CURLOPT_FOLLOWLOCATION, 0L);
    SET(easy, CURLOPT_PROXY, ""); /* no proxy of the environment */
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    SET(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(easy, CURLOPT_TCP_KEEPIDLE, (long)UPSTREAM_KEEPALIVE_IDLE_S);
    SET(easy, CURLOPT_TCP_KEEPINTVL, (long)UPSTREAM_KEEPALIVE_INTERVAL_S);
#if CURL_AT_LEAST_VERSION(8, 9, 0)
    SET(easy, CURLOPT_TCP_KEEPCNT, (long)UPSTREAM_KEEPALIVE_PROBES);
#endif
    SET(easy, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER_BYTES);
    SET(easy, CURLOPT_CONNECTTIMEOUT_MS,
        request->connect_timeout_ms > 0 ? (long)request->connect_timeout_ms
                                        : (long)UPSTREAM_CONNECT_TIMEOUT_MS);
    /* Else the loop would wait for a resolver's thread when its call ends first. */
    SET(easy, CURLOPT_QUICK_EXIT, 1L);
    return true;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context);
static size_t curl_call_on_body(char *bytes, size_t size, size_t count, void *context);
static int on_before_request(void *context, char *remote_ip, char *local_ip, int remote_port,
                             int local_port);
static void on_silence(void *context);
static void curl_call_add(struct curl_call *call);
static void curl_call_cancel_call(struct upstream_call *base);
static void curl_call_pause_call(struct upstream_call *base);
static void curl_call_resume_call(struct upstream_call *base);
static void curl_call_prove(struct upstream_call *base);
static bool curl_call_has_begun(const struct upstream_call *base);
static bool curl_call_has_sent(const struct upstream_call *base);
static void curl_call_set_silence(struct upstream_call *base, int64_t silence_ms);

static void curl_call_run_deferred(struct curl_call *call);
static void curl_call_finish(struct curl_call *call, CURLcode code);
static void curl_call_destroy(struct curl_call *call);

static const struct curl_call_events events = {curl_call_run_deferred, curl_call_finish,
                                               curl_call_destroy};
static const struct upstream_implementation implementation = {
    curl_call_cancel_call, curl_call_pause_call, curl_call_resume_call, curl_call_prove,
    curl_call_has_begun,   curl_call_has_sent,   curl_call_set_silence,
};

/* One for each transfer: after curl_easy_reset() libcurl 7.88 still points to the last header of
 * the transfer before, whose memory it has freed, and appends a folded first line to it. */
static CURL *create_easy(void)
{
    CURL *easy = curl_easy_init();
    if (easy == NULL)
        memory_exhausted();
    return easy;
}

struct upstream_call *curl_call_start(struct curl_client *client,
                                      const struct upstream_request *request,
                                      const struct upstream_callbacks *callbacks, void *context)
{
    struct curl_call *call = memory_alloc(sizeof(*call));
    MAGIC_SET(call, CURL_CALL_MAGIC);
    call->base.implementation = &implementation;
    call->events = &events;
    call->client = client;
    call->callbacks = *callbacks;
    call->context = context;
    call->owner = request->owner.length > 0 ? memory_copy_str(request->owner) : NULL;
    call->easy = create_easy();
    call->tls = tls_client_ref(request->tls);
    call->is_post = str_equal(str_from(request->method), STR("POST"));
    call->body_length = request->body.length;
    call->silence_ms = request->silence_timeout_ms;
    call->last_byte_ms = clock_monotonic_ms();
    curl_head_init(&call->head);
    list_init(&call->deferred);
    list_append(&client->calls, &call->node);
    loop_timer_init(&call->silence, client->loop, on_silence, call);

    call->is_refused = !curl_request_prepare(call, request);
    curl_easy_setopt(call->easy, CURLOPT_FORBID_REUSE, request->needs_proof ? 1L : 0L);
    curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
    curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->error_text);
    curl_easy_setopt(call->easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(call->easy, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, curl_call_on_body);
    curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(call->easy, CURLOPT_PREREQFUNCTION, on_before_request);
    curl_easy_setopt(call->easy, CURLOPT_PREREQDATA, call);
    if (call->is_refused || client->inside_curl > 0)
        curl_client_defer(client, call);
    else
        curl_call_add(call);
    return &call->base;
}

static struct curl_call *curl_call_call_of(struct upstream_call *base)
{
    return curl_call_from(LIST_ENTRY(base, struct curl_call, base));
}

/* ---- callbacks of libcurl ---- */

static void curl_call_touch(struct curl_call *call)
{
    call->last_byte_ms = clock_monotonic_ms();
}

static bool something_was_sent(const struct curl_call *call)
{
    long bytes = 0;
    curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &bytes);
    return bytes > 0;
}

/* A connection is open and the request is about to go out. libcurl comes here a second time when a
 * connection kept from before broke without a byte of an answer: it would send a POST again that
 * the server may have acted upon (behaviour 3.9). */
static int on_before_request(void *context, char *remote_ip, char *local_ip, int remote_port,
                             int local_port)
{
    struct curl_call *call = curl_call_from(context);
    bool is_again = call->was_attempted;
    call->was_attempted = true;
    if (is_again && call->is_post && something_was_sent(call)) {
        call->fault = "the connection was closed after the request was sent";
        return CURL_PREREQFUNC_ABORT;
    }
    call->met_unread = !is_again && curl_pool_drop_unread(call->pool);
    if (call->met_unread)
        return CURL_PREREQFUNC_ABORT;
    return call->is_cancelled ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct curl_call *call = curl_call_from(context);
    const size_t length = size * count;

    if (call->is_cancelled)
        return 0;
    curl_call_touch(call);
    if (call->head.is_complete)
        return length; /* a trailer */
    const char *fault = curl_head_add_line(&call->head, str_slice(bytes, length));
    if (fault == NULL && call->head.is_complete)
        fault = curl_body_start(&call->body, &call->head);
    if (fault != NULL) {
        call->fault = fault;
        return 0;
    }
    if (call->head.is_complete && call->callbacks.head != NULL) {
        struct http_header *headers = curl_head_headers(&call->head);
        call->callbacks.head(call->context, call->head.status, headers, call->head.count);
        free(headers);
    }
    return call->is_cancelled ? 0 : length;
}

static size_t curl_call_on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct curl_call *call = curl_call_from(context);
    const size_t length = size * count;

    if (call->is_cancelled)
        return 0;
    if (call->is_paused) {
        /* libcurl keeps this piece, gives it again later, and reads no more until then. */
        call->is_stopped = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    curl_call_touch(call);
    struct str data = str_slice(bytes, length);
    const char *fault = curl_body_decode(&call->body, &call->client->decoded, &data);
    if (data.length > 0 && call->callbacks.body != NULL)
        call->callbacks.body(call->context, data);
    if (call->is_cancelled)
        return 0;
    if (fault != NULL) {
        call->fault = fault;
        return 0;
    }
    if (call->body.has_rest)
        curl_easy_setopt(call->easy, CURLOPT_FORBID_REUSE, 1L);
    return length;
}

/* ---- the end ---- */

static void curl_call_destroy(struct curl_call *call)
{
    loop_timer_stop(&call->silence);
    if (call->is_added)
        curl_multi_remove_handle(call->pool->multi, call->easy);
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->request_headers);
    tls_client_unref(call->tls);
    curl_head_finish(&call->head);
    list_remove(&call->deferred);
    list_remove(&call->node);
    if (call->pool != NULL)
        curl_client_leave_pool(call->pool);
    free(call->owner);
    MAGIC_CLEAR(call);
    free(call);
}

static void curl_call_end(struct curl_call *call, enum upstream_result result, const char *detail)
{
    call->is_ending = true;
    loop_timer_stop(&call->silence);
    if (call->is_added)
        curl_multi_remove_handle(call->pool->multi, call->easy);
    call->is_added = false;
    if (!call->is_cancelled && call->callbacks.end != NULL)
        call->callbacks.end(call->context, result, detail);
    curl_call_destroy(call);
}

static enum upstream_result failure(struct curl_call *call)
{
    return something_was_sent(call) ? UPSTREAM_GONE : UPSTREAM_CONNECT_FAILED;
}

/* libcurl has closed the connection that it had chosen. */
static void start_over(struct curl_call *call)
{
    curl_multi_remove_handle(call->pool->multi, call->easy);
    call->met_unread = call->was_attempted = call->is_added = false;
    call->error_text[0] = '\0';
    curl_call_add(call);
}

static void curl_call_finish(struct curl_call *call, CURLcode code)
{
    if (code == CURLE_ABORTED_BY_CALLBACK && call->met_unread && !call->is_cancelled)
        start_over(call);
    else if (code == CURLE_OK && call->head.is_complete && curl_body_is_complete(&call->body))
        curl_call_end(call, UPSTREAM_DONE, "");
    else if (code == CURLE_OK && call->head.is_complete)
        curl_call_end(call, UPSTREAM_GONE, "the connection was closed within the response body");
    else if (code == CURLE_OK) /* for libcurl a response may end within its headers */
        curl_call_end(call, UPSTREAM_GONE, "the connection was closed within the response headers");
    else
        curl_call_end(call, failure(call),
                      call->fault != NULL           ? call->fault
                      : call->error_text[0] != '\0' ? call->error_text
                                                    : curl_easy_strerror(code));
}

/* A body that is still going out is life, too. */
static bool upload_moved(struct curl_call *call)
{
    curl_off_t uploaded = 0;
    curl_easy_getinfo(call->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
    bool moved = uploaded != call->uploaded && (uint64_t)uploaded < call->body_length;
    call->uploaded = uploaded;
    return moved;
}

/* The timer is not moved with every byte: when it runs out it looks how old the last is. */
static void on_silence(void *context)
{
    struct curl_call *call = curl_call_from(context);
    int64_t silent_ms = clock_monotonic_ms() - call->last_byte_ms;

    if (call->is_paused || call->is_stopped || upload_moved(call)) {
        loop_timer_start(&call->silence, call->silence_ms);
    } else if (silent_ms < call->silence_ms) {
        loop_timer_start(&call->silence, call->silence_ms - silent_ms);
    } else {
        bool was_sent = something_was_sent(call);
        curl_call_end(call, was_sent ? UPSTREAM_SILENT : UPSTREAM_CONNECT_FAILED,
                      was_sent ? "no byte came within the time limit"
                               : "no connection within the time limit");
    }
}

/* ---- what the owner asks for ---- */

static void curl_call_add(struct curl_call *call)
{
    struct curl_client *client = call->client;
    struct error error = {""};

    if (call->pool == NULL)
        call->pool = curl_client_enter_pool(client, call->owner, &error);
    if (call->pool == NULL) {
        snprintf(call->error_text, sizeof(call->error_text), "%.*s",
                 (int)sizeof(call->error_text) - 1, error.message);
        call->is_refused = true;
        curl_client_defer(client, call);
        return;
    }
    if (call->silence_ms > 0)
        loop_timer_start(&call->silence, call->silence_ms);
    client->inside_curl++;
    CURLMcode code = curl_multi_add_handle(call->pool->multi, call->easy);
    client->inside_curl--;
    call->is_added = true;
    if (code != CURLM_OK)
        memory_exhausted(); /* nothing else can be missing */
}

static void continue_body(struct curl_call *call)
{
    struct curl_client *client = call->client;

    call->is_stopped = false;
    curl_call_touch(call);
    client->inside_curl++;
    curl_easy_pause(call->easy, CURLPAUSE_CONT); /* gives what it kept, before it returns */
    client->inside_curl--;
    curl_pool_collect(call->pool); /* may be the end of the call */
}

static void curl_call_run_deferred(struct curl_call *call)
{
    if (call->is_cancelled)
        curl_call_destroy(call);
    else if (call->is_refused)
        curl_call_end(call, UPSTREAM_CONNECT_FAILED, call->error_text);
    else if (!call->is_added)
        curl_call_add(call);
    else if (call->is_stopped && !call->is_paused)
        continue_body(call);
}

static void curl_call_cancel_call(struct upstream_call *base)
{
    struct curl_call *call = curl_call_call_of(base);
    if (call->is_ending || call->is_cancelled)
        return;
    call->is_cancelled = true;
    if (call->client->inside_curl > 0)
        curl_client_defer(call->client, call);
    else
        curl_call_destroy(call);
}

static void curl_call_pause_call(struct upstream_call *base)
{
    curl_call_call_of(base)->is_paused = true;
}

static void curl_call_resume_call(struct upstream_call *base)
{
    struct curl_call *call = curl_call_call_of(base);
    if (!call->is_paused)
        return;
    call->is_paused = false;
    curl_call_touch(call);
    if (call->is_stopped)
        curl_client_defer(call->client, call);
}

/* A body with more behind it forbids it again, later (curl_call_on_body()). */
static void curl_call_prove(struct upstream_call *base)
{
    curl_easy_setopt(curl_call_call_of(base)->easy, CURLOPT_FORBID_REUSE, 0L);
}

/* ---- another owner ---- */

static bool curl_call_has_begun(const struct upstream_call *base)
{
    return something_was_sent(LIST_ENTRY(base, const struct curl_call, base));
}

/* A POST that has gone out once is not sent again (on_before_request()). */
static bool curl_call_has_sent(const struct upstream_call *base)
{
    const struct curl_call *call = LIST_ENTRY(base, const struct curl_call, base);
    curl_off_t uploaded = 0;
    curl_easy_getinfo(call->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
    return call->body_length == 0 || (call->is_post && (uint64_t)uploaded == call->body_length);
}

static void curl_call_set_silence(struct upstream_call *base, int64_t silence_ms)
{
    struct curl_call *call = curl_call_call_of(base);
    call->silence_ms = silence_ms;
    curl_call_touch(call);
    if (silence_ms == 0)
        loop_timer_stop(&call->silence);
    else if (call->is_added)
        loop_timer_start(&call->silence, silence_ms);
}
