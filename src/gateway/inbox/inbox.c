/* The inboxes of clients that know no tasks. */
#include "inbox_internal.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/tool_catalog.h"
#include "task_summary.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"
#include "taskgate/core/list.h"
#include "taskgate/core/magic.h"
#include "taskgate/core/memory.h"
#include "taskgate/core/metrics.h"
#include "taskgate/core/owned.h"
#include "taskgate/core/random.h"
#include "taskgate/core/str.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

/* Separates a session from its owner in a key. A digest stands before it. */
#define OWNER_MARK "#"

static const struct {
    const char *name;
    bool wakes;
} event_rows[INBOX_EVENT_COUNT] = {
    [INBOX_ELICITATION_REQUEST] = {"elicitation_request", true},
    [INBOX_SAMPLING_REQUEST] = {"sampling_request", true},
    [INBOX_ELICITATION_EXPIRED] = {"elicitation_expired", true},
    [INBOX_SAMPLING_EXPIRED] = {"sampling_expired", true},
    [INBOX_TASK_CREATED] = {"task_created", false},
    [INBOX_TASK_COMPLETED] = {"task_completed", true},
    [INBOX_TASK_FAILED] = {"task_failed", true},
    [INBOX_TASK_CANCELLED] = {"task_cancelled", true},
    [INBOX_TASK_EXPIRED] = {"task_expired", true},
    [INBOX_NOTIFICATION] = {"notification", true},
    [INBOX_SERVER_CONNECTED] = {"server_connected", true},
    [INBOX_SERVER_DISCONNECTED] = {"server_disconnected", true},
    [INBOX_SERVER_RECONNECTED] = {"server_reconnected", true},
};

const char *inbox_event_name(enum inbox_event type)
{
    ASSERT_NUMBERS(type, <, INBOX_EVENT_COUNT);
    return event_rows[type].name;
}

static bool inbox_event_wakes(enum inbox_event type)
{
    return event_rows[type].wakes;
}

/* ---- keys ---- */

/* The key of a session is followed by its owner, unless the session is its own owner. */
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

/* The key of the session of an inbox, which its owner's inboxes share. */
static struct str inbox_key_session(const char *key)
{
    const char *mark = strstr(key, OWNER_MARK "auth:");
    return mark ? str_slice(key, (size_t)(mark - key)) : str_from(key);
}

/* It has been used, or its waiters have come or gone. Under the lock. */
static void inbox_used(struct inbox_table *clients, struct inbox *client)
{
    client->touched_ms = clock_monotonic_ms();
    list_remove(&client->node);
    list_append(client->waiter_count > 0 ? &clients->busy : &clients->idle, &client->node);
}

/* Bounded rings of entries. */

/* A longer text is not kept, because the client can ask for its subject. */
#define MOST_JSON_BYTES ((size_t)64 * 1024)

static struct str inbox_copy(char **at, struct str text)
{
    char *to = *at;
    if (text.length > 0)
        memcpy(to, text.bytes, text.length);
    *at += text.length;
    return str_slice(to, text.length);
}

static struct inbox_entry *inbox_entry_create(unsigned kind, struct str server, struct str name,
                                              struct str json)
{
    struct str kept = json.length <= MOST_JSON_BYTES ? json : STR_EMPTY;
    size_t size = sizeof(struct inbox_entry) + server.length + name.length + kept.length;
    struct inbox_entry *entry = memory_alloc(size);
    char *at = entry->bytes;
    list_init(&entry->node);
    entry->kind = kind;
    entry->size = size;
    entry->at_ms = clock_now_ms();
    random_ulid(entry->id);
    entry->server = inbox_copy(&at, server);
    entry->name = inbox_copy(&at, name);
    entry->json = inbox_copy(&at, kept);
    return entry;
}

static void inbox_ring_init(struct inbox_ring *ring, size_t *total)
{
    list_init(&ring->entries);
    ring->count = ring->bytes = 0;
    ring->total = total;
    ring->latest = NULL;
}

