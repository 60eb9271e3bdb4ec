/* Who waits in await_activity, and how they are woken on their own loops. */
#include <stdatomic.h>
#include <stdlib.h>

#include "inbox_internal.h"
#include "taskgate/core/memory.h"

struct pseudo_waiter {
    struct list node; /* in its client's, under the lock; alone once that has ended */
    struct pseudo_clients *clients;
    struct pseudo_client *client; /* NULL once it has ended */
    atomic_int references;        /* its call's, and the post's that wakes it */
    unsigned triggers;            /* bits of pseudo_event, under the lock */
    bool is_posted;
    struct loop *loop;
    loop_callback woken; /* NULL once it has run, or must not; its loop's alone */
    void *context;
};

static void unref(struct pseudo_waiter *waiter)
{
    if (atomic_fetch_sub(&waiter->references, 1) == 1)
        free(waiter);
}

/* On its loop. */
static void run(void *context)
{
    struct pseudo_waiter *waiter = context;
    loop_callback woken = waiter->woken;
    waiter->woken = NULL;
    if (woken)
        woken(waiter->context);
    unref(waiter);
}

static void post(struct pseudo_waiter *waiter)
{
    if (waiter->is_posted)
        return;
    waiter->is_posted = true;
    atomic_fetch_add(&waiter->references, 1);
    loop_post(waiter->loop, run, waiter);
}

void pseudo_waiters_wake(struct pseudo_client *client, enum pseudo_event type)
{
    LIST_FOR_EACH_SAFE (node, next, &client->waiters) {
        struct pseudo_waiter *waiter = LIST_ENTRY(node, struct pseudo_waiter, node);
        waiter->triggers |= 1U << type;
        post(waiter);
    }
}

void pseudo_waiters_end(struct pseudo_client *client)
{
    LIST_FOR_EACH_SAFE (node, next, &client->waiters) {
        struct pseudo_waiter *waiter = LIST_ENTRY(node, struct pseudo_waiter, node);
        list_remove(&waiter->node);
        waiter->client = NULL;
        post(waiter);
    }
}

enum pseudo_wait pseudo_waiter_begin(struct gateway *gateway, struct str key, struct loop *loop,
                                     loop_callback woken, void *context,
                                     struct pseudo_waiter **waiter)
{
    struct pseudo_clients *clients = gateway->pseudo_clients;
    enum pseudo_wait status = PSEUDO_WAIT_BEGUN;
    *waiter = NULL;
    pthread_mutex_lock(&clients->lock);
    struct pseudo_client *client = pseudo_client_find(clients, key);
    if (!client) {
        status = PSEUDO_WAIT_NO_CLIENT;
    } else if (client->has_news) {
        status = PSEUDO_WAIT_IMMEDIATE;
    } else if (client->waiter_count >= PSEUDO_MOST_WAITERS) {
        status = PSEUDO_WAIT_TOO_MANY;
    } else {
        *waiter = memory_alloc(sizeof **waiter);
        **waiter = (struct pseudo_waiter){
            .clients = clients,
            .client = client,
            .loop = loop,
            .woken = woken,
            .context = context,
        };
        atomic_init(&(*waiter)->references, 1);
        list_append(&client->waiters, &(*waiter)->node);
        client->waiter_count++;
        pseudo_client_used(clients, client);
    }
    pthread_mutex_unlock(&clients->lock);
    return status;
}

size_t pseudo_waiter_write_triggers(struct pseudo_waiter *waiter, struct str server,
                                    struct buffer *out)
{
    size_t count = 0;
    pthread_mutex_lock(&waiter->clients->lock);
    unsigned triggers = waiter->triggers;
    pthread_mutex_unlock(&waiter->clients->lock);
    buffer_append_char(out, '[');
    for (unsigned type = 0; type < PSEUDO_EVENT_COUNT; type++) {
        bool is_end = type == PSEUDO_SERVER_DISCONNECTED;
        if (!(triggers & 1U << type))
            continue;
        buffer_append_format(out, "%s{\"type\":\"%s\",\"server\":", count++ > 0 ? "," : "",
                             is_end ? "server_disconnected" : "event");
        buffer_append_json_string(out, server);
        if (!is_end)
            buffer_append_format(out, ",\"eventType\":\"%s\"",
                                 pseudo_event_name((enum pseudo_event)type));
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, ']');
    return count;
}

bool pseudo_waiter_client_ended(struct pseudo_waiter *waiter)
{
    pthread_mutex_lock(&waiter->clients->lock);
    bool ended = !waiter->client;
    pthread_mutex_unlock(&waiter->clients->lock);
    return ended;
}

void pseudo_waiter_end(struct pseudo_waiter *waiter)
{
    pthread_mutex_lock(&waiter->clients->lock);
    struct pseudo_client *client = waiter->client;
    if (client) {
        list_remove(&waiter->node);
        client->waiter_count--;
        pseudo_client_used(waiter->clients, client);
    }
    pthread_mutex_unlock(&waiter->clients->lock);
    waiter->woken = NULL;
    unref(waiter);
}
