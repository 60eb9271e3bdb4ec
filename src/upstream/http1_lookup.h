/*
 * A host's addresses, looked up in a thread of their own: getaddrinfo() blocks.
 */
#pragma once

#include <netinet/in.h>

#include "taskgate/core/str.h"
#include "taskgate/loop/loop.h"

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
/* `done` runs on the loop. NULL: no thread could be started. */
struct http1_lookup *http1_lookup_start(struct loop *loop, const char *host, uint16_t port,
                                        http1_lookup_done done, void *context);
/* `done` does not run any more; the thread ends on its own. NULL is allowed. */
void http1_lookup_cancel(struct http1_lookup *lookup);