static void remove_entry(struct inbox_ring *ring, struct inbox_entry *entry)
{
    if (ring->latest == entry)
        ring->latest = NULL;
    ASSERT_NUMBERS(ring->count, >, 0);
    ASSERT_NUMBERS(ring->bytes, >=, entry->size);
    ASSERT_NUMBERS(*ring->total, >=, entry->size);
    list_remove(&entry->node);
    ring->count--;
    ring->bytes -= entry->size;
    *ring->total -= entry->size;
}

static void drop(struct inbox_ring *ring, struct inbox_entry *entry)
{
    remove_entry(ring, entry);
    free(entry);
}

static void inbox_ring_finish(struct inbox_ring *ring)
{
    LIST_FOR_EACH_SAFE (node, next, &ring->entries) {
        drop(ring, LIST_ENTRY(node, struct inbox_entry, node));
    }
}

/* Takes the entry over; the oldest make room until there are at most `most` in `most_bytes`. */
static void inbox_ring_push(struct inbox_ring *ring, struct inbox_entry *entry, size_t most,
                            size_t most_bytes)
{
    list_append(&ring->entries, &entry->node);
    ring->count++;
    ring->bytes += entry->size;
    *ring->total += entry->size;
    LIST_FOR_EACH_SAFE (node, next, &ring->entries) {
        if (ring->count <= most && (ring->bytes <= most_bytes || ring->count == 1))
            return;
        drop(ring, LIST_ENTRY(node, struct inbox_entry, node));
    }
}

/* The same with an entry that stands for the last one given so: what it said is out of date. */
static void inbox_ring_replace(struct inbox_ring *ring, struct inbox_entry *entry, size_t most,
                               size_t most_bytes)
{
    if (ring->latest)
        drop(ring, ring->latest);
    inbox_ring_push(ring, entry, most, most_bytes); /* never drops the only one */
    ring->latest = entry;
}

/* Drops what is older than `before_ms`. */
static void inbox_ring_expire(struct inbox_ring *ring, int64_t before_ms)
{
    LIST_FOR_EACH_SAFE (node, next, &ring->entries) {
        struct inbox_entry *entry = LIST_ENTRY(node, struct inbox_entry, node);
        if (entry->at_ms >= before_ms)
            return;
        drop(ring, entry);
    }
}

static void inbox_ring_take_one(struct inbox_ring *ring, struct inbox_entry *entry,
                                struct list *entries)
{
    remove_entry(ring, entry);
    list_append(entries, &entry->node);
}

static void inbox_ring_take(struct inbox_ring *ring, struct list *entries)
{
    LIST_FOR_EACH_SAFE (node, next, &ring->entries) {
        inbox_ring_take_one(ring, LIST_ENTRY(node, struct inbox_entry, node), entries);
    }
}

/* The open calls of await_activity, each woken on its own loop. */

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

static void inbox_unref(struct inbox_waiter *waiter)
{
    if (atomic_fetch_sub(&waiter->references, 1) > 1)
        return;
    MAGIC_CLEAR(waiter);
    free(waiter);
}

/* On its loop. */
static void inbox_run(void *context)
{
    struct inbox_waiter *waiter = inbox_waiter_from(context);
    loop_callback woken = waiter->woken;
    waiter->woken = NULL;
    if (woken)
        woken(waiter->context);
    inbox_unref(waiter);
}

static void inbox_post(struct inbox_waiter *waiter)
{
    if (waiter->is_posted)
        return;
    waiter->is_posted = true;
    atomic_fetch_add(&waiter->references, 1);
    loop_post(waiter->loop, inbox_run, waiter);
}

/* An event has come. */
static void inbox_waiters_wake(struct inbox *client, enum inbox_event type)
{
    LIST_FOR_EACH_SAFE (node, next, &client->waiters) {
        struct inbox_waiter *waiter = LIST_ENTRY(node, struct inbox_waiter, node);
        waiter->triggers |= 1U << type;
        inbox_post(waiter);
    }
}

