/*
 * What the files of the upstream module share.
 *
 *     client.c   libcurl's multi handle in the loop: sockets, timer, easy handles
 *     call.c     the life of one call
 *     request.c  a request as libcurl's options
 *     head.c     status and headers of a response, line by line
 */
#pragma once

#include <curl/curl.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/list.h"
#include "taskgate/upstream/upstream.h"

/* The head of a response while it comes in. */
struct head {
    int status;         /* 0 before the first status line */
    bool is_complete;   /* what comes later are trailers */
    struct buffer text; /* names and values, one after the other */
    struct header_span *spans;
    size_t count;
    size_t capacity;
};

struct header_span {
    size_t name_at;
    size_t name_length;
    size_t value_at;
    size_t value_length;
};

void head_init(struct head *head);
void head_finish(struct head *head);
/* Takes one line with its end. false: the head is larger than any that makes sense.
 * `is_complete` turns true with the empty line after a final (not 1xx) status. */
bool head_add_line(struct head *head, struct str line);
/* A view of the headers; the caller frees the array. */
struct http_header *head_headers(const struct head *head);

struct upstream_client {
    struct loop *loop;
    CURLM *multi;
    int epoll_fd; /* libcurl's sockets, nested in the loop */
    struct loop_watch *watch;
    struct loop_timer timer; /* libcurl's */

    struct list calls;    /* all of them */
    struct list deferred; /* those to be started, cancelled or resumed outside of libcurl */
    struct loop_timer run_deferred;
    int inside_curl; /* how deep: libcurl calls us, and most of its calls are forbidden */

    CURL **idle; /* easy handles for use again */
    size_t idle_count;
};

struct upstream_call {
    struct list node;     /* in client->calls */
    struct list deferred; /* in client->deferred, or in no list */
    struct upstream_client *client;
    CURL *easy;
    struct curl_slist *request_headers;
    char error_text[CURL_ERROR_SIZE];

    struct upstream_callbacks callbacks;
    void *context;
    struct head head;

    struct loop_timer silence; /* runs when silence_ms > 0 */
    int64_t silence_ms;
    int64_t last_byte_ms; /* monotonic */
    size_t body_length;   /* of the request */
    curl_off_t uploaded;  /* of it, when it was last looked at */

    bool is_post;
    bool is_added;      /* to the multi handle */
    bool is_refused;    /* by us, before anything was sent; error_text says why */
    bool was_attempted; /* a request was about to be sent once before */
    bool is_paused;     /* by the owner */
    bool is_stopped;    /* libcurl was told to hold the body back */
    bool is_cancelled;
    bool is_ending;
};

/* ---- client.c ---- */
CURL *client_take_easy(struct upstream_client *client);
void client_give_easy(struct upstream_client *client, CURL *easy);
/* Has call_run_deferred() called for the call, outside of libcurl. */
void client_defer(struct upstream_client *client, struct upstream_call *call);
/* After every call into libcurl that may have ended transfers. */
void client_collect(struct upstream_client *client);

/* ---- call.c ---- */
void call_run_deferred(struct upstream_call *call);
/* libcurl is done with it. */
void call_done(struct upstream_call *call, CURLcode code);
void call_destroy(struct upstream_call *call);

/* ---- request.c ---- */
/* Sets everything but callbacks on call->easy. false: `error_text` says what is wrong. */
bool request_prepare(struct upstream_call *call, const struct upstream_request *request);
