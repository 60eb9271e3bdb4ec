/*
 * The client of one loop: its pools of connections by owner, what is put off, the end.
 */
#include <stdlib.h>

#include "curl_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"

/* Connections of an idle owner are kept for its next call. The pools of all idle owners together
 * keep as many connections as the shared one. */
#define OWNER_CONNECTIONS 4L
#define OWNER_IDLE_MS 30000

static void on_run_deferred(void *context);
static void on_close_pools(void *context);

struct curl_client *curl_client_create(struct loop *loop, long max_idle_connections,
                                       struct error *error)
{
    if (!curl_library_load(error))
        return NULL;
    if ((curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS) == 0) {
        error_set(error, "this libcurl resolves host names blocking and cannot be used");
        return NULL;
    }

    struct curl_client *client = memory_alloc(sizeof(*client));
    MAGIC_SET(client, CURL_CLIENT_MAGIC);
    client->loop = loop;
    client->pools = map_create();
    client->max_idle_pools = (size_t)(max_idle_connections / OWNER_CONNECTIONS);
    list_init(&client->calls);
    list_init(&client->deferred);
    list_init(&client->idle_pools);
    loop_timer_init(&client->run_deferred, loop, on_run_deferred, client);
    loop_timer_init(&client->close_pools, loop, on_close_pools, client);
    buffer_init(&client->decoded);
    client->shared = curl_pool_create(client, NULL, max_idle_connections, error);
    if (client->shared == NULL) {
        curl_client_destroy(client);
        return NULL;
    }
    return client;
}

/* ---- pools ---- */

struct curl_pool *curl_client_enter_pool(struct curl_client *client, const char *owner,
                                         struct error *error)
{
    struct curl_pool *pool =
        owner == NULL ? client->shared : map_get(client->pools, str_from(owner));
    if (pool == NULL) {
        pool = curl_pool_create(client, owner, OWNER_CONNECTIONS, error);
        if (pool == NULL)
            return NULL;
        map_put(client->pools, str_from(pool->owner), pool);
    }
    if (!list_is_empty(&pool->node)) {
        list_remove(&pool->node);
        client->idle_pool_count--;
    }
    pool->calls++;
    return pool;
}

void curl_client_leave_pool(struct curl_pool *pool)
{
    struct curl_client *client = pool->client;
    if (--pool->calls > 0 || pool == client->shared)
        return;
    pool->idle_since_ms = clock_monotonic_ms();
    list_append(&client->idle_pools, &pool->node);
    client->idle_pool_count++;
    /* Later, for libcurl may be on the stack. */
    if (client->idle_pool_count > client->max_idle_pools)
        loop_timer_start(&client->close_pools, 0);
    else if (!loop_timer_is_running(&client->close_pools))
        loop_timer_start(&client->close_pools, OWNER_IDLE_MS);
}

static void on_close_pools(void *context)
{
    struct curl_client *client = curl_client_from(context);
    const int64_t now_ms = clock_monotonic_ms();

    LIST_FOR_EACH_SAFE (node, next, &client->idle_pools) {
        struct curl_pool *oldest = LIST_ENTRY(node, struct curl_pool, node);
        int64_t left_ms = oldest->idle_since_ms + OWNER_IDLE_MS - now_ms;
        if (left_ms > 0 && client->idle_pool_count <= client->max_idle_pools) {
            loop_timer_start(&client->close_pools, left_ms);
            return;
        }
        map_remove(client->pools, str_from(oldest->owner));
        client->idle_pool_count--;
        curl_pool_destroy(oldest);
    }
}

/* ---- what must wait until libcurl is not on the stack ---- */

void curl_client_defer(struct curl_client *client, struct curl_call *call)
{
    if (list_is_empty(&call->deferred))
        list_append(&client->deferred, &call->deferred);
    if (!loop_timer_is_running(&client->run_deferred))
        loop_timer_start(&client->run_deferred, 0);
}

static void on_run_deferred(void *context)
{
    struct curl_client *client = curl_client_from(context);

    while (!list_is_empty(&client->deferred)) {
        struct curl_call *call = LIST_ENTRY(client->deferred.next, struct curl_call, deferred);
        list_remove(&call->deferred);
        call->events->run_deferred(call);
    }
}

/* ---- the end ---- */

static void destroy_pool(void *pool)
{
    curl_pool_destroy(curl_pool_from(pool));
}

void curl_client_destroy(struct curl_client *client)
{
    if (client == NULL)
        return;
    LIST_FOR_EACH_SAFE (node, next, &client->calls) {
        struct curl_call *call = LIST_ENTRY(node, struct curl_call, node);
        call->events->destroy(call);
    }
    map_destroy(client->pools, destroy_pool);
    curl_pool_destroy(client->shared);
    loop_timer_stop(&client->close_pools);
    loop_timer_stop(&client->run_deferred);
    buffer_finish(&client->decoded);
    MAGIC_CLEAR(client);
    free(client);
}
