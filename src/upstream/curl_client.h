/*
 * Shared by the files of the implementation by libcurl.
 *
 *     curl_client.c    the client of one loop: pools by owner, what is put off, the end
 *     curl_call.c      the life of one call
 */
#pragma once

#include "taskgate/core/buffer.h"
#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/map.h"
#include "taskgate/upstream/curl_library.h"

#include "http1_response.h"
#include "upstream_internal.h"

/* The head of a response while it comes in. */
struct curl_head {
    int status;         /* 0 before the first status line */
    bool is_complete;   /* later headers are trailers */
    struct buffer text; /* names and values, one after the other */
    struct curl_header_span *spans;
    size_t count;
    size_t capacity;
};

struct curl_header_span {
    size_t name_at;
    size_t name_length;
    size_t value_at;
    size_t value_length;
};

void curl_head_init(struct curl_head *head);
void curl_head_finish(struct curl_head *head);
/* Takes one line with its end. NULL, or what is wrong with the head: it is larger than any that
 * makes sense, a header is folded (RFC 9112 §5.2), or it has no name. `is_complete` turns true
 * with the empty line after a final (not 1xx) status. */
const char *curl_head_add_line(struct curl_head *head, struct str line);
/* A view of the headers; the caller frees the array. */
struct http_header *curl_head_headers(const struct curl_head *head);

/* The body of a response while it comes in; zeroed before. */
struct curl_body {
    bool is_chunked;
    bool is_empty; /* by its status, whatever the headers say */
    bool has_rest; /* bytes came behind its end */
    struct http1_chunks chunks;
};

/* The connections that requests of one owner share, and no other's: libcurl shares all that one
 * multi handle has. */
struct curl_pool {
    uint32_t magic;   /* CURL_POOL_MAGIC */
    struct list node; /* in client->idle_pools while no call uses it, if it has an owner */
    struct curl_client *client;
    char *owner; /* NULL: of the requests without one */
    size_t calls;
    int64_t idle_since_ms; /* monotonic */
    CURLM *multi;
    int epoll_fd; /* libcurl's sockets, nested in the loop */
    struct loop_watch *watch;
    int idle_epoll_fd;       /* the sockets that no transfer uses */
    struct loop_timer timer; /* libcurl's */
};
#define CURL_POOL_MAGIC 0x43555001

static inline struct curl_pool *curl_pool_from(void *context)
{
    return MAGIC_CAST(struct curl_pool, CURL_POOL_MAGIC, context);
}

struct curl_client {
    uint32_t magic; /* CURL_CLIENT_MAGIC */
    struct loop *loop;
    struct curl_pool *shared; /* of the requests without an owner */
    struct map *pools;        /* owner -> struct curl_pool, all but that one */
    struct list idle_pools;   /* of these, the one idle longest first */
    size_t idle_pool_count;
    size_t max_idle_pools;
    struct loop_timer close_pools;

    struct list calls;    /* all of them */
    struct list deferred; /* those to be started, cancelled or resumed outside of libcurl */
    struct loop_timer run_deferred;
    struct buffer decoded; /* used within one callback */
    int inside_curl;       /* how deep: libcurl calls us, and most of its calls are forbidden */
};
#define CURL_CLIENT_MAGIC 0x43554302

static inline struct curl_client *curl_client_from(void *context)
{
    return MAGIC_CAST(struct curl_client, CURL_CLIENT_MAGIC, context);
}

struct curl_call;
/* The events that the client and the pools report to a call. */
struct curl_call_events {
    void (*run_deferred)(struct curl_call *call);
    void (*done)(struct curl_call *call, CURLcode code); /* libcurl has ended the transfer */
    void (*destroy)(struct curl_call *call);
};

struct curl_call {
    struct upstream_call base;
    const struct curl_call_events *events;
    uint32_t magic;       /* CURL_CALL_MAGIC */
    struct list node;     /* in client->calls */
    struct list deferred; /* in client->deferred, or in no list */
    struct curl_client *client;
    struct curl_pool *pool; /* NULL until the call is added to it */
    char *owner;            /* as the request's; NULL: none */
    CURL *easy;
    struct curl_slist *request_headers;
    struct tls_client *tls;           /* or NULL; `easy` points into it */
    char error_text[CURL_ERROR_SIZE]; /* libcurl's, or why the request is refused */
    const char *fault;                /* why a callback ended the transfer; NULL: none did */

    struct upstream_callbacks callbacks;
    void *context;
    struct curl_head head;
    struct curl_body body;

    struct loop_timer silence; /* runs when silence_ms > 0 */
    int64_t silence_ms;
    int64_t last_byte_ms; /* monotonic */
    size_t body_length;   /* of the request */
    curl_off_t uploaded;  /* of it, when it was last looked at */

    bool is_post;
    bool is_added;      /* to the pool's multi handle */
    bool is_refused;    /* by us, before anything was sent; error_text says why */
    bool was_attempted; /* a request was about to be sent once before */
    bool met_unread;    /* nothing was sent: the connection may have had bytes to read */
    bool is_paused;     /* by the owner */
    bool is_stopped;    /* libcurl was told to hold the body back */
    bool is_cancelled;
    bool is_ending;
};
#define CURL_CALL_MAGIC 0x43554c03

static inline struct curl_call *curl_call_from(void *context)
{
    return MAGIC_CAST(struct curl_call, CURL_CALL_MAGIC, context);
}

/* ---- curl_client.c ---- */
/* The owner's pool, for one more call until curl_client_leave_pool(). Not inside of libcurl. NULL:
 * `error` says why there is none. */
struct curl_pool *curl_client_enter_pool(struct curl_client *client, const char *owner,
                                         struct error *error);
/* The pool stays for a while, in case that the owner calls again. */
void curl_client_leave_pool(struct curl_pool *pool);
/* Has the call's `run_deferred` called outside of libcurl. */
void curl_client_defer(struct curl_client *client, struct curl_call *call);

/* Ends each idle connection that has something to read: the rest of an earlier answer, a second
 * one, or the server's end. Whether there was one. */
bool curl_pool_drop_unread(struct curl_pool *pool);
/* After every call into libcurl that may have ended transfers. */
void curl_pool_collect(struct curl_pool *pool);
