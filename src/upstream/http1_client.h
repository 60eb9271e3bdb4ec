/*
 * Shared by the files of the HTTP/1.1 implementation.
 *
 *     http1_call.c         the life of one call
 *     http1_response.c     a response from bytes; its chunks in http1_chunks.c
 *     http1_connection.c   a socket in the loop; idle ones wait for the next call
 *     http1_client.c       hosts and their addresses, what is put off, the end
 */
#pragma once

#include <netinet/in.h>

#include "taskgate/core/buffer.h"
#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/map.h"
#include "taskgate/core/str.h"
#include "taskgate/loop/loop.h"

#include "http1_response.h"
#include "upstream_internal.h"

/*
 * A host's addresses, looked up in a thread of their own: getaddrinfo() blocks.
 */

#define HTTP1_MAX_ADDRESSES 16

struct http1_address {
    socklen_t length;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
};

struct http1_addresses {
    size_t count;
    struct http1_address items[HTTP1_MAX_ADDRESSES];
};

/* An address in figures, no name. false: it is none. */
bool http1_address_read(struct http1_address *address, struct str host, uint16_t port);

/* `error` is NULL when there are addresses. The lookup is gone when this returns. */
typedef void (*http1_lookup_done)(void *context, const struct http1_addresses *addresses,
                                  const char *error);
struct http1_lookup;

/* The most that one read takes. */
#define HTTP1_READ_BYTES ((size_t)64 * 1024)
/* So many idle connections are used after one look at what has come on them: few enough that
 * little can come on the last of them meanwhile. */
#define HTTP1_TOGETHER 16

struct http1_call;
struct http1_client {
    uint32_t magic; /* HTTP1_CLIENT_MAGIC */
    struct loop *loop;
    struct map *hosts; /* by authority; they stay, for they come from the configuration */
    struct list calls; /* all of them */
    /* Memory of calls that have ended: chained by http1_call.node.next. */
    struct http1_call *spare_calls;
    size_t spare_count;
    /* The last URL, for the next call's is mostly the same. */
    char *url_text; /* NULL before the first */
    struct http1_url url;
    struct http1_host *url_host; /* NULL until somebody asked for it */

    struct list deferred; /* calls with something to do in the next round */
    struct loop_timer run_deferred;

    /* http1_client.c */
    struct list outgoing;        /* calls whose request goes out at the end of this round */
    struct buffer request_heads; /* theirs, one behind the other, with small bodies */
    struct loop_round_end send_outgoing;

    struct list idle; /* connections, the one idle longest first */
    size_t idle_count;
    size_t max_idle;
    struct loop_timer close_idle;

    /* Used within one step, so that no call needs its own: reads do not nest. */
    struct http1_head head;
    char read_bytes[HTTP1_READ_BYTES];
};
#define HTTP1_CLIENT_MAGIC 0x48314331

static inline struct http1_client *http1_client_from(void *context)
{
    return MAGIC_CAST(struct http1_client, HTTP1_CLIENT_MAGIC, context);
}

/* So many are kept without a call, a connection or a lookup. */
#define HTTP1_MOST_HOSTS 256

/* A host and port, with its connections. */
struct http1_host {
    uint32_t magic; /* HTTP1_HOST_MAGIC */
    struct http1_client *client;
    char *name;
    uint16_t port;
    bool is_numeric;
    bool is_used;        /* by a call; set while unused ones are looked for */
    struct list idle;    /* connections, the one used last first */
    struct list waiting; /* calls that wait for the lookup */
    struct http1_lookup *lookup;
    struct http1_addresses addresses;
    int64_t known_since_ms; /* monotonic; meaning only with addresses */
};
#define HTTP1_HOST_MAGIC 0x48314802

static inline struct http1_host *http1_host_from(void *context)
{
    return MAGIC_CAST(struct http1_host, HTTP1_HOST_MAGIC, context);
}

struct http1_connection {
    uint32_t magic;        /* HTTP1_CONNECTION_MAGIC */
    struct list of_host;   /* in host->idle while idle */
    struct list of_client; /* in client->idle while idle */
    struct http1_host *host;
    struct http1_call *call; /* NULL while idle */
    char *owner;             /* the owner of its requests; NULL: of those without an owner */
    int fd;
    struct loop_edge edge;
    int64_t idle_since_ms;
    bool is_open;     /* connected */
    bool wants_bytes; /* the call shall hear of what comes */
    bool wants_room;  /* and that there is room for more of its request */
    bool was_idle;    /* used before: it may break for no fault of this request */
};
#define HTTP1_CONNECTION_MAGIC 0x48314e03

