/* The thread for calls to issuers, and one such call. */
#include "taskgate/identity/fetch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/config/secure_url.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/upstream/upstream.h"

#define IDLE_CONNECTIONS 4

struct fetcher {
    uint32_t magic;    /* FETCHER_MAGIC */
    struct loop *loop; /* of the thread; created and destroyed there */
    struct upstream_client *client;
    struct list fetches; /* begun, on the thread */
    bool is_closed;      /* on the thread */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool has_started, may_end;
    struct error error;
};

struct fetch {
    uint32_t magic;   /* FETCH_MAGIC */
    struct list node; /* in the fetcher, from its begin to its end */
    struct fetcher *fetcher;
    /* Of the caller's loop. */
    struct loop *loop;
    fetch_callback callback; /* NULL when nobody waits any more */
    void *context;
    /* The request. */
    char *method, *url;
    struct http_header *headers;
    size_t header_count;
    struct buffer texts, body;
    /* Of the fetcher's loop, until the answer is posted. */
    struct upstream_call *call;
    struct loop_timer deadline;
    int status;
    int64_t max_age_ms, retry_after_ms;
    struct buffer answer;
    char problem[ERROR_MESSAGE_BYTES];
};

#define FETCHER_MAGIC 0x49444601

static struct fetcher *fetcher_from(void *context)
{
    return MAGIC_CAST(struct fetcher, FETCHER_MAGIC, context);
}

#define FETCH_MAGIC 0x49444602

static struct fetch *fetch_from(void *context)
{
    return MAGIC_CAST(struct fetch, FETCH_MAGIC, context);
}

/* ---- the end ---- */

static void fetch_free(struct fetch *fetch)
{
    free(fetch->method);
    free(fetch->url);
    free(fetch->headers);
    buffer_finish(&fetch->texts);
    buffer_finish(&fetch->body);
    buffer_finish(&fetch->answer);
    MAGIC_CLEAR(fetch);
    free(fetch);
}

/* On the caller's loop. */
static void fetch_deliver(void *context)
{
    struct fetch *fetch = fetch_from(context);
    const struct fetch_answer answer = {.status = fetch->status,
                                        .body = buffer_str(&fetch->answer),
                                        .max_age_ms = fetch->max_age_ms,
                                        .retry_after_ms = fetch->retry_after_ms,
                                        .problem = fetch->problem};
    if (fetch->callback)
        fetch->callback(fetch->context, &answer);
    fetch_free(fetch);
}

/* On the fetcher's loop; its call is over. */
static void fetch_finish(struct fetch *fetch)
{
    ASSERT(!list_is_empty(&fetch->node)); /* it ends once */
    fetch->call = NULL;
    loop_timer_stop(&fetch->deadline);
    list_remove(&fetch->node);
    loop_post(fetch->loop, fetch_deliver, fetch);
}

static void fetch_fail(struct fetch *fetch, const char *problem)
{
    if (fetch->call)
        upstream_call_cancel(fetch->call);
    fetch->status = 0;
    buffer_clear(&fetch->answer);
    snprintf(fetch->problem, sizeof fetch->problem, "%s", problem);
    fetch_finish(fetch);
}

static void fetch_on_deadline(void *context)
{
    fetch_fail(fetch_from(context), "no whole answer within 10 s");
}

/* ---- the answer ---- */

/* RFC 9111 §5.2.2: what may be kept, and how long. */
static int64_t read_max_age(struct str directives)
{
    int64_t max_age_ms = -1;
    struct str directive, name, value;
    while (directives.length) {
        str_cut(directives, ',', &directive, &directives);
        str_cut(str_trim(directive), '=', &name, &value);
        uint64_t seconds;
        if (str_equal_ignore_case(name, STR("no-store")) ||
            str_equal_ignore_case(name, STR("no-cache")))
            return 0;
        if (str_equal_ignore_case(name, STR("max-age")) && str_to_u64(value, &seconds))
            max_age_ms = seconds > INT32_MAX ? INT64_C(1000) * INT32_MAX : (int64_t)seconds * 1000;
    }
    return max_age_ms;
}

