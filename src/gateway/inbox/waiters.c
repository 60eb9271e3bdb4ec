/* The open calls of await_activity, each woken on its own loop. */
#include <stdatomic.h>
#include <stdlib.h>

#include "inbox_internal.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"

struct inbox_waiter {
    uint32_t magic;   /* INBOX_WAITER_MAGIC */
    struct list node; /* in its client's, under the lock; alone once that has ended */
    struct inbox_table *clients;
    struct inbox *client;  /* NULL once it has ended */
    atomic_int references; /* its call's, and the post's that wakes it */
    unsigned triggers;     /* bits of inbox_event, under the lock */
    bool is_posted;
    struct loop *loop;
    loop_callback woken; /* NULL once it has run, or must not; its loop's alone */
    void *context;
};
#define INBOX_WAITER_MAGIC 0x47574907

static inline struct inbox_waiter *inbox_waiter_from(void *context)
{
    return MAGIC_CAST(struct inbox_waiter, INBOX_WAITER_MAGIC, context);
}

static void unref(struct inbox_waiter *waiter)
{
    if (atomic_fetch_sub(&waiter->references, 1) > 1)
        return;
    MAGIC_CLEAR(waiter);
    free(waiter);
}

/* On its loop. */
static void run(void *context)
{
    struct inbox_waiter *waiter = inbox_waiter_from(context);
    loop_callback woken = waiter->woken;
    waiter->woken = NULL;
    if (woken)
        woken(waiter->context);
    unref(waiter);
}

static void post(struct inbox_waiter *waiter)
{
    if (waiter->is_posted)
        return;
    waiter->is_posted = true;
    atomic_fetch_add(&waiter->references, 1);
    loop_post(waiter->loop, run, waiter);
}

void inbox_waiters_wake(struct inbox *client, enum inbox_event type)
{
    LIST_FOR_EACH_SAFE (node, next, &client->waiters) {
        struct inbox_waiter *waiter = LIST_ENTRY(node, struct inbox_waiter, node);
        waiter->triggers |= 1U << type;
        post(waiter);
    }
}

void inbox_waiters_end(struct inbox *client)
{
    LIST_FOR_EACH_SAFE (node, next, &client->waiters) {
        struct inbox_waiter *waiter = LIST_ENTRY(node, struct inbox_waiter, node);
        list_remove(&waiter->node);
        waiter->client = NULL;
        post(waiter);
    }
}

enum inbox_wait inbox_waiter_begin(struct gateway *gateway, struct str key, struct loop *loop,
                                   loop_callback woken, void *context, struct inbox_waiter **waiter)
{
    struct inbox_table *clients = gateway->inbox_table;
    enum inbox_wait status = INBOX_WAIT_BEGUN;
    *waiter = NULL;
    pthread_mutex_lock(&clients->lock);
    struct inbox *client = inbox_find(clients, key);
    if (!client) {
        status = INBOX_WAIT_NO_CLIENT;
    } else if (client->has_news) {
        status = INBOX_WAIT_IMMEDIATE;
    } else if (client->waiter_count >= INBOX_MOST_WAITERS) {
        status = INBOX_WAIT_TOO_MANY;
    } else {
        *waiter = memory_alloc(sizeof **waiter);
        **waiter = (struct inbox_waiter){
            .magic = INBOX_WAITER_MAGIC,
            .clients = clients,
            .client = client,
            .loop = loop,
            .woken = woken,
            .context = context,
        };
        atomic_init(&(*waiter)->references, 1);
        list_append(&client->waiters, &(*waiter)->node);
        client->waiter_count++;
        inbox_used(clients, client);
    }
    pthread_mutex_unlock(&clients->lock);
    return status;
}

size_t inbox_waiter_write_triggers(struct inbox_waiter *waiter, struct str server,
                                   struct buffer *out)
{
    size_t count = 0;
    pthread_mutex_lock(&waiter->clients->lock);
    unsigned triggers = waiter->triggers;
    pthread_mutex_unlock(&waiter->clients->lock);
    buffer_append_char(out, '[');
    for (unsigned type = 0; type < INBOX_EVENT_COUNT; type++) {
        bool is_end = type == INBOX_SERVER_DISCONNECTED;
        if (!(triggers & 1U << type))
            continue;
        buffer_append_format(out, "%s{\"type\":\"%s\",\"server\":", count++ > 0 ? "," : "",
                             is_end ? "server_disconnected" : "event");
        buffer_append_json_string(out, server);
        if (!is_end)
            buffer_append_format(out, ",\"eventType\":\"%s\"",
                                 inbox_event_name((enum inbox_event)type));
        buffer_append_char(out, '}');
    }
    buffer_append_char(out, ']');
    return count;
}

bool inbox_waiter_client_ended(struct inbox_waiter *waiter)
{
    pthread_mutex_lock(&waiter->clients->lock);
    bool ended = !waiter->client;
    pthread_mutex_unlock(&waiter->clients->lock);
    return ended;
}

void inbox_waiter_end(struct inbox_waiter *waiter)
{
    pthread_mutex_lock(&waiter->clients->lock);
    struct inbox *client = waiter->client;
    if (client) {
        list_remove(&waiter->node);
        client->waiter_count--;
        inbox_used(waiter->clients, client);
    }
    pthread_mutex_unlock(&waiter->clients->lock);
    waiter->woken = NULL;
    unref(waiter);
}
