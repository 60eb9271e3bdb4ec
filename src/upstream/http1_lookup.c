/*
 * One detached thread per lookup: lookups are rare, and a slow one holds up no other.
 *
 * The lookup belongs to the thread until its result is posted, then to the loop. A cancel leaves it
 * to whichever has it; the lock decides what came first.
 */
#include "http1_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"

struct http1_lookup {
    uint32_t magic; /* LOOKUP_MAGIC */
    pthread_mutex_t lock;
    bool is_cancelled; /* under the lock; `loop` may be gone */
    struct loop *loop;
    http1_lookup_done done;
    void *context;
    char *host;
    uint16_t port;
    struct http1_addresses addresses;
    const char *error;
};
#define LOOKUP_MAGIC 0x48314b05

static inline struct http1_lookup *lookup_from(void *context)
{
    return MAGIC_CAST(struct http1_lookup, LOOKUP_MAGIC, context);
}

bool http1_address_read(struct http1_address *address, struct str host, uint16_t port)
{
    char text[INET6_ADDRSTRLEN];
    if (host.length >= sizeof(text))
        return false;
    memcpy(text, host.bytes, host.length);
    text[host.length] = '\0';
    *address = (struct http1_address){.length = sizeof(address->v4)};
    if (inet_pton(AF_INET, text, &address->v4.sin_addr) == 1) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(port);
        return true;
    }
    *address = (struct http1_address){.length = sizeof(address->v6)};
    address->v6.sin6_family = AF_INET6;
    address->v6.sin6_port = htons(port);
    return inet_pton(AF_INET6, text, &address->v6.sin6_addr) == 1;
}

static void destroy(struct http1_lookup *lookup)
{
    pthread_mutex_destroy(&lookup->lock);
    free(lookup->host);
    MAGIC_CLEAR(lookup);
    free(lookup);
}

/* On the loop. */
static void deliver(void *context)
{
    struct http1_lookup *lookup = lookup_from(context);
    pthread_mutex_lock(&lookup->lock);
    bool is_cancelled = lookup->is_cancelled;
    pthread_mutex_unlock(&lookup->lock);
    if (!is_cancelled)
        lookup->done(lookup->context, &lookup->addresses, lookup->error);
    destroy(lookup);
}

static void keep_addresses(struct http1_lookup *lookup, const struct addrinfo *found)
{
    struct http1_addresses *addresses = &lookup->addresses;
    for (; found != NULL && addresses->count < HTTP1_MAX_ADDRESSES; found = found->ai_next) {
        if (found->ai_family != AF_INET && found->ai_family != AF_INET6)
            continue;
        struct http1_address *address = &addresses->items[addresses->count++];
        address->length = found->ai_addrlen;
        memcpy(&address->any, found->ai_addr, found->ai_addrlen);
        if (found->ai_family == AF_INET)
            address->v4.sin_port = htons(lookup->port);
        else
            address->v6.sin6_port = htons(lookup->port);
    }
    if (addresses->count == 0)
        lookup->error = "no address";
}

static bool has(const struct http1_addresses *addresses, const struct http1_address *wanted)
{
    for (size_t i = 0; i < addresses->count; i++) {
        const struct http1_address *address = &addresses->items[i];
        if (address->length == wanted->length &&
            memcmp(&address->any, &wanted->any, wanted->length) == 0)
            return true;
    }
    return false;
}

/* "localhost" is this machine, over both protocols, also where the resolver knows but one of them
 * or has never heard of it (RFC 6761 §6.3). */
static void add_loopback(struct http1_lookup *lookup)
{
    static const struct str loopback[] = {STR("127.0.0.1"), STR("::1")};
    struct http1_addresses *addresses = &lookup->addresses;
    for (size_t i = 0; i < 2; i++) {
        struct http1_address address;
        http1_address_read(&address, loopback[i], lookup->port);
        if (addresses->count < HTTP1_MAX_ADDRESSES && !has(addresses, &address))
            addresses->items[addresses->count++] = address;
    }
    lookup->error = NULL;
}

static void *look_up(void *context)
{
    struct http1_lookup *lookup = lookup_from(context);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;

    int code = getaddrinfo(lookup->host, NULL, &hints, &found);
    if (code == 0) {
        keep_addresses(lookup, found);
        freeaddrinfo(found);
    } else {
        lookup->error = gai_strerror(code);
    }
    if (str_equal_ignore_case(str_from(lookup->host), STR("localhost")))
        add_loopback(lookup);

    pthread_mutex_lock(&lookup->lock);
    bool is_cancelled = lookup->is_cancelled;
    if (!is_cancelled)
        loop_post(lookup->loop, deliver, lookup);
    pthread_mutex_unlock(&lookup->lock);
    if (is_cancelled)
        destroy(lookup);
    return NULL;
}

/* Signals are for the program's own threads. */
static bool start_thread(struct http1_lookup *lookup)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;

    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&thread, &attributes, look_up, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return code == 0;
}

struct http1_lookup *http1_lookup_start(struct loop *loop, const char *host, uint16_t port,
                                        http1_lookup_done done, void *context)
{
    struct http1_lookup *lookup = memory_alloc(sizeof(*lookup));
    pthread_mutex_init(&lookup->lock, NULL);
    lookup->loop = loop;
    lookup->done = done;
    MAGIC_SET(lookup, LOOKUP_MAGIC);
    lookup->context = context;
    lookup->host = memory_copy_text(host);
    lookup->port = port;
    if (start_thread(lookup))
        return lookup;
    destroy(lookup);
    return NULL;
}

void http1_lookup_cancel(struct http1_lookup *lookup)
{
    if (lookup == NULL)
        return;
    pthread_mutex_lock(&lookup->lock);
    lookup->is_cancelled = true;
    pthread_mutex_unlock(&lookup->lock);
}
