/*
 * The client of one loop: its pools of connections by owner, what is put off, the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "curl_client.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

/*
 * libcurl's multi handle in the loop: its sockets in an epoll of their own, and its timer. The
 * multi handle keeps the connections, and shares them between all its transfers.
 *
 * The nested epoll is what makes this safe: libcurl 7.88 closes a socket that was aborted
 * while connecting without saying so first, and a stale descriptor may be in an epoll of
 * its own but not in the loop's.
 */

#define EVENTS_PER_ROUND 64

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context);
static int on_timeout_wish(CURLM *multi, long timeout_ms, void *context);
static void on_sockets_ready(void *context);
static void curl_client_on_timeout(void *context);

static void curl_pool_destroy(struct curl_pool *pool);

/* It keeps `max_idle_connections` alive. `owner` is copied and may be NULL. */
static struct curl_pool *curl_pool_create(struct curl_client *client, const char *owner,
                                          long max_idle_connections, struct error *error)
{
    struct curl_pool *pool = memory_alloc(sizeof(*pool));
    MAGIC_SET(pool, CURL_POOL_MAGIC);
    pool->client = client;
    pool->owner = memory_copy_text(owner);
    list_init(&pool->node);
    loop_timer_init(&pool->timer, client->loop, curl_client_on_timeout, pool);
    pool->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    pool->idle_epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (pool->epoll_fd != -1 && pool->idle_epoll_fd != -1)
        pool->watch = loop_watch_create(client->loop, pool->epoll_fd, on_sockets_ready, pool);
    pool->multi = curl_multi_init();
    if (pool->watch == NULL || pool->multi == NULL) {
        error_set(error, "cannot set up the HTTP client: %s", strerror(errno));
        curl_pool_destroy(pool);
        return NULL;
    }
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, on_timeout_wish);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, max_idle_connections);
    return pool;
}

/* Not while a call uses it, and not inside of libcurl. NULL is allowed. */
static void curl_pool_destroy(struct curl_pool *pool)
{
    if (pool == NULL)
        return;
    list_remove(&pool->node);
    if (pool->multi != NULL)
        curl_multi_cleanup(pool->multi);
    loop_timer_stop(&pool->timer);
    loop_watch_destroy(pool->watch);
    if (pool->epoll_fd != -1)
        close(pool->epoll_fd);
    if (pool->idle_epoll_fd != -1)
        close(pool->idle_epoll_fd);
    free(pool->owner);
    MAGIC_CLEAR(pool);
    free(pool);
}

/* ---- libcurl in the loop ---- */

/* Whether libcurl has told of the descriptor before says nothing: it may have closed that
 * one and got the same number again. So the epoll itself is asked. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    const struct curl_pool *pool = curl_pool_from(context);
    struct epoll_event event = {.data.fd = fd};

    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(pool->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        event.events = EPOLLIN;
        epoll_ctl(pool->idle_epoll_fd, EPOLL_CTL_ADD, fd, &event);
        return 0;
    }
    epoll_ctl(pool->idle_epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        event.events |= EPOLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        event.events |= EPOLLOUT;
    if (epoll_ctl(pool->epoll_fd, EPOLL_CTL_MOD, fd, &event) != 0 &&
        epoll_ctl(pool->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        log_error("Cannot watch an upstream connection", LOG_TEXT("error", strerror(errno)));
    return 0;
}

/* To connect to nowhere cuts a connection and empties its socket, so that libcurl finds it dead
 * before it gives it to a transfer. */
bool curl_pool_drop_unread(struct curl_pool *pool)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    struct epoll_event events[EVENTS_PER_ROUND];
    bool was_any = false;
    int count;

    while ((count = epoll_wait(pool->idle_epoll_fd, events, EVENTS_PER_ROUND, 0)) > 0) {
        was_any = true;
        for (int i = 0; i < count; i++) {
            epoll_ctl(pool->idle_epoll_fd, EPOLL_CTL_DEL, events[i].data.fd, NULL);
            if (connect(events[i].data.fd, &nowhere, sizeof(nowhere)) != 0)
                shutdown(events[i].data.fd, SHUT_RDWR);
        }
    }
    return was_any;
}

static int on_timeout_wish(CURLM *multi, long timeout_ms, void *context)
{
    struct curl_pool *pool = curl_pool_from(context);
    if (timeout_ms < 0)
        loop_timer_stop(&pool->timer);
    else
        loop_timer_start(&pool->timer, timeout_ms);
    return 0;
}

static void act(struct curl_pool *pool, curl_socket_t fd, int what)
{
    int running;
    pool->client->inside_curl++;
    curl_multi_socket_action(pool->multi, fd, what, &running);
    ASSERT_NUMBERS(pool->client->inside_curl, >, 0);
    pool->client->inside_curl--;
}

static void on_sockets_ready(void *context)
{
    struct curl_pool *pool = curl_pool_from(context);
    struct epoll_event events[EVENTS_PER_ROUND];

    int count = epoll_wait(pool->epoll_fd, events, EVENTS_PER_ROUND, 0);
    for (int i = 0; i < count; i++) {
        /* libcurl meets an error when it reads or writes. If it were told of the error, it would
         * not read the bytes that arrived before it. */
        bool is_broken = (events[i].events & (EPOLLERR | EPOLLHUP)) != 0;
        int what = 0;
        if ((events[i].events & EPOLLIN) != 0 || is_broken)
            what |= CURL_CSELECT_IN;
        if ((events[i].events & EPOLLOUT) != 0 || is_broken)
            what |= CURL_CSELECT_OUT;
        act(pool, events[i].data.fd, what);
    }
    curl_pool_collect(pool);
}

static void curl_client_on_timeout(void *context)
{
    struct curl_pool *pool = curl_pool_from(context);
    act(pool, CURL_SOCKET_TIMEOUT, 0);
    curl_pool_collect(pool);
}

void curl_pool_collect(struct curl_pool *pool)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(pool->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        char *context = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &context);
        struct curl_call *call = curl_call_from(context);
        call->events->done(call, message->data.result);
    }
}

/* Connections of an idle owner are kept for its next call. The pools of all idle owners together
 * keep as many connections as the shared one. */
#define OWNER_CONNECTIONS 4L
#define OWNER_IDLE_MS 30000

static void curl_client_on_run_deferred(void *context);
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
    loop_timer_init(&client->run_deferred, loop, curl_client_on_run_deferred, client);
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
        ASSERT_NUMBERS(client->idle_pool_count, >, 0);
        ASSERT_NUMBERS(pool->calls, ==, 0); /* or it is not idle */
        list_remove(&pool->node);
        client->idle_pool_count--;
    }
    pool->calls++;
    return pool;
}

void curl_client_leave_pool(struct curl_pool *pool)
{
    struct curl_client *client = pool->client;
    ASSERT_NUMBERS(pool->calls, >, 0);
    if (--pool->calls > 0 || pool == client->shared)
        return;
    ASSERT(list_is_empty(&pool->node)); /* not idle already */
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
        ASSERT_NUMBERS(client->idle_pool_count, >, 0);
        ASSERT_NUMBERS(oldest->calls, ==, 0);
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

static void curl_client_on_run_deferred(void *context)
{
    struct curl_client *client = curl_client_from(context);

    ASSERT_NUMBERS(client->inside_curl, ==, 0); /* libcurl is not on the stack */
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