static void fetch_on_head(void *context, int status, const struct http_header *headers,
                          size_t count)
{
    struct fetch *fetch = fetch_from(context);
    ASSERT_NUMBERS(fetch->status, ==, 0); /* there is one final head */
    uint64_t seconds;
    fetch->status = status;
    for (size_t i = 0; i < count; i++) {
        if (str_equal(headers[i].name, STR("cache-control")))
            fetch->max_age_ms = read_max_age(headers[i].value);
        if (str_equal(headers[i].name, STR("retry-after")) &&
            str_to_u64(headers[i].value, &seconds) && seconds <= INT32_MAX)
            fetch->retry_after_ms = (int64_t)seconds * 1000;
    }
}

static void fetch_on_body(void *context, struct str bytes)
{
    struct fetch *fetch = fetch_from(context);
    ASSERT_NUMBERS(fetch->answer.length, <=, FETCH_MAX_BYTES);
    if (fetch->answer.length + bytes.length > FETCH_MAX_BYTES)
        fetch_fail(fetch, "the answer is larger than 1 MiB");
    else
        buffer_append(&fetch->answer, bytes);
}

static void fetch_on_end(void *context, enum upstream_result result, const char *detail)
{
    struct fetch *fetch = fetch_from(context);
    fetch->call = NULL;
    if (result == UPSTREAM_DONE)
        fetch_finish(fetch);
    else
        fetch_fail(fetch, detail && *detail ? detail : "the connection broke");
}

/* ---- the beginning ---- */

static void fetch_begin(void *context)
{
    static const struct upstream_callbacks callbacks = {fetch_on_head, fetch_on_body, fetch_on_end};
    struct fetch *fetch = fetch_from(context);
    struct error error = {0};
    list_append(&fetch->fetcher->fetches, &fetch->node);
    loop_timer_init(&fetch->deadline, fetch->fetcher->loop, fetch_on_deadline, fetch);
    if (fetch->fetcher->is_closed) {
        fetch_fail(fetch, "the process ends");
        return;
    }
    if (!secure_url_check(str_from(fetch->url), &error) || !upstream_prepare(fetch->url, &error)) {
        fetch_fail(fetch, error.message);
        return;
    }
    const struct upstream_request request = {.method = fetch->method,
                                             .url = fetch->url,
                                             .headers = fetch->headers,
                                             .header_count = fetch->header_count,
                                             .body = buffer_str(&fetch->body),
                                             .silence_timeout_ms = FETCH_TIMEOUT_MS};
    fetch->call = upstream_call_start(fetch->fetcher->client, &request, &callbacks, fetch);
    loop_timer_start(&fetch->deadline, FETCH_TIMEOUT_MS);
}

static void fetch_copy_headers(struct fetch *fetch, const struct fetch_request *request)
{
    size_t length = 0;
    for (size_t i = 0; i < request->header_count; i++)
        length += request->headers[i].name.length + request->headers[i].value.length;
    buffer_reserve(&fetch->texts, length + 1); /* so that it never moves */
    fetch->headers = memory_alloc_array(request->header_count + 1, sizeof(*fetch->headers));
    fetch->headers[0] = (struct http_header){STR("Accept"), STR("application/json")};
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *from = &request->headers[i];
        char *at = fetch->texts.bytes + fetch->texts.length;
        buffer_append(&fetch->texts, from->name);
        buffer_append(&fetch->texts, from->value);
        fetch->headers[i + 1] =
            (struct http_header){str_slice(at, from->name.length),
                                 str_slice(at + from->name.length, from->value.length)};
    }
    fetch->header_count = request->header_count + 1;
    ASSERT_NUMBERS(fetch->texts.length, ==, length); /* the headers point into it */
}

