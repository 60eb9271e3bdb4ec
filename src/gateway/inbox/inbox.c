/* Clients that know no tasks, and what is kept for them. */
#include "inbox_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "taskgate/core/clock.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"

#define IDLE_MS INT64_C(1800000) /* reference §10.5: both are 30 minutes */
#define EVENT_RETENTION_MS INT64_C(1800000)
/* What one client's lines may hold. Half is for events, a quarter for each of the others. Once all
 * together hold ALL_CLIENTS_BYTES, none grows beyond what it has, but for a share that each has for
 * certain: what others hold takes nothing out of a line. */
#define MOST_BYTES ((size_t)1024 * 1024)
#define ALL_CLIENTS_BYTES ((size_t)256 * 1024 * 1024)
/* Between a session and its owner in a key; a digest stands before it. */
#define OWNER_MARK "#"

static const struct {
    const char *name;
    bool wakes;
} event_rows[PSEUDO_EVENT_COUNT] = {
    [PSEUDO_ELICITATION_REQUEST] = {"elicitation_request", true},
    [PSEUDO_SAMPLING_REQUEST] = {"sampling_request", true},
    [PSEUDO_ELICITATION_EXPIRED] = {"elicitation_expired", true},
    [PSEUDO_SAMPLING_EXPIRED] = {"sampling_expired", true},
    [PSEUDO_TASK_CREATED] = {"task_created", false},
    [PSEUDO_TASK_COMPLETED] = {"task_completed", true},
    [PSEUDO_TASK_FAILED] = {"task_failed", true},
    [PSEUDO_TASK_CANCELLED] = {"task_cancelled", true},
    [PSEUDO_TASK_EXPIRED] = {"task_expired", true},
    [PSEUDO_NOTIFICATION] = {"notification", true},
    [PSEUDO_SERVER_CONNECTED] = {"server_connected", true},
    [PSEUDO_SERVER_DISCONNECTED] = {"server_disconnected", true},
    [PSEUDO_SERVER_RECONNECTED] = {"server_reconnected", true},
};

const char *pseudo_event_name(enum pseudo_event type)
{
    return event_rows[type].name;
}

bool pseudo_event_wakes(enum pseudo_event type)
{
    return event_rows[type].wakes;
}

/* ---- keys ---- */

/* Behind the key of the session stands who owns it, unless the session itself does. */
static void add_owner(const char *session, const char *owner, char key[])
{
    size_t length = strlen(key);
    if (session[0] && str_starts_with(str_from(owner), STR("auth:")))
        snprintf(key + length, CLIENT_KEY_BYTES - length, OWNER_MARK "%s", owner);
}

void inbox_key_of_call(const struct call *call, char key[])
{
    client_key_of_call(call, key);
    add_owner(call->session, call->owner, key);
}

void inbox_key_of_task(const struct task *task, char key[])
{
    client_key_of_task(task, key);
    add_owner(task->session, task->owner, key);
}

void inbox_key_of_session(const struct call *call, const char *session, char key[])
{
    client_key_of_session(call->source, session, key);
    add_owner(session, call->owner, key);
}

static struct str session_of_key(const char *key)
{
    const char *mark = strstr(key, OWNER_MARK "auth:");
    return mark ? str_slice(key, (size_t)(mark - key)) : str_from(key);
}

/* ---- life ---- */

struct pseudo_clients *pseudo_clients_create(void)
{
    struct pseudo_clients *clients = memory_alloc(sizeof *clients);
    pthread_mutex_init(&clients->lock, NULL);
    clients->by_key = map_create();
    clients->warned = map_create();
    list_init(&clients->idle);
    list_init(&clients->busy);
    return clients;
}

static void client_destroy(void *context)
{
    struct pseudo_client *client = context;
    pseudo_waiters_end(client);
    pseudo_joins_finish(client);
    pseudo_ring_finish(&client->events);
    pseudo_ring_finish(&client->logs);
    pseudo_ring_finish(&client->notifications);
    free(client->key);
    free(client);
}

void pseudo_clients_destroy(struct pseudo_clients *clients)
{
    if (!clients)
        return;
    map_destroy(clients->by_key, client_destroy);
    map_destroy(clients->warned, NULL);
    pthread_mutex_destroy(&clients->lock);
    free(clients);
}

