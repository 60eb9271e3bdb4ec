/*
 * The client of one loop: the hosts it has called, and calls with something to do later.
 */
#include <stdlib.h>
#include <string.h>

#include "http1_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

/* How long addresses are used before they are looked up again. */
#define ADDRESSES_LIFE_MS 30000

static void on_run_deferred(void *context);

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
    loop_timer_init(&client->run_deferred, loop, on_run_deferred, client);
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
static void on_run_deferred(void *context)
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
