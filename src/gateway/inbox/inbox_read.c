/* Reading an inbox: each entry is given out once. */
#include <stdlib.h>
#include <string.h>

#include "inbox_internal.h"
#include "taskgate/core/clock.h"
#include "taskgate/json/members.h"
#include "taskgate/json/text.h"

static void add_json(struct buffer *out, const char *key, struct str json)
{
    if (json.length == 0)
        return;
    json_add_key(out, key);
    buffer_append(out, json);
}

static void add_str(struct buffer *out, const char *key, struct str text)
{
    json_add_key(out, key);
    buffer_append_json_string(out, text);
}

static void write_event(struct buffer *out, const struct inbox_entry *entry)
{
    json_add_text(out, "id", entry->id);
    json_add_text(out, "type", inbox_event_name((enum inbox_event)entry->kind));
    add_str(out, "server", entry->server);
    add_json(out, "data", entry->json.length > 0 ? entry->json : STR("{\"omitted\":\"too long\"}"));
    json_add_time(out, "createdAt", entry->at_ms);
}

static void write_notification(struct buffer *out, const struct inbox_entry *entry)
{
    add_str(out, "server", entry->server);
    add_str(out, "method", entry->name);
    json_add_time(out, "timestamp", entry->at_ms);
    add_json(out, "params", entry->json);
}

static void write_log(struct buffer *out, const struct inbox_entry *entry)
{
    add_str(out, "server", entry->server);
    add_json(out, "level", json_member(entry->json, "level"));
    add_json(out, "logger", json_member(entry->json, "logger"));
    json_add_time(out, "timestamp", entry->at_ms);
    add_json(out, "data", json_member(entry->json, "data"));
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
    struct inbox_table *clients = gateway->inbox_table;
    struct list taken;
    list_init(&taken);
    pthread_mutex_lock(&clients->lock);
    struct inbox *client = inbox_find(clients, key);
    struct inbox_entry *created = client ? find_creation(&client->events.entries, task) : NULL;
    if (created)
        inbox_ring_take_one(&client->events, created, &taken);
    pthread_mutex_unlock(&clients->lock);
    free(created);
}

size_t inbox_take_events(struct gateway *gateway, struct str key, struct str announced,
                         struct buffer *out)
{
    struct inbox_table *clients = gateway->inbox_table;
    struct list taken;
    list_init(&taken);
    pthread_mutex_lock(&clients->lock);
    struct inbox *client = inbox_find(clients, key);
    if (client) {
        inbox_ring_take(&client->events, &taken);
        client->has_news = false;
    }
    pthread_mutex_unlock(&clients->lock);
    struct inbox_entry *created = find_creation(&taken, announced);
    if (created)
        list_remove(&created->node);
    free(created);
    return write_all(out, &taken, write_event);
}

size_t inbox_take_notifications(struct gateway *gateway, struct str key, struct buffer *out)
{
    struct inbox_table *clients = gateway->inbox_table;
    struct list taken;
    list_init(&taken);
    pthread_mutex_lock(&clients->lock);
    struct inbox *client = inbox_find(clients, key);
    if (client)
        inbox_ring_take(&client->notifications, &taken);
    pthread_mutex_unlock(&clients->lock);
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
    struct buffer level = {0};
    json_decode_string(json_member(entry->json, "level"), &level);
    bool is = severity(buffer_str(&level)) >= least;
    buffer_finish(&level);
    return is;
}

size_t inbox_take_logs(struct gateway *gateway, struct str key, struct str level, size_t limit,
                       struct buffer *out)
{
    struct inbox_table *clients = gateway->inbox_table;
    int least = severity(level);
    size_t fitting = 0;
    struct list taken;
    list_init(&taken);
    pthread_mutex_lock(&clients->lock);
    struct inbox *client = inbox_find(clients, key);
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
    pthread_mutex_unlock(&clients->lock);
    return write_all(out, &taken, write_log);
}