struct pseudo_client *pseudo_client_find(struct pseudo_clients *clients, struct str key)
{
    return key.length > 0 ? map_get(clients->by_key, key) : NULL;
}

void pseudo_client_used(struct pseudo_clients *clients, struct pseudo_client *client)
{
    client->touched_ms = clock_monotonic_ms();
    list_remove(&client->node);
    list_append(client->waiter_count > 0 ? &clients->busy : &clients->idle, &client->node);
}

static void publish_count(const struct pseudo_clients *clients)
{
    metrics_set(METRIC_PSEUDO_CLIENTS, (double)map_count(clients->by_key), NULL);
}

static void remove_client(struct pseudo_clients *clients, struct pseudo_client *client)
{
    list_remove(&client->node);
    map_remove(clients->by_key, str_from(client->key));
    client_destroy(client);
    publish_count(clients);
}

static bool holds_anything(const struct pseudo_client *client)
{
    return client->events.count + client->logs.count + client->notifications.count +
               client->join_count >
           0;
}

/* The one that is idle for longest and holds nothing goes. False when there is none: what is kept
 * for others is not dropped for a newcomer. */
static bool make_room(struct pseudo_clients *clients, size_t most)
{
    if (map_count(clients->by_key) < most)
        return true;
    LIST_FOR_EACH_SAFE (node, next, &clients->idle) {
        struct pseudo_client *client = LIST_ENTRY(node, struct pseudo_client, node);
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

void pseudo_client_touch(struct gateway *gateway, struct str key)
{
    struct pseudo_clients *clients = gateway->pseudo_clients;
    if (key.length == 0)
        return;
    size_t most = most_clients();
    pthread_mutex_lock(&clients->lock);
    clients->most = most;
    struct pseudo_client *client = pseudo_client_find(clients, key);
    if (!client && make_room(clients, most)) {
        client = memory_alloc(sizeof *client);
        client->key = memory_copy_str(key);
        list_init(&client->node);
        list_init(&client->waiters);
        list_init(&client->joins);
        pseudo_ring_init(&client->events, &clients->bytes);
        pseudo_ring_init(&client->logs, &clients->bytes);
        pseudo_ring_init(&client->notifications, &clients->bytes);
        map_put(clients->by_key, key, client);
        publish_count(clients);
    }
    if (client)
        pseudo_client_used(clients, client);
    pthread_mutex_unlock(&clients->lock);
}

void pseudo_client_end(struct gateway *gateway, struct str key)
{
    struct pseudo_clients *clients = gateway->pseudo_clients;
    pthread_mutex_lock(&clients->lock);
    struct pseudo_client *client = pseudo_client_find(clients, key);
    if (client)
        remove_client(clients, client);
    pthread_mutex_unlock(&clients->lock);
}

void pseudo_session_end(struct gateway *gateway, struct str key)
{
    struct pseudo_clients *clients = gateway->pseudo_clients;
    struct list *lists[] = {&clients->idle, &clients->busy};
    pthread_mutex_lock(&clients->lock);
    for (size_t i = 0; i < 2; i++) {
        LIST_FOR_EACH_SAFE (node, next, lists[i]) {
            struct pseudo_client *client = LIST_ENTRY(node, struct pseudo_client, node);
            if (str_equal(session_of_key(client->key), key))
                remove_client(clients, client);
        }
    }
    pthread_mutex_unlock(&clients->lock);
}

void pseudo_clients_sweep(struct pseudo_clients *clients, int64_t monotonic_ms)
{
    int64_t before_ms = clock_now_ms() - EVENT_RETENTION_MS;
    size_t position = 0;
    void *value;
    pthread_mutex_lock(&clients->lock);
    LIST_FOR_EACH_SAFE (node, next, &clients->idle) {
        struct pseudo_client *client = LIST_ENTRY(node, struct pseudo_client, node);
        if (monotonic_ms - client->touched_ms < IDLE_MS)
            break;
        remove_client(clients, client);
    }
    while (map_next(clients->by_key, &position, NULL, &value)) {
        struct pseudo_client *client = value;
        pseudo_ring_expire(&client->events, before_ms);
        client->has_news = client->has_news && client->events.count > 0;
    }
    pthread_mutex_unlock(&clients->lock);
}

bool pseudo_clients_warn_once(struct pseudo_clients *clients, struct str source)
{
    pthread_mutex_lock(&clients->lock);
    bool is_first = map_put(clients->warned, source, clients) == NULL;
    pthread_mutex_unlock(&clients->lock);
    return is_first;
}

size_t pseudo_clients_count(struct pseudo_clients *clients)
{
    pthread_mutex_lock(&clients->lock);
    size_t count = map_count(clients->by_key);
    pthread_mutex_unlock(&clients->lock);
    return count;
}

/* ---- what comes for them ---- */

/* For one of its lines, of which `parts` are as large as all together. */
static size_t allowance(const struct pseudo_clients *clients, const struct pseudo_ring *ring,
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

static void push_event(struct pseudo_clients *clients, struct pseudo_client *client,
                       enum pseudo_event type, struct str server, struct str data)
{
    pseudo_ring_push(&client->events, pseudo_entry_create(type, server, STR_EMPTY, data),
                     PSEUDO_MOST_EVENTS, allowance(clients, &client->events, 2));
    if (!pseudo_event_wakes(type))
        return;
    client->has_news = true;
    pseudo_waiters_wake(client, type);
}

void pseudo_client_event(struct gateway *gateway, struct str key, enum pseudo_event type,
                         struct str server, struct str data)
{
    struct pseudo_clients *clients = gateway->pseudo_clients;
    pthread_mutex_lock(&clients->lock);
    struct pseudo_client *client = pseudo_client_find(clients, key);
    if (client)
        push_event(clients, client, type, server, data);
    pthread_mutex_unlock(&clients->lock);
}

void pseudo_session_event(struct gateway *gateway, struct str key, enum pseudo_event type,
                          struct str server, struct str data)
{
    struct pseudo_clients *clients = gateway->pseudo_clients;
    size_t position = 0;
    void *value;
    pthread_mutex_lock(&clients->lock);
    while (key.length > 0 && map_next(clients->by_key, &position, NULL, &value)) {
        struct pseudo_client *client = value;
        if (str_equal(session_of_key(client->key), key))
            push_event(clients, client, type, server, data);
    }
    pthread_mutex_unlock(&clients->lock);
}

void pseudo_source_event(struct gateway *gateway, enum pseudo_event type, struct str server,
                         struct str data)
{
    struct pseudo_clients *clients = gateway->pseudo_clients;
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

void pseudo_client_log(struct gateway *gateway, struct str key, struct str server,
                       struct str params)
{
    struct pseudo_clients *clients = gateway->pseudo_clients;
    pthread_mutex_lock(&clients->lock);
    struct pseudo_client *client = pseudo_client_find(clients, key);
    if (client)
        pseudo_ring_push(&client->logs, pseudo_entry_create(0, server, STR_EMPTY, params),
                         PSEUDO_MOST_LOGS, allowance(clients, &client->logs, 4));
    pthread_mutex_unlock(&clients->lock);
}

void pseudo_client_notification(struct gateway *gateway, struct str key, struct str server,
                                struct str method, struct str params)
{
    struct pseudo_clients *clients = gateway->pseudo_clients;
    pthread_mutex_lock(&clients->lock);
    struct pseudo_client *client = pseudo_client_find(clients, key);
    if (client) {
        struct buffer data = {0};
        pseudo_ring_push(&client->notifications, pseudo_entry_create(0, server, method, params),
                         PSEUDO_MOST_NOTIFICATIONS, allowance(clients, &client->notifications, 4));
        buffer_append_text(&data, "{\"method\":");
        buffer_append_json_string(&data, method);
        if (params.length > 0)
            buffer_append_format(&data, ",\"params\":%.*s", STR_ARGS(params));
        buffer_append_char(&data, '}');
        push_event(clients, client, PSEUDO_NOTIFICATION, server, buffer_str(&data));
        buffer_finish(&data);
    }
    pthread_mutex_unlock(&clients->lock);
}
