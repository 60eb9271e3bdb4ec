/*
 * libcurl's multi handle in the loop: its sockets in an epoll of their own, and its timer. The
 * multi handle keeps the connections.
 *
 * The nested epoll is what makes this safe: libcurl 7.88 closes a socket that was aborted
 * while connecting without saying so first, and a stale descriptor may be in an epoll of
 * its own but not in the loop's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "curl_internal.h"
#include "taskgate/core/log.h"
#include "taskgate/core/memory.h"

#define EVENTS_PER_ROUND 64

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context);
static int on_timeout_wish(CURLM *multi, long timeout_ms, void *context);
static void on_sockets_ready(void *context);
static void on_timeout(void *context);
static void on_run_deferred(void *context);

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
    client->loop = loop;
    list_init(&client->calls);
    list_init(&client->deferred);
    loop_timer_init(&client->timer, loop, on_timeout, client);
    loop_timer_init(&client->run_deferred, loop, on_run_deferred, client);
    buffer_init(&client->decoded);
    client->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    client->idle_epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (client->epoll_fd != -1 && client->idle_epoll_fd != -1)
        client->watch = loop_watch_create(loop, client->epoll_fd, on_sockets_ready, client);
    client->multi = curl_multi_init();
    if (client->watch == NULL || client->multi == NULL) {
        error_set(error, "cannot set up the HTTP client: %s", strerror(errno));
        curl_client_destroy(client);
        return NULL;
    }
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timeout_wish);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, max_idle_connections);
    return client;
}

/* ---- libcurl in the loop ---- */

/* Whether libcurl has told of the descriptor before says nothing: it may have closed that
 * one and got the same number again. So the epoll itself is asked. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    const struct curl_client *client = context;
    struct epoll_event event = {.data.fd = fd};

    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(client->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        event.events = EPOLLIN;
        epoll_ctl(client->idle_epoll_fd, EPOLL_CTL_ADD, fd, &event);
        return 0;
    }
    epoll_ctl(client->idle_epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        event.events |= EPOLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        event.events |= EPOLLOUT;
    if (epoll_ctl(client->epoll_fd, EPOLL_CTL_MOD, fd, &event) != 0 &&
        epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        log_error("Cannot watch an upstream connection", LOG_TEXT("error", strerror(errno)));
    return 0;
}

/* To connect to nowhere cuts a connection and empties its socket, so that libcurl finds it dead
 * before it gives it to a transfer. */
bool curl_client_drop_unread(struct curl_client *client)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    struct epoll_event events[EVENTS_PER_ROUND];
    bool was_any = false;
    int count;

    while ((count = epoll_wait(client->idle_epoll_fd, events, EVENTS_PER_ROUND, 0)) > 0) {
        was_any = true;
        for (int i = 0; i < count; i++) {
            epoll_ctl(client->idle_epoll_fd, EPOLL_CTL_DEL, events[i].data.fd, NULL);
            if (connect(events[i].data.fd, &nowhere, sizeof(nowhere)) != 0)
                shutdown(events[i].data.fd, SHUT_RDWR);
        }
    }
    return was_any;
}

static int on_timeout_wish(CURLM *multi, long timeout_ms, void *context)
{
    struct curl_client *client = context;
    if (timeout_ms < 0)
        loop_timer_stop(&client->timer);
    else
        loop_timer_start(&client->timer, timeout_ms);
    return 0;
}

static void act(struct curl_client *client, curl_socket_t fd, int what)
{
    int running;
    client->inside_curl++;
    curl_multi_socket_action(client->multi, fd, what, &running);
    client->inside_curl--;
}

static void on_sockets_ready(void *context)
{
    struct curl_client *client = context;
    struct epoll_event events[EVENTS_PER_ROUND];

    int count = epoll_wait(client->epoll_fd, events, EVENTS_PER_ROUND, 0);
    for (int i = 0; i < count; i++) {
        /* An error shows itself to whoever reads or writes; told as such, libcurl would not
         * read what has arrived before it. */
        bool is_broken = (events[i].events & (EPOLLERR | EPOLLHUP)) != 0;
        int what = 0;
        if ((events[i].events & EPOLLIN) != 0 || is_broken)
            what |= CURL_CSELECT_IN;
        if ((events[i].events & EPOLLOUT) != 0 || is_broken)
            what |= CURL_CSELECT_OUT;
        act(client, events[i].data.fd, what);
    }
    curl_client_collect(client);
}

static void on_timeout(void *context)
{
    struct curl_client *client = context;
    act(client, CURL_SOCKET_TIMEOUT, 0);
    curl_client_collect(client);
}

void curl_client_collect(struct curl_client *client)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(client->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct curl_call *call = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
        curl_call_done(call, message->data.result);
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
    struct curl_client *client = context;

    while (!list_is_empty(&client->deferred)) {
        struct curl_call *call = LIST_ENTRY(client->deferred.next, struct curl_call, deferred);
        list_remove(&call->deferred);
        curl_call_run_deferred(call);
    }
}

/* ---- the end ---- */

void curl_client_destroy(struct curl_client *client)
{
    if (client == NULL)
        return;
    LIST_FOR_EACH_SAFE (node, next, &client->calls)
        curl_call_destroy(LIST_ENTRY(node, struct curl_call, node));
    if (client->multi != NULL)
        curl_multi_cleanup(client->multi);
    loop_timer_stop(&client->timer);
    loop_timer_stop(&client->run_deferred);
    loop_watch_destroy(client->watch);
    if (client->epoll_fd != -1)
        close(client->epoll_fd);
    if (client->idle_epoll_fd != -1)
        close(client->idle_epoll_fd);
    buffer_finish(&client->decoded);
    free(client);
}
