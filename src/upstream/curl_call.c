/*
 * The life of one call: started, answered piece by piece, paused, ended or cancelled.
 *
 * libcurl calls us while it works on a transfer and then takes almost no call itself. A request of
 * the owner's callback (start, cancel, resume) is noted meanwhile and done in the loop's next
 * round; a cancelled call is silent from the moment it was cancelled.
 */
#include <stdio.h>
#include <stdlib.h>

#include "curl_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

static size_t on_header(char *bytes, size_t size, size_t count, void *context);
static size_t on_body(char *bytes, size_t size, size_t count, void *context);
static int on_before_request(void *context, char *remote_ip, char *local_ip, int remote_port,
                             int local_port);
static void on_silence(void *context);
static void add(struct curl_call *call);
static void cancel_call(struct upstream_call *base);
static void pause_call(struct upstream_call *base);
static void resume_call(struct upstream_call *base);
static void prove(struct upstream_call *base);
static bool has_begun(const struct upstream_call *base);
static bool has_sent(const struct upstream_call *base);
static void hand_over(struct upstream_call *base, const struct upstream_callbacks *callbacks,
                      void *context);
static void set_silence(struct upstream_call *base, int64_t silence_ms);

static void run_deferred(struct curl_call *call);
static void finish(struct curl_call *call, CURLcode code);
static void destroy(struct curl_call *call);

static const struct curl_call_events events = {run_deferred, finish, destroy};
static const struct upstream_implementation implementation = {
    cancel_call, pause_call, resume_call, prove, has_begun, has_sent, hand_over, set_silence,
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
    curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(call->easy, CURLOPT_PREREQFUNCTION, on_before_request);
    curl_easy_setopt(call->easy, CURLOPT_PREREQDATA, call);
    if (call->is_refused || client->inside_curl > 0)
        curl_client_defer(client, call);
    else
        add(call);
    return &call->base;
}

static struct curl_call *call_of(struct upstream_call *base)
{
    return curl_call_from(LIST_ENTRY(base, struct curl_call, base));
}

/* ---- callbacks of libcurl ---- */

static void touch(struct curl_call *call)
{
    call->last_byte_ms = clock_monotonic_ms();
}

static bool something_was_sent(const struct curl_call *call)
{
    long bytes = 0;
    curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &bytes);
    return bytes > 0;
}

/* A connection stands and the request is about to go out. libcurl comes here a second time
 * when a connection kept from before broke without a byte of an answer: it would send a POST
 * again that the server may have acted upon (design invariant 4). */
static int on_before_request(void *context, char *remote_ip, char *local_ip, int remote_port,
                             int local_port)
{
    struct curl_call *call = curl_call_from(context);
    bool is_again = call->was_attempted;
    call->was_attempted = true;
    if (is_again && call->is_post && something_was_sent(call)) {
        snprintf(call->error_text, sizeof(call->error_text),
                 "the connection was closed after the request was sent");
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
    touch(call);
    if (call->head.is_complete)
        return length; /* a trailer */
    const char *fault = curl_head_add_line(&call->head, str_slice(bytes, length));
    if (fault == NULL && call->head.is_complete)
        fault = curl_body_start(&call->body, &call->head);
    if (fault != NULL) {
        snprintf(call->error_text, sizeof(call->error_text), "%s", fault);
        return 0;
    }
    if (call->head.is_complete && call->callbacks.head != NULL) {
        struct http_header *headers = curl_head_headers(&call->head);
        call->callbacks.head(call->context, call->head.status, headers, call->head.count);
        free(headers);
    }
    return call->is_cancelled ? 0 : length;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
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
    touch(call);
    struct str data = str_slice(bytes, length);
    const char *fault = curl_body_decode(&call->body, &call->client->decoded, &data);
    if (data.length > 0 && call->callbacks.body != NULL)
        call->callbacks.body(call->context, data);
    if (call->is_cancelled)
        return 0;
    if (fault != NULL) {
        snprintf(call->error_text, sizeof(call->error_text), "%s", fault);
        return 0;
    }
    if (call->body.has_rest)
        curl_easy_setopt(call->easy, CURLOPT_FORBID_REUSE, 1L);
    return length;
}

/* ---- the end ---- */

static void destroy(struct curl_call *call)
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

static void end(struct curl_call *call, enum upstream_result result, const char *detail)
{
    call->is_ending = true;
    loop_timer_stop(&call->silence);
    if (call->is_added)
        curl_multi_remove_handle(call->pool->multi, call->easy);
    call->is_added = false;
    if (!call->is_cancelled && call->callbacks.end != NULL)
        call->callbacks.end(call->context, result, detail);
    destroy(call);
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
    add(call);
}

static void finish(struct curl_call *call, CURLcode code)
{
    if (code == CURLE_ABORTED_BY_CALLBACK && call->met_unread && !call->is_cancelled)
        start_over(call);
    else if (code == CURLE_OK && call->head.is_complete && curl_body_is_complete(&call->body))
        end(call, UPSTREAM_DONE, "");
    else if (code == CURLE_OK && call->head.is_complete)
        end(call, UPSTREAM_GONE, "the connection was closed within the response body");
    else if (code == CURLE_OK) /* for libcurl a response may end within its headers */
        end(call, UPSTREAM_GONE, "the connection was closed within the response headers");
    else
        end(call, failure(call),
            call->error_text[0] != '\0' ? call->error_text : curl_easy_strerror(code));
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
        end(call, was_sent ? UPSTREAM_SILENT : UPSTREAM_CONNECT_FAILED,
            was_sent ? "no byte came within the time limit"
                     : "no connection within the time limit");
    }
}