static inline struct http1_connection *http1_connection_from(void *context)
{
    return MAGIC_CAST(struct http1_connection, HTTP1_CONNECTION_MAGIC, context);
}

/* The events that the client and the connections report to a call. */
struct http1_call_events {
    void (*run_deferred)(struct http1_call *call);
    /* Its request may go out: on `connection`, or on one that it is to open. `head` lives until
     * the return. */
    void (*go_out)(struct http1_call *call, struct str head);
    void (*addresses_known)(struct http1_call *call, const char *error); /* NULL: there are some */
    void (*connected)(struct http1_call *call, int error_number);        /* 0: it stands */
    void (*readable)(struct http1_call *call);
    void (*writable)(struct http1_call *call);
    void (*destroy)(struct http1_call *call);
};

struct http1_call {
    struct upstream_call base;
    const struct http1_call_events *events;
    uint32_t magic;       /* HTTP1_CALL_MAGIC */
    struct list node;     /* in client->calls */
    struct list deferred; /* in client->deferred or client->outgoing, or in no list */
    struct list waiting;  /* in host->waiting, or in no list */
    struct http1_client *client;
    struct http1_host *host;
    struct http1_connection *connection; /* NULL before and between */
    char *refusal;                       /* why nothing is sent, or NULL */
    char *owner;                         /* as the request's; NULL: none */
    struct upstream_callbacks callbacks;
    void *context;

    struct buffer head; /* of the request; empty once it need not be sent any more */
    struct str body;    /* the caller's */
    size_t head_begin;  /* in client->request_heads, while it is outgoing */
    size_t head_length;
    size_t sent; /* of both */
    struct http1_response response;
    struct buffer kept; /* bytes of the response not yet used */

    struct loop_timer limit; /* for connecting, then for silence */
    int64_t connect_ms;
    int64_t connect_by_ms; /* monotonic */
    int64_t silence_ms;
    int64_t last_byte_ms; /* monotonic */
    size_t next_address;  /* of the host's, to be tried */
    int connect_error;    /* errno of the last attempt */

    bool needs_proof; /* the connection is not kept */
    bool may_repeat;  /* not a POST: a second sending does no harm */
    bool has_received;
    bool is_paused;
    bool is_busy; /* its callbacks are on the stack */
    bool is_cancelled;
    bool is_ending;
};
#define HTTP1_CALL_MAGIC 0x48314c04

static inline struct http1_call *http1_call_from(void *context)
{
    return MAGIC_CAST(struct http1_call, HTTP1_CALL_MAGIC, context);
}

/* ---- http1_client.c ---- */
/* Memory for a call, all zero, and its way back. */
struct http1_call *http1_client_take_call(struct http1_client *client);
void http1_client_give_call(struct http1_client *client, struct http1_call *call);
struct http1_host *http1_host_of(struct http1_client *client, const struct http1_url *url);
/* Whether the addresses may be used without a lookup. */
bool http1_host_is_known(const struct http1_host *host);
/* Has `addresses_known` called on the loop later. false: no thread. */
bool http1_host_look_up(struct http1_host *host, struct http1_call *call);
/* None of its addresses answers: the next call looks it up anew. */
void http1_host_forget(struct http1_host *host);
/* Has `run_deferred` called in the next round. */
void http1_client_defer(struct http1_client *client, struct http1_call *call);

/* ---- http1_connection.c ---- */
/* Starts to connect; `connected` comes later. NULL: errno says why not. */
struct http1_connection *http1_connection_open(struct http1_host *host,
                                               const struct http1_address *address,
                                               struct http1_call *call);
/* Gives each of `count` calls an idle one of its host and owner that is open and has nothing to
 * read, where there is one. They have none, and are at most HTTP1_TOGETHER. */
void http1_connections_reuse(struct http1_call *const *calls, size_t count);
/* Keeps it for the next call, or closes it. */
void http1_connection_release(struct http1_connection *connection);
void http1_connection_close(struct http1_connection *connection);
void http1_connection_read(struct http1_connection *connection, bool on);
/* As writev() with two pieces; false when it will not take any more. If bytes are left over,
 * `writable` comes. */
bool http1_connection_write(struct http1_connection *connection, struct str head, struct str body,
                            size_t *written);
/* As read(). */
ssize_t http1_connection_receive(struct http1_connection *connection, char *bytes, size_t length);
/* Closes what has been idle for too long. For the client's timer. */
void http1_connection_close_idle(void *client);

/* The head of a request goes behind this. */
struct buffer *http1_outgoing_heads(struct http1_client *client);
/* Has `go_out` called at the end of the round, with the head that begins at `head_begin`. */
void http1_outgoing_add(struct http1_client *client, struct http1_call *call, size_t head_begin);
