/* The inboxes of clients that know no tasks. */
#include "inbox_internal.h"

#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

#define IDLE_MS INT64_C(1800000) /* reference §10.5: both are 30 minutes */
#define EVENT_RETENTION_MS INT64_C(1800000)
/* The bytes that the lines of one client may hold. Events have half, the two others a quarter each.
 * Beyond ALL_CLIENTS_BYTES of all clients together no line grows, except within a share that each
 * has for certain. So nobody else's messages take anything out of a line. */
#define MOST_BYTES ((size_t)1024 * 1024)
#define ALL_CLIENTS_BYTES ((size_t)256 * 1024 * 1024)

/* ---- life ---- */

struct inbox_table *inbox_table_create(void)
{
    struct inbox_table *clients = memory_alloc(sizeof *clients);
    pthread_mutex_init(&clients->lock, NULL);
    clients->by_key = map_create();
    clients->warned = map_create();
    list_init(&clients->idle);
    list_init(&clients->busy);
    return clients;
}

static void client_destroy(void *value)
{
    struct inbox *client = value;
    inbox_waiters_end(client);
    repeated_calls_finish(client);
    inbox_ring_finish(&client->events);
    inbox_ring_finish(&client->logs);
    inbox_ring_finish(&client->notifications);
    free(client->key);
    free(client);
}

void inbox_table_destroy(struct inbox_table *clients)
{
    if (!clients)
        return;
    map_destroy(clients->by_key, client_destroy);
    map_destroy(clients->warned, NULL);
    pthread_mutex_destroy(&clients->lock);
    free(clients);
}

static void publish_count(const struct inbox_table *clients)
{
    metrics_set(METRIC_PSEUDO_CLIENTS, (double)map_count(clients->by_key), NULL);
}

static void remove_client(struct inbox_table *clients, struct inbox *client)
{
    list_remove(&client->node);
    map_remove(clients->by_key, str_from(client->key));
    client_destroy(client);
    publish_count(clients);
}

static bool holds_anything(const struct inbox *client)
{
    return client->events.count + client->logs.count + client->notifications.count +
               client->join_count >
           0;
}

/* Drops the inbox that is idle for longest and holds nothing. False when every inbox holds
 * something: a newcomer takes nothing from others. */
static bool make_room(struct inbox_table *clients, size_t most)
{
    if (map_count(clients->by_key) < most)
        return true;
    LIST_FOR_EACH_SAFE (node, next, &clients->idle) {
        struct inbox *client = LIST_ENTRY(node, struct inbox, node);
        if (holds_anything(client))
            continue;
        remove_client(clients, client);
        return true;
    }
    return false;
}

static size_t most_clients(void)
{
    struct snapshot *snapshot = snapshot_current();
    size_t most = (size_t)snapshot->config->limits.sessions;
    snapshot_unref(snapshot);
    return most;
}

void inbox_touch(struct gateway *gateway, struct str key)
{
    struct inbox_table *clients = gateway->inbox_table;
    if (key.length == 0)
        return;
    size_t most = most_clients();
    pthread_mutex_lock(&clients->lock);
    clients->most = most;
    struct inbox *client = inbox_find(clients, key);
    if (!client && make_room(clients, most)) {
        client = memory_alloc(sizeof *client);
        client->key = memory_copy_str(key);
        list_init(&client->node);
        list_init(&client->waiters);
        list_init(&client->joins);
        inbox_ring_init(&client->events, &clients->bytes);
        inbox_ring_init(&client->logs, &clients->bytes);
        inbox_ring_init(&client->notifications, &clients->bytes);
        map_put(clients->by_key, key, client);
        publish_count(clients);
    }
    if (client)
        inbox_used(clients, client);
    pthread_mutex_unlock(&clients->lock);
}

void inbox_end(struct gateway *gateway, struct str key)
{
    struct inbox_table *clients = gateway->inbox_table;
    pthread_mutex_lock(&clients->lock);
    struct inbox *client = inbox_find(clients, key);
    if (client)
        remove_client(clients, client);
    pthread_mutex_unlock(&clients->lock);
}

void inbox_end_session(struct gateway *gateway, struct str key)
{
    struct inbox_table *clients = gateway->inbox_table;
    struct list *lists[] = {&clients->idle, &clients->busy};
    pthread_mutex_lock(&clients->lock);
    for (size_t i = 0; i < 2; i++) {
        LIST_FOR_EACH_SAFE (node, next, lists[i]) {
            struct inbox *client = LIST_ENTRY(node, struct inbox, node);
            if (str_equal(inbox_key_session(client->key), key))
                remove_client(clients, client);
        }
    }
    pthread_mutex_unlock(&clients->lock);
}

void inbox_table_sweep(struct inbox_table *clients, int64_t monotonic_ms)
{
    int64_t before_ms = clock_now_ms() - EVENT_RETENTION_MS;
    size_t position = 0;
    void *value;
    pthread_mutex_lock(&clients->lock);
    LIST_FOR_EACH_SAFE (node, next, &clients->idle) {
        struct inbox *client = LIST_ENTRY(node, struct inbox, node);
        if (monotonic_ms - client->touched_ms < IDLE_MS)
            break;
        remove_client(clients, client);
    }
    while (map_next(clients->by_key, &position, NULL, &value)) {
        struct inbox *client = value;
        inbox_ring_expire(&client->events, before_ms);
        client->has_news = client->has_news && client->events.count > 0;
    }
    pthread_mutex_unlock(&clients->lock);
}

bool inbox_table_warn_once(struct inbox_table *clients, struct str source)
{
    pthread_mutex_lock(&clients->lock);
    bool is_first = map_put(clients->warned, source, clients) == NULL;
    pthread_mutex_unlock(&clients->lock);
    return is_first;
}