/* ---- what the owner asks for ---- */

static void add(struct curl_call *call)
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
    touch(call);
    client->inside_curl++;
    curl_easy_pause(call->easy, CURLPAUSE_CONT); /* gives what it kept, before it returns */
    client->inside_curl--;
    curl_pool_collect(call->pool); /* may be the end of the call */
}

static void run_deferred(struct curl_call *call)
{
    if (call->is_cancelled)
        destroy(call);
    else if (call->is_refused)
        end(call, UPSTREAM_CONNECT_FAILED, call->error_text);
    else if (!call->is_added)
        add(call);
    else if (call->is_stopped && !call->is_paused)
        continue_body(call);
}

static void cancel_call(struct upstream_call *base)
{
    struct curl_call *call = call_of(base);
    if (call->is_ending || call->is_cancelled)
        return;
    call->is_cancelled = true;
    if (call->client->inside_curl > 0)
        curl_client_defer(call->client, call);
    else
        destroy(call);
}

static void pause_call(struct upstream_call *base)
{
    call_of(base)->is_paused = true;
}

static void resume_call(struct upstream_call *base)
{
    struct curl_call *call = call_of(base);
    if (!call->is_paused)
        return;
    call->is_paused = false;
    touch(call);
    if (call->is_stopped)
        curl_client_defer(call->client, call);
}

/* A body with more behind it forbids it again, later (on_body()). */
static void prove(struct upstream_call *base)
{
    curl_easy_setopt(call_of(base)->easy, CURLOPT_FORBID_REUSE, 0L);
}

/* ---- another owner ---- */

static bool has_begun(const struct upstream_call *base)
{
    return something_was_sent(LIST_ENTRY(base, const struct curl_call, base));
}

/* A POST that has gone out once is not sent again (on_before_request()). */
static bool has_sent(const struct upstream_call *base)
{
    const struct curl_call *call = LIST_ENTRY(base, const struct curl_call, base);
    curl_off_t uploaded = 0;
    curl_easy_getinfo(call->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
    return call->body_length == 0 || (call->is_post && (uint64_t)uploaded == call->body_length);
}

static void hand_over(struct upstream_call *base, const struct upstream_callbacks *callbacks,
                      void *context)
{
    struct curl_call *call = call_of(base);
    call->callbacks = *callbacks;
    call->context = context;
}

static void set_silence(struct upstream_call *base, int64_t silence_ms)
{
    struct curl_call *call = call_of(base);
    call->silence_ms = silence_ms;
    touch(call);
    if (silence_ms == 0)
        loop_timer_stop(&call->silence);
    else if (call->is_added)
        loop_timer_start(&call->silence, silence_ms);
}
