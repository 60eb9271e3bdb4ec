/* Names of events, keys of inboxes, and the inbox of a key. */
#include <stdio.h>
#include <string.h>

#include "inbox_internal.h"
#include "taskgate/core/assert.h"
#include "taskgate/core/clock.h"

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

bool inbox_event_wakes(enum inbox_event type)
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

struct str inbox_key_session(const char *key)
{
    const char *mark = strstr(key, OWNER_MARK "auth:");
    return mark ? str_slice(key, (size_t)(mark - key)) : str_from(key);
}

/* ---- the inbox of a key ---- */

struct inbox *inbox_find(struct inbox_table *clients, struct str key)
{
    return key.length > 0 ? map_get(clients->by_key, key) : NULL;
}

void inbox_used(struct inbox_table *clients, struct inbox *client)
{
    client->touched_ms = clock_monotonic_ms();
    list_remove(&client->node);
    list_append(client->waiter_count > 0 ? &clients->busy : &clients->idle, &client->node);
}