/* The inbox ends. */
static void inbox_waiters_end(struct inbox *client)
{
    LIST_FOR_EACH_SAFE (node, next, &client->waiters) {
        struct inbox_waiter *waiter = LIST_ENTRY(node, struct inbox_waiter, node);
        list_remove(&waiter->node);
        waiter->client = NULL;
        inbox_post(waiter);
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
        ASSERT_NUMBERS(client->waiter_count, >, 0);
        list_remove(&waiter->node);
        client->waiter_count--;
        inbox_used(waiter->clients, client);
    }
    pthread_mutex_unlock(&waiter->clients->lock);
    waiter->woken = NULL;
    inbox_unref(waiter);
}

#define IDLE_MS INT64_C(1800000) /* 30 minutes */
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
static bool inbox_make_room(struct inbox_table *clients, size_t most)
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
    if (!client && inbox_make_room(clients, most)) {
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

/* The inbox of a key, or NULL; inbox_unlock() follows. */
static struct inbox *inbox_lock(struct gateway *gateway, struct str key)
{
    pthread_mutex_lock(&gateway->inbox_table->lock);
    return inbox_find(gateway->inbox_table, key);
}

static void inbox_unlock(struct gateway *gateway)
{
    pthread_mutex_unlock(&gateway->inbox_table->lock);
}

void inbox_end(struct gateway *gateway, struct str key)
{
    struct inbox *client = inbox_lock(gateway, key);
    if (client)
        remove_client(gateway->inbox_table, client);
    inbox_unlock(gateway);
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
    struct inbox *client = inbox_lock(gateway, key);
    if (client)
        push_event(gateway->inbox_table, client, type, server, data);
    inbox_unlock(gateway);
}

/* Whether an event of this type whose data has `text` in it has not been told yet. */
static bool inbox_has_event(struct gateway *gateway, struct str key, enum inbox_event type,
                            struct str text)
{
    bool is_there = false;
    struct inbox *client = inbox_lock(gateway, key);
    if (client) {
        LIST_FOR_EACH_SAFE (node, next, &client->events.entries) {
            const struct inbox_entry *entry = LIST_ENTRY(node, struct inbox_entry, node);
            is_there =
                is_there || (entry->kind == type && memmem(entry->json.bytes, entry->json.length,
                                                           text.bytes, text.length) != NULL);
        }
    }
    inbox_unlock(gateway);
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
    struct inbox *client = inbox_lock(gateway, key);
    if (client)
        inbox_ring_push(&client->logs, inbox_entry_create(0, server, STR_EMPTY, params),
                        INBOX_MOST_LOGS, allowance(gateway->inbox_table, &client->logs, 4));
    inbox_unlock(gateway);
}

void inbox_add_notification(struct gateway *gateway, struct str key, struct str server,
                            struct str method, struct str params)
{
    struct inbox *client = inbox_lock(gateway, key);
    if (client) {
        OWNED_BUFFER(data);
        inbox_ring_push(&client->notifications, inbox_entry_create(0, server, method, params),
                        INBOX_MOST_NOTIFICATIONS,
                        allowance(gateway->inbox_table, &client->notifications, 4));
        buffer_append_text(&data, "{\"method\":");
        buffer_append_json_string(&data, method);
        if (params.length > 0)
            buffer_append_format(&data, ",\"params\":%.*s", STR_ARGS(params));
        buffer_append_char(&data, '}');
        push_event(gateway->inbox_table, client, INBOX_NOTIFICATION, server, buffer_str(&data));
    }
    inbox_unlock(gateway);
}

/* Reading an inbox: each entry is given out once. */

static void write_event(struct buffer *out, const struct inbox_entry *entry)
{
    json_add_text(out, "id", entry->id);
    json_add_text(out, "type", inbox_event_name((enum inbox_event)entry->kind));
    json_add_str(out, "server", entry->server);
    json_add_value(out, "data",
                   entry->json.length > 0 ? entry->json : STR("{\"omitted\":\"too long\"}"));
    json_add_time(out, "createdAt", entry->at_ms);
}

static void write_notification(struct buffer *out, const struct inbox_entry *entry)
{
    json_add_str(out, "server", entry->server);
    json_add_str(out, "method", entry->name);
    json_add_time(out, "timestamp", entry->at_ms);
    json_add_value(out, "params", entry->json);
}

static void write_log(struct buffer *out, const struct inbox_entry *entry)
{
    json_add_str(out, "server", entry->server);
    json_add_value(out, "level", json_member(entry->json, "level"));
    json_add_value(out, "logger", json_member(entry->json, "logger"));
    json_add_time(out, "timestamp", entry->at_ms);
    json_add_value(out, "data", json_member(entry->json, "data"));
}

/* Writes and frees what was taken. */
static size_t write_all(struct buffer *out, struct list *entries,
                        void (*write)(struct buffer *, const struct inbox_entry *))
{
    size_t count = 0;
    buffer_append_char(out, '[');
    LIST_FOR_EACH_SAFE (node, next, entries) {
        struct inbox_entry *entry = LIST_ENTRY(node, struct inbox_entry, node);
        buffer_append_text(out, count++ > 0 ? ",{" : "{");
        write(out, entry);
        buffer_append_char(out, '}');
        free(entry);
    }
    buffer_append_char(out, ']');
    return count;
}

static bool is_creation_of(const struct inbox_entry *entry, struct str task)
{
    return entry->kind == INBOX_TASK_CREATED && task.length > 0 &&
           json_string_equals(json_member(entry->json, "taskId"), task);
}

/* NULL: there is none. */
static struct inbox_entry *find_creation(struct list *entries, struct str task)
{
    LIST_FOR_EACH_SAFE (node, next, entries) {
        struct inbox_entry *entry = LIST_ENTRY(node, struct inbox_entry, node);
        if (is_creation_of(entry, task))
            return entry;
    }
    return NULL;
}

void inbox_drop_creation(struct gateway *gateway, struct str key, struct str task)
{
    struct list taken;
    list_init(&taken);
    struct inbox *client = inbox_lock(gateway, key);
    struct inbox_entry *created = client ? find_creation(&client->events.entries, task) : NULL;
    if (created)
        inbox_ring_take_one(&client->events, created, &taken);
    inbox_unlock(gateway);
    free(created);
}

size_t inbox_take_events(struct gateway *gateway, struct str key, struct str announced,
                         struct buffer *out)
{
    struct list taken;
    list_init(&taken);
    struct inbox *client = inbox_lock(gateway, key);
    if (client) {
        inbox_ring_take(&client->events, &taken);
        client->has_news = false;
    }
    inbox_unlock(gateway);
    struct inbox_entry *created = find_creation(&taken, announced);
    if (created)
        list_remove(&created->node);
    free(created);
    return write_all(out, &taken, write_event);
}

size_t inbox_take_notifications(struct gateway *gateway, struct str key, struct buffer *out)
{
    struct list taken;
    list_init(&taken);
    struct inbox *client = inbox_lock(gateway, key);
    if (client)
        inbox_ring_take(&client->notifications, &taken);
    inbox_unlock(gateway);
    return write_all(out, &taken, write_notification);
}

/* ---- logs ---- */

/* RFC 5424, as the protocol has it; an unknown word counts as the least. */
static int severity(struct str level)
{
    static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
    for (int i = 0; i < (int)(sizeof levels / sizeof *levels); i++) {
        if (str_equal(level, str_from(levels[i])))
            return i;
    }
    return 0;
}

static bool is_as_grave(const struct inbox_entry *entry, int least)
{
    OWNED_BUFFER(level);
    json_decode_string(json_member(entry->json, "level"), &level);
    return severity(buffer_str(&level)) >= least;
}

size_t inbox_take_logs(struct gateway *gateway, struct str key, struct str level, size_t limit,
                       struct buffer *out)
{
    int least = severity(level);
    size_t fitting = 0;
    struct list taken;
    list_init(&taken);
    struct inbox *client = inbox_lock(gateway, key);
    if (client) {
        LIST_FOR_EACH_SAFE (node, next, &client->logs.entries) {
            fitting += is_as_grave(LIST_ENTRY(node, struct inbox_entry, node), least);
        }
        LIST_FOR_EACH_SAFE (node, next, &client->logs.entries) {
            struct inbox_entry *entry = LIST_ENTRY(node, struct inbox_entry, node);
            if (is_as_grave(entry, least) && fitting-- <= limit)
                inbox_ring_take_one(&client->logs, entry, &taken);
        }
    }
    inbox_unlock(gateway);
    return write_all(out, &taken, write_log);
}

/* Events of tasks and servers (behaviour 11.8). */

/* A longer result or argument is left out, because the client can ask for the task. */
#define MOST_DATA_BYTES ((size_t)16 * 1024)

static bool event_of(const struct task *task, bool created, enum inbox_event *type)
{
    *type = INBOX_TASK_CREATED;
    switch (task->state) {
    case TASK_PENDING:
    case TASK_APPROVED:
    case TASK_EXECUTING:
        return created;
    case TASK_COMPLETED:
        *type = INBOX_TASK_COMPLETED;
        break;
    case TASK_FAILED:
    case TASK_REJECTED:
        *type = INBOX_TASK_FAILED;
        break;
    case TASK_CANCELLED:
        *type = INBOX_TASK_CANCELLED;
        break;
    case TASK_EXPIRED:
        *type = INBOX_TASK_EXPIRED;
        break;
    }
    return true;
}

static void write_data(struct buffer *out, const struct task *task, enum inbox_event type)
{
    buffer_append_char(out, '{');
    json_add_text(out, "taskId", task->id);
    json_add_text(out, "toolName", task->tool);
    if (type == INBOX_TASK_CREATED && strlen(task->arguments) <= MOST_DATA_BYTES)
        buffer_append_format(out, ",\"args\":%s", task->arguments);
    if (task->outcome == TASK_OUTCOME_RESULT && task->outcome_text &&
        task->outcome_length <= MOST_DATA_BYTES) {
        json_add_value(out, "result", str_slice(task->outcome_text, task->outcome_length));
    }
    if (type == INBOX_TASK_FAILED || type == INBOX_TASK_EXPIRED) {
        OWNED_BUFFER(error);
        task_summary_write_error(&error, task);
        json_add_str(out, "error", buffer_str(&error));
    }
    if (type == INBOX_TASK_EXPIRED)
        buffer_append_format(out, ",\"ttl\":%" PRId64, task->ttl_ms);
    buffer_append_char(out, '}');
}

void inbox_note_task(struct gateway *gateway, const struct task *task, bool created)
{
    enum inbox_event type;
    char key[CLIENT_KEY_BYTES];
    struct buffer data = {0};
    if (!event_of(task, created, &type))
        return;
    inbox_key_of_task(task, key);
    if (type == INBOX_TASK_FAILED &&
        inbox_has_event(gateway, str_from(key), type, str_from(task->id)))
        return; /* an adoption comes as a change and as a lost task, in any order */
    write_data(&data, task, type);
    inbox_add_event(gateway, str_from(key), type, str_from(task->source), buffer_str(&data));
    buffer_finish(&data);
}

void inbox_note_lost_task(struct gateway *gateway, const struct task *task)
{
    char key[CLIENT_KEY_BYTES];
    inbox_key_of_task(task, key);
    inbox_touch(gateway, str_from(key));
    inbox_note_task(gateway, task, false);
}

void inbox_note_server(struct gateway *gateway, struct str source, enum catalog_change change)
{
    static const enum inbox_event events[] = {
        [CATALOG_CONNECTED] = INBOX_SERVER_CONNECTED,
        [CATALOG_DISCONNECTED] = INBOX_SERVER_DISCONNECTED,
        [CATALOG_RECONNECTED] = INBOX_SERVER_RECONNECTED,
    };
    inbox_add_source_event(gateway, events[change], source, STR("{}"));
}