size_t inbox_table_count(struct inbox_table *clients)
{
    pthread_mutex_lock(&clients->lock);
    size_t count = map_count(clients->by_key);
    pthread_mutex_unlock(&clients->lock);
    return count;
}

/* ---- what comes for them ---- */

/* The bytes that one ring may hold now: one `parts`-th of its client's share. */
static size_t allowance(const struct inbox_table *clients, const struct inbox_ring *ring,
                        size_t parts)
{
    size_t certain = ALL_CLIENTS_BYTES / (clients->most + 1) / parts;
    size_t most = MOST_BYTES / parts;
    if (clients->bytes < ALL_CLIENTS_BYTES)
        return most;
    if (ring->bytes > certain)
        certain = ring->bytes;
    return certain < most ? certain : most;
}

/* An inbox is of one server, and only its last word counts whether it can be reached: one that
 * comes and goes takes nothing out of the line. */
static bool is_of_reachability(enum inbox_event type)
{
    return type == INBOX_SERVER_CONNECTED || type == INBOX_SERVER_DISCONNECTED ||
           type == INBOX_SERVER_RECONNECTED;
}

static void push_event(struct inbox_table *clients, struct inbox *client, enum inbox_event type,
                       struct str server, struct str data)
{
    struct inbox_entry *entry = inbox_entry_create(type, server, STR_EMPTY, data);
    size_t most_bytes = allowance(clients, &client->events, 2);
    if (is_of_reachability(type))
        inbox_ring_replace(&client->events, entry, INBOX_MOST_EVENTS, most_bytes);
    else
        inbox_ring_push(&client->events, entry, INBOX_MOST_EVENTS, most_bytes);
    if (!inbox_event_wakes(type))
        return;
    client->has_news = true;
    inbox_waiters_wake(client, type);
}

void inbox_add_event(struct gateway *gateway, struct str key, enum inbox_event type,
                     struct str server, struct str data)
{
    struct inbox_table *clients = gateway->inbox_table;
    pthread_mutex_lock(&clients->lock);
    struct inbox *client = inbox_find(clients, key);
    if (client)
        push_event(clients, client, type, server, data);
    pthread_mutex_unlock(&clients->lock);
}

bool inbox_has_event(struct gateway *gateway, struct str key, enum inbox_event type,
                     struct str text)
{
    struct inbox_table *clients = gateway->inbox_table;
    bool is_there = false;
    pthread_mutex_lock(&clients->lock);
    struct inbox *client = inbox_find(clients, key);
    if (client) {
        LIST_FOR_EACH_SAFE (node, next, &client->events.entries) {
            const struct inbox_entry *entry = LIST_ENTRY(node, struct inbox_entry, node);
            is_there =
                is_there || (entry->kind == type && memmem(entry->json.bytes, entry->json.length,
                                                           text.bytes, text.length) != NULL);
        }
    }
    pthread_mutex_unlock(&clients->lock);
    return is_there;
}

void inbox_add_session_event(struct gateway *gateway, struct str key, enum inbox_event type,
                             struct str server, struct str data)
{
    struct inbox_table *clients = gateway->inbox_table;
    size_t position = 0;
    void *value;
    pthread_mutex_lock(&clients->lock);
    while (key.length > 0 && map_next(clients->by_key, &position, NULL, &value)) {
        struct inbox *client = value;
        if (str_equal(inbox_key_session(client->key), key))
            push_event(clients, client, type, server, data);
    }
    pthread_mutex_unlock(&clients->lock);
}

void inbox_add_source_event(struct gateway *gateway, enum inbox_event type, struct str server,
                            struct str data)
{
    struct inbox_table *clients = gateway->inbox_table;
    char *id = memory_copy_str(server), prefix[CLIENT_KEY_BYTES];
    size_t position = 0;
    struct str key;
    void *value;
    client_key_prefix(id, prefix);
    pthread_mutex_lock(&clients->lock);
    while (map_next(clients->by_key, &position, &key, &value)) {
        if (str_starts_with(key, str_from(prefix)))
            push_event(clients, value, type, server, data);
    }
    pthread_mutex_unlock(&clients->lock);
    free(id);
}

void inbox_add_log(struct gateway *gateway, struct str key, struct str server, struct str params)
{
    struct inbox_table *clients = gateway->inbox_table;
    pthread_mutex_lock(&clients->lock);
    struct inbox *client = inbox_find(clients, key);
    if (client)
        inbox_ring_push(&client->logs, inbox_entry_create(0, server, STR_EMPTY, params),
                        INBOX_MOST_LOGS, allowance(clients, &client->logs, 4));
    pthread_mutex_unlock(&clients->lock);
}

void inbox_add_notification(struct gateway *gateway, struct str key, struct str server,
                            struct str method, struct str params)
{
    struct inbox_table *clients = gateway->inbox_table;
    pthread_mutex_lock(&clients->lock);
    struct inbox *client = inbox_find(clients, key);
    if (client) {
        struct buffer data = {0};
        inbox_ring_push(&client->notifications, inbox_entry_create(0, server, method, params),
                        INBOX_MOST_NOTIFICATIONS, allowance(clients, &client->notifications, 4));
        buffer_append_text(&data, "{\"method\":");
        buffer_append_json_string(&data, method);
        if (params.length > 0)
            buffer_append_format(&data, ",\"params\":%.*s", STR_ARGS(params));
        buffer_append_char(&data, '}');
        push_event(clients, client, INBOX_NOTIFICATION, server, buffer_str(&data));
        buffer_finish(&data);
    }
    pthread_mutex_unlock(&clients->lock);
}
