/*
 * The client of one loop: the hosts it has called, and calls with something to do later.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "http1_client.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"

/*
 * One detached thread per lookup: lookups are rare, and a slow one holds up no other.
 *
 * The lookup belongs to the thread until its result is posted, then to the loop. A cancel leaves it
 * to whichever has it; the lock decides what came first.
 */

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

static void free_lookup(struct http1_lookup *lookup)
{
    pthread_mutex_destroy(&lookup->lock);
    free(lookup->host);
    MAGIC_CLEAR(lookup);
    free(lookup);
}

/* On the loop. */
static void http1_client_deliver(void *context)
{
    struct http1_lookup *lookup = lookup_from(context);
    pthread_mutex_lock(&lookup->lock);
    bool is_cancelled = lookup->is_cancelled;
    pthread_mutex_unlock(&lookup->lock);
    if (!is_cancelled)
        lookup->done(lookup->context, &lookup->addresses, lookup->error);
    free_lookup(lookup);
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

static bool http1_client_has(const struct http1_addresses *addresses,
                             const struct http1_address *wanted)
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
        if (addresses->count < HTTP1_MAX_ADDRESSES && !http1_client_has(addresses, &address))
            addresses->items[addresses->count++] = address;
    }
    lookup->error = NULL;
}

static void *http1_client_look_up(void *context)
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
        loop_post(lookup->loop, http1_client_deliver, lookup);
    pthread_mutex_unlock(&lookup->lock);
    if (is_cancelled)
        free_lookup(lookup);
    return NULL;
}

/* Signals are for the program's own threads. */
static bool http1_client_start_thread(struct http1_lookup *lookup)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;

    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&thread, &attributes, http1_client_look_up, lookup);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return code == 0;
}

/* `done` runs on the loop. NULL: no thread could be started. */
static struct http1_lookup *http1_lookup_start(struct loop *loop, const char *host, uint16_t port,
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
    if (http1_client_start_thread(lookup))
        return lookup;
    free_lookup(lookup);
    return NULL;
}

/* `done` does not run any more; the thread ends on its own. NULL is allowed. */
static void http1_lookup_cancel(struct http1_lookup *lookup)
{
    if (lookup == NULL)
        return;
    pthread_mutex_lock(&lookup->lock);
    lookup->is_cancelled = true;
    pthread_mutex_unlock(&lookup->lock);
}

/*
 * Reading a plain http URL. An unusual URL is not read: libcurl knows what to make of it.
 */

static bool is_host_character(char c, bool is_bracketed)
{
    char lower = (char)(c | 0x20);
    if (c >= '0' && c <= '9')
        return true;
    if (is_bracketed)
        return (lower >= 'a' && lower <= 'f') || c == ':' || c == '.';
    return (lower >= 'a' && lower <= 'z') || c == '.' || c == '-' || c == '_';
}

static const char *read_host(struct http1_url *url, const char *at)
{
    bool is_bracketed = *at == '[';
    if (is_bracketed)
        at++;
    url->host.bytes = at;
    while (is_host_character(*at, is_bracketed))
        at++;
    url->host.length = (size_t)(at - url->host.bytes);
    if (is_bracketed && *at++ != ']')
        return NULL;
    return url->host.length > 0 && url->host.length < 256 ? at : NULL;
}

static const char *read_port(struct http1_url *url, const char *at)
{
    url->port = 80;
    if (*at != ':')
        return at;
    const char *digits = ++at;
    unsigned long port = 0;
    while (*at >= '0' && *at <= '9' && at - digits < 5)
        port = port * 10 + (unsigned long)(*at++ - '0');
    if (*digits == '0' || port == 0 || port > 65535)
        return NULL;
    url->port = (uint16_t)port;
    return at;
}

bool http1_url_read(struct http1_url *url, const char *text)
{
    static const char scheme[] = "http://";
    const size_t scheme_length = sizeof(scheme) - 1;
    if (text == NULL || strncmp(text, scheme, scheme_length) != 0)
        return false;

    const char *authority = text + scheme_length;
    const char *host_end = read_host(url, authority);
    const char *at = host_end != NULL ? read_port(url, host_end) : NULL;
    if (at == NULL || (*at != '/' && *at != '\0'))
        return false;
    url->authority = str_slice(authority, (size_t)(at - authority));
    url->host_line =
        url->port == 80 ? str_slice(authority, (size_t)(host_end - authority)) : url->authority;

    url->target.bytes = at;
    while (*at > ' ' && *at < 0x7f && *at != '#')
        at++;
    url->target.length = (size_t)(at - url->target.bytes);
    return *at == '\0';
}

/*
 * Requests that go out together at the end of a round. A server that sleeps is woken once for all
 * of them, and one system call looks at several connections before they are used again.
 */

/* Heads that were larger together are given back. */
#define KEPT_HEADS_BYTES ((size_t)256 * 1024)

static void send_all(void *context);

static void http1_outgoing_init(struct http1_client *client)
{
    list_init(&client->outgoing);
    buffer_init(&client->request_heads);
    loop_round_end_init(&client->send_outgoing, client->loop, send_all, client);
}