struct fetch *fetch_start(struct fetcher *fetcher, const struct fetch_request *request,
                          struct loop *loop, fetch_callback callback, void *context)
{
    ASSERT(loop);
    struct fetch *fetch = memory_alloc(sizeof(*fetch));
    MAGIC_SET(fetch, FETCH_MAGIC);
    fetch->fetcher = fetcher;
    fetch->loop = loop;
    fetch->callback = callback;
    fetch->context = context;
    fetch->method = memory_copy_text(request->method);
    fetch->url = memory_copy_text(request->url);
    fetch_copy_headers(fetch, request);
    buffer_append(&fetch->body, request->body);
    fetch->max_age_ms = -1;
    list_init(&fetch->node);
    loop_post(fetcher->loop, fetch_begin, fetch);
    return fetch;
}

void fetch_cancel(struct fetch *fetch)
{
    if (fetch)
        fetch->callback = NULL;
}

/* ---- the thread ---- */

static void set_flag(struct fetcher *fetcher, bool *flag)
{
    pthread_mutex_lock(&fetcher->lock);
    *flag = true;
    pthread_cond_signal(&fetcher->changed);
    pthread_mutex_unlock(&fetcher->lock);
}

static void await_flag(struct fetcher *fetcher, const bool *flag)
{
    pthread_mutex_lock(&fetcher->lock);
    while (!*flag)
        pthread_cond_wait(&fetcher->changed, &fetcher->lock);
    pthread_mutex_unlock(&fetcher->lock);
}

static void *fetch_run(void *context)
{
    struct fetcher *fetcher = fetcher_from(context);
    fetcher->loop = loop_create(&fetcher->error);
    if (fetcher->loop)
        fetcher->client = upstream_client_create(fetcher->loop, IDLE_CONNECTIONS, &fetcher->error);
    set_flag(fetcher, &fetcher->has_started);
    if (!fetcher->client) {
        loop_destroy(fetcher->loop);
        return NULL;
    }
    loop_run(fetcher->loop);
    await_flag(fetcher,
               &fetcher->may_end); /* the thread that stops a loop still uses it afterwards */
    fetcher->is_closed = true;
    LIST_FOR_EACH_SAFE (node, next, &fetcher->fetches)
        fetch_fail(LIST_ENTRY(node, struct fetch, node), "the process ends");
    ASSERT(list_is_empty(&fetcher->fetches)); /* each was answered */
    upstream_client_destroy(fetcher->client);
    loop_destroy(fetcher->loop);
    return NULL;
}

struct fetcher *fetcher_create(struct error *error)
{
    struct fetcher *fetcher = memory_alloc(sizeof(*fetcher));
    MAGIC_SET(fetcher, FETCHER_MAGIC);
    list_init(&fetcher->fetches);
    pthread_mutex_init(&fetcher->lock, NULL);
    pthread_cond_init(&fetcher->changed, NULL);
    int code = pthread_create(&fetcher->thread, NULL, fetch_run, fetcher);
    if (code != 0) {
        error_set(error, "cannot start the thread for calls to issuers: %s", strerror(code));
        free(fetcher);
        return NULL;
    }
    await_flag(fetcher, &fetcher->has_started);
    if (!fetcher->client) {
        pthread_join(fetcher->thread, NULL);
        error_set(error, "%s", fetcher->error.message);
        free(fetcher);
        return NULL;
    }
    return fetcher;
}

void fetcher_destroy(struct fetcher *fetcher)
{
    if (!fetcher)
        return;
    loop_stop(fetcher->loop);
    set_flag(fetcher, &fetcher->may_end);
    pthread_join(fetcher->thread, NULL);
    pthread_mutex_destroy(&fetcher->lock);
    pthread_cond_destroy(&fetcher->changed);
    MAGIC_CLEAR(fetcher);
    free(fetcher);
}

struct loop *fetcher_loop(struct fetcher *fetcher)
{
    return fetcher->loop;
}
