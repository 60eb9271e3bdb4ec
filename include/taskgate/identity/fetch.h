/*
 * HTTP calls to issuers and other services, on a thread and a loop of their own: nothing that these
 * do, or that their TLS and names need, stalls a loop that serves clients.
 *
 * Answers are bounded: 1 MiB, 10 s from the start, no redirect is followed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskgate/core/error.h"
#include "taskgate/core/str.h"
#include "taskgate/http/names.h"
#include "taskgate/loop/loop.h"

#define FETCH_MAX_BYTES ((size_t)1024 * 1024)
#define FETCH_TIMEOUT_MS 10000

struct fetcher;

/* Starts the thread. NULL on failure. */
struct fetcher *fetcher_create(struct error *error);
/* Ends what is under way: its callbacks come with a problem, at the latest when their loops are
 * destroyed, which therefore happens afterwards. NULL is allowed. */
void fetcher_destroy(struct fetcher *fetcher);
struct loop *fetcher_loop(struct fetcher *fetcher);

struct fetch_request {
    const char *method; /* "GET" or "POST" */
    const char *url;    /* secure_url_check() holds of it, or there is a problem for an answer */
    const struct http_header *headers; /* Accept is added */
    size_t header_count;
    struct str body;
}; /* all is copied; bodies and headers may be secrets and are never logged */

struct fetch_answer {
    int status;             /* 0: there was no answer, or a larger one; see `problem` */
    struct str body;        /* valid until the callback returns */
    int64_t max_age_ms;     /* of Cache-Control, 0 for no-store and no-cache; -1: not said */
    int64_t retry_after_ms; /* of Retry-After in seconds; 0: not said */
    const char *problem;    /* the reason, for the log; "" with a status */
};
typedef void (*fetch_callback)(void *context, const struct fetch_answer *answer);

struct fetch;
/* `callback` comes on `loop`, never from inside, exactly once unless the fetch is cancelled. On
 * `loop`'s thread. */
struct fetch *fetch_start(struct fetcher *fetcher, const struct fetch_request *request,
                          struct loop *loop, fetch_callback callback, void *context);
/* No callback comes any more; the call itself ends by itself. On `loop`'s thread, before the
 * callback. NULL is allowed. */
void fetch_cancel(struct fetch *fetch);