static void http1_outgoing_finish(struct http1_client *client)
{
    loop_round_end_finish(&client->send_outgoing);
    buffer_finish(&client->request_heads);
}

struct buffer *http1_outgoing_heads(struct http1_client *client)
{
    return &client->request_heads;
}

void http1_outgoing_add(struct http1_client *client, struct http1_call *call, size_t head_begin)
{
    call->head_begin = head_begin;
    list_append(&client->outgoing, &call->deferred);
    loop_round_end_schedule(&client->send_outgoing);
}

static struct http1_call *call_at(struct list *node)
{
    return http1_call_from(LIST_ENTRY(node, struct http1_call, deferred));
}

static struct http1_call *http1_client_first_of(const struct list *calls)
{
    return call_at(calls->next);
}

static size_t look_at_first(const struct list *from, struct http1_call *calls[HTTP1_TOGETHER])
{
    size_t count = 0;
    for (struct list *node = from->next; node != from && count < HTTP1_TOGETHER; node = node->next)
        calls[count++] = call_at(node);
    return count;
}

/* One that has no connection may end here, and its owner may cancel others and start new ones. */
static void http1_client_go_out(struct http1_client *client, struct http1_call *call)
{
    list_remove(&call->deferred);
    struct str heads = buffer_str(&client->request_heads);
    ASSERT(call->head_begin + call->head_length <= heads.length);
    call->events->go_out(call, str_slice(heads.bytes + call->head_begin, call->head_length));
}

/* The heads that are used go; those of calls that were started meanwhile stay. */
static void drop_heads(struct http1_client *client)
{
    struct buffer *heads = &client->request_heads;
    size_t used = list_is_empty(&client->outgoing)
                      ? heads->length
                      : http1_client_first_of(&client->outgoing)->head_begin;
    buffer_drop(heads, used);
    LIST_FOR_EACH_SAFE (node, next, &client->outgoing)
        call_at(node)->head_begin -= used;
    if (heads->length == 0 && heads->capacity > KEPT_HEADS_BYTES)
        buffer_finish(heads);
}

/* A call that is started meanwhile goes out at the next end of a round. */
static void send_all(void *context)
{
    struct http1_client *client = http1_client_from(context);
    struct http1_call *calls[HTTP1_TOGETHER];
    struct list taken;
    list_init(&taken);
    list_append(&client->outgoing, &taken);
    list_remove(&client->outgoing);
    while (!list_is_empty(&taken)) {
        size_t count = look_at_first(&taken, calls);
        http1_connections_reuse(calls, count);
        for (size_t i = 0; i < count && !list_is_empty(&taken); i++)
            http1_client_go_out(client, http1_client_first_of(&taken));
    }
    drop_heads(client);
}

/* How long addresses are used before they are looked up again. */
#define ADDRESSES_LIFE_MS 30000

static void http1_client_on_run_deferred(void *context);

struct http1_client *http1_client_create(struct loop *loop, size_t max_idle_connections)
{
    struct http1_client *client = memory_alloc(sizeof(*client));
    MAGIC_SET(client, HTTP1_CLIENT_MAGIC);
    client->loop = loop;
    client->hosts = map_create();
    client->max_idle = max_idle_connections;
    list_init(&client->calls);
    list_init(&client->deferred);
    list_init(&client->idle);
    http1_outgoing_init(client);
    loop_timer_init(&client->run_deferred, loop, http1_client_on_run_deferred, client);
    loop_timer_init(&client->close_idle, loop, http1_connection_close_idle, client);
    return client;
}

/* ---- the memory of calls ---- */

/* With the sanitizer none is kept, so that the use of one that has ended is seen. */
#ifdef __SANITIZE_ADDRESS__
#define KEEPS_NONE true
#else
#define KEEPS_NONE false
#endif
#define MOST_SPARE 64

static struct http1_call *take_spare(struct http1_client *client)
{
    struct list *next = client->spare_calls->node.next;
    struct http1_call *call = client->spare_calls;
    client->spare_calls = next ? LIST_ENTRY(next, struct http1_call, node) : NULL;
    client->spare_count--;
    return call;
}

struct http1_call *http1_client_take_call(struct http1_client *client)
{
    if (client->spare_calls == NULL)
        return memory_alloc(sizeof(*client->spare_calls));
    return memset(take_spare(client), 0, sizeof(*client->spare_calls));
}

void http1_client_give_call(struct http1_client *client, struct http1_call *call)
{
    if (KEEPS_NONE || client->spare_count >= MOST_SPARE) {
        free(call);
        return;
    }
    call->node.next = client->spare_calls ? &client->spare_calls->node : NULL;
    client->spare_calls = call;
    client->spare_count++;
}

/* ---- hosts ---- */

bool http1_client_read_url(struct http1_client *client, struct http1_url *url, const char *text)
{
    if (client->url_text == NULL || strcmp(client->url_text, text) != 0) {
        if (!http1_url_read(url, text))
            return false;
        free(client->url_text);
        client->url_text = memory_copy_text(text);
        http1_url_read(&client->url, client->url_text);
        client->url_host = NULL;
    }
    *url = client->url;
    return true;
}

static void host_destroy(void *value)
{
    struct http1_host *host = http1_host_from(value);
    http1_lookup_cancel(host->lookup);
    free(host->name);
    MAGIC_CLEAR(host);
    free(host);
}

/* Replicas come and go, each with an address of its own. */
static void forget_unused_hosts(struct http1_client *client)
{
    struct map *used = map_create();
    struct str authority;
    void *value;
    LIST_FOR_EACH_SAFE (node, next, &client->calls) {
        const struct http1_call *call = LIST_ENTRY(node, struct http1_call, node);
        if (call->host)
            call->host->is_used = true;
    }
    for (size_t at = 0; map_next(client->hosts, &at, &authority, &value);) {
        struct http1_host *host = value;
        bool is_used = host->is_used || host->lookup || !list_is_empty(&host->idle);
        host->is_used = false;
        if (is_used)
            map_put(used, authority, host);
        else
            host_destroy(host);
    }
    map_destroy(client->hosts, NULL);
    client->hosts = used;
    client->url_host = NULL;
}

static struct http1_host *create_host(struct http1_client *client, const struct http1_url *url)
{
    struct http1_host *host = memory_alloc(sizeof(*host));
    if (map_count(client->hosts) >= HTTP1_MOST_HOSTS)
        forget_unused_hosts(client);
    MAGIC_SET(host, HTTP1_HOST_MAGIC);
    host->client = client;
    host->name = memory_copy_str(url->host);
    host->port = url->port;
    list_init(&host->idle);
    list_init(&host->waiting);
    host->is_numeric = http1_address_read(&host->addresses.items[0], url->host, url->port);
    host->addresses.count = host->is_numeric ? 1 : 0;
    map_put(client->hosts, url->authority, host);
    return host;
}

struct http1_host *http1_host_of(struct http1_client *client, const struct http1_url *url)
{
    bool is_last = url->authority.bytes == client->url.authority.bytes;
    if (is_last && client->url_host != NULL)
        return client->url_host;
    struct http1_host *host = map_get(client->hosts, url->authority);
    if (host == NULL)
        host = create_host(client, url);
    if (is_last)
        client->url_host = host;
    return host;
}

bool http1_host_is_known(const struct http1_host *host)
{
    return host->is_numeric || (host->addresses.count > 0 &&
                                clock_monotonic_ms() - host->known_since_ms < ADDRESSES_LIFE_MS);
}

static void on_looked_up(void *context, const struct http1_addresses *addresses, const char *error)
{
    struct http1_host *host = http1_host_from(context);
    host->lookup = NULL;
    host->addresses = *addresses;
    host->known_since_ms = clock_monotonic_ms();

    /* One at a time: what a call does may end others, or have them wait anew. */
    struct list taken;
    list_init(&taken);
    list_append(&host->waiting, &taken);
    list_remove(&host->waiting);
    while (!list_is_empty(&taken)) {
        struct http1_call *call = LIST_ENTRY(taken.next, struct http1_call, waiting);
        list_remove(&call->waiting);
        call->events->addresses_known(call, error);
    }
}

bool http1_host_look_up(struct http1_host *host, struct http1_call *call)
{
    if (host->lookup == NULL)
        host->lookup =
            http1_lookup_start(host->client->loop, host->name, host->port, on_looked_up, host);
    if (host->lookup == NULL)
        return false;
    list_append(&host->waiting, &call->waiting);
    return true;
}

void http1_host_forget(struct http1_host *host)
{
    if (!host->is_numeric)
        host->addresses.count = 0;
}

/* ---- what is put off ---- */

void http1_client_defer(struct http1_client *client, struct http1_call *call)
{
    if (list_is_empty(&call->deferred))
        list_append(&client->deferred, &call->deferred);
    if (!loop_timer_is_running(&client->run_deferred))
        loop_timer_start(&client->run_deferred, 0);
}

/* A call that is deferred meanwhile runs in the next round. */
static void http1_client_on_run_deferred(void *context)
{
    struct http1_client *client = http1_client_from(context);
    struct list taken;
    list_init(&taken);
    list_append(&client->deferred, &taken);
    list_remove(&client->deferred);
    while (!list_is_empty(&taken)) {
        struct http1_call *call = LIST_ENTRY(taken.next, struct http1_call, deferred);
        list_remove(&call->deferred);
        call->events->run_deferred(call);
    }
}

void http1_client_destroy(struct http1_client *client)
{
    if (client == NULL)
        return;
    LIST_FOR_EACH_SAFE (node, next, &client->calls) {
        struct http1_call *call = LIST_ENTRY(node, struct http1_call, node);
        call->events->destroy(call);
    }
    LIST_FOR_EACH_SAFE (node, next, &client->idle)
        http1_connection_close(LIST_ENTRY(node, struct http1_connection, of_client));
    while (client->spare_calls != NULL)
        free(take_spare(client));
    map_destroy(client->hosts, host_destroy);
    loop_timer_stop(&client->run_deferred);
    loop_timer_stop(&client->close_idle);
    http1_outgoing_finish(client);
    free(client->url_text);
    MAGIC_CLEAR(client);
    free(client);
}
